"""The fast bilinear kernel: the numbers of `reference`, bit for bit, compiled and run without the GIL.

A source row is interpolated along its width once and kept while the next result row needs it; then the two rows that a
result lies between are mixed. Where the processor can pick the bytes of a register by a table (AVX2, SSSE3, NEON), a
row of uint8 is read sixteen bytes at a time, and the table sends each to the results it belongs to, for any number of
channels. LLVM finds none of these vectors by itself.

Imported inside functions only: numba takes a third of a second to load. No fast-math flag is used: with them the same
source compiled afresh and loaded from the cache differ in the last bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core.extending import intrinsic
from numba.np import arrayobj

BAD_ARGUMENT = 1  # status: sizes that do not fit, or a tap outside the source; nothing was written

LANES = 4  # values made from one window, or loaded per pixel; a pixel of three channels has one too many
WINDOW = 16  # bytes of a source row that LANES values are picked from
STEP = 2  # windows or pixels at a time: 8 lanes fill an AVX2 register

_BYTE, _INT, _LONG, _FLOAT = ir.IntType(8), ir.IntType(32), ir.IntType(64), ir.FloatType()


def _picker(context: Any) -> tuple[str, int]:
    """The instruction that picks bytes by a table (255 picks nothing: 0), and how many windows it takes at once."""
    triple, _, features = context.codegen().magic_tuple()
    known = features.split(",")
    if "+avx2" in known:
        return "llvm.x86.avx2.pshuf.b", 2
    if "+ssse3" in known:
        return "llvm.x86.ssse3.pshuf.b.128", 1
    if triple.startswith(("aarch64", "arm64")):
        return "llvm.aarch64.neon.tbl1.v16i8", 1
    return "", 0


@intrinsic
def _can_pick(typing: Any) -> Any:
    """Whether the processor can do what `_lerp_windows` is made of."""
    return types.boolean(), lambda context, *_: ir.Constant(ir.IntType(1), bool(_picker(context)[0]))


def _operands(context: Any, builder: Any, signature: Any, args: Any) -> list[Any]:
    """The arguments of an intrinsic, of arrays the pointers to their data."""
    make: Any = arrayobj.make_array
    pairs = zip(signature.args, args, strict=True)
    return [make(kind)(context, builder, arg).data if isinstance(kind, types.Array) else arg for kind, arg in pairs]


def _plus(builder: Any, value: Any, constant: int) -> Any:
    return builder.add(value, ir.Constant(_LONG, constant))


def _load(builder: Any, pointer: Any, kind: Any, align: int) -> Any:
    value = builder.load(builder.bitcast(pointer, kind.as_pointer()))
    value.align = align
    return value


def _store(builder: Any, value: Any, pointer: Any, align: int = 4) -> None:
    builder.store(value, builder.bitcast(pointer, value.type.as_pointer())).align = align


def _lanes(builder: Any, parts: list[Any], lanes: list[int]) -> Any:
    """A vector of some lanes of one or two."""
    second = parts[1] if len(parts) == 2 else ir.Constant(parts[0].type, ir.Undefined)
    return builder.shuffle_vector(parts[0], second, ir.Constant(ir.VectorType(_INT, len(lanes)), lanes))


def _joined(builder: Any, parts: list[Any]) -> Any:
    return _lanes(builder, parts, list(range(sum(part.type.count for part in parts))))


def _lerp(builder: Any, low: Any, high: Any, weight: Any) -> Any:
    return builder.fadd(low, builder.fmul(builder.fsub(high, low), weight))


@intrinsic
def _lerp_windows(
    typing: Any, src: Any, start: Any, base: Any, low: Any, high: Any, weight: Any, window: Any, out: Any
) -> Any:
    """Interpolate STEP windows, from `window` on, along the row that begins at `start`, into `out`.

    The caller must have checked that WINDOW bytes can be read at `start + base[...]`.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        src, start, base, low, high, weight, window, out = _operands(context, builder, signature, args)
        name, at_once = _picker(context)
        if not name:  # compiled, but not reached
            return context.get_dummy_value()
        picked = ir.VectorType(_BYTE, WINDOW * at_once)
        pick = builder.module.declare_intrinsic(name, (), ir.FunctionType(picked, [picked, picked]))
        integers, floats = (ir.VectorType(kind, LANES * at_once) for kind in (_INT, _FLOAT))
        for first in range(0, STEP, at_once):
            lane = builder.mul(_plus(builder, window, first), ir.Constant(_LONG, LANES))
            windows = []
            for k in range(first, first + at_once):
                offset = builder.load(builder.gep(base, [_plus(builder, window, k)]))
                place = builder.gep(src, [builder.add(start, offset)])
                windows.append(_load(builder, place, ir.VectorType(_BYTE, WINDOW), 1))
            both = _joined(builder, windows)
            tables = [_load(builder, builder.gep(table, [lane]), picked, 4) for table in (low, high)]
            chosen = [builder.bitcast(builder.call(pick, [both, table]), integers) for table in tables]
            left, right = (builder.sitofp(values, floats) for values in chosen)
            share = _load(builder, builder.gep(weight, [lane]), floats, 4)
            _store(builder, _lerp(builder, left, right, share), builder.gep(out, [lane]))
        return context.get_dummy_value()

    size = types.int64
    return types.none(src, size, base, low, high, weight, size, out), generate


@intrinsic
def _expect_write(typing: Any, array: Any, at: Any) -> Any:
    """Tell the processor that `array[at]` will be written: what its caches do not hold is fetched meanwhile.

    Without it, results in memory not used for a while cost a third more.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array, at = _operands(context, builder, signature, args)
        pointer = _BYTE.as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [pointer, _INT, _INT, _INT])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", (pointer,), kind)
        place = builder.bitcast(builder.gep(array, [at]), pointer)
        builder.call(prefetch, [place, *(ir.Constant(_INT, value) for value in (1, 3, 1))])  # to write, to keep, data
        return context.get_dummy_value()

    return types.none(array, types.int64), generate


def _lerp_pixels(kind: str) -> Any:
    """Build the intrinsic that interpolates STEP pixels, from `pixel` on, of source rows into `out` from `at` on.

    For "row" along the row that begins at `top` and no further; for "times" and "over" between that and `bottom`, too,
    and scaled. The caller must have checked that LANES values can be read at each tap, and written for each pixel: the
    lane too many of one is written over by the next.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        src, left, right, weight, pixel, channels, top, bottom, y_weight, factor, out, at = _operands(
            context, builder, signature, args
        )
        src_type, out_type = signature.args[0].dtype, signature.args[10].dtype
        loaded = ir.VectorType(context.get_data_type(src_type), LANES)
        floats = ir.VectorType(_FLOAT, LANES * STEP)
        offsets = [
            [builder.load(builder.gep(taps, [_plus(builder, pixel, k)])) for k in range(STEP)] for taps in (left, right)
        ]
        shares = _load(builder, builder.gep(weight, [pixel]), ir.VectorType(_FLOAT, STEP), 4)
        across = _lanes(builder, [shares], [lane // LANES for lane in range(LANES * STEP)])

        def along(start: Any) -> Any:
            ends = []
            for pair in offsets:
                places = [builder.gep(src, [builder.add(start, offset)]) for offset in pair]
                both = _joined(builder, [_load(builder, place, loaded, src_type.bitwidth // 8) for place in places])
                ends.append(both if src_type == types.float32 else builder.uitofp(both, floats))
            return _lerp(builder, ends[0], ends[1], across)

        def splat(value: Any) -> Any:
            undefined = ir.Constant(floats, ir.Undefined)
            return _lanes(builder, [builder.insert_element(undefined, value, ir.Constant(_INT, 0))], [0] * LANES * STEP)

        result = along(top)
        if kind != "row":
            scale = builder.fmul if kind == "times" else builder.fdiv
            result = scale(_lerp(builder, result, along(bottom), splat(y_weight)), splat(factor))
        if out_type == types.uint8:
            result = builder.fptosi(result, ir.VectorType(_INT, LANES * STEP))
            result = builder.trunc(result, ir.VectorType(_BYTE, LANES * STEP))
        for k in range(STEP):
            place = builder.gep(out, [builder.add(at, builder.mul(channels, ir.Constant(_LONG, k)))])
            part = _lanes(builder, [result], list(range(LANES * k, LANES * (k + 1))))
            _store(builder, part, place, out_type.bitwidth // 8)
        return context.get_dummy_value()

    @intrinsic
    def lerp_pixels(
        typing: Any,
        src: Any,
        left: Any,
        right: Any,
        x_weight: Any,
        pixel: Any,
        channels: Any,
        top: Any,
        bottom: Any,
        y_weight: Any,
        factor: Any,
        out: Any,
        at: Any,
    ) -> Any:
        size, share = types.int64, types.float32
        return types.none(src, left, right, x_weight, size, size, size, size, share, share, out, size), generate

    return lerp_pixels


_lerp_pixels_row, _lerp_pixels_times, _lerp_pixels_over = (_lerp_pixels(kind) for kind in ("row", "times", "over"))


@njit(nogil=True, cache=True)
def _inside(taps: Any, size: int) -> bool:
    inside = True
    for i in range(taps.size):
        inside &= (taps[i] >= 0) & (taps[i] < size)
    return inside


@njit(nogil=True, cache=True)
def _spread(x_low: Any, x_high: Any, x_weight: Any, channels: int, low: Any, high: Any, weight: Any) -> None:
    """From taps of each pixel those of each value; behind the last its copies."""
    at = 0
    for j in range(x_low.size):
        for c in range(channels):
            low[at] = x_low[j] * channels + c
            high[at] = x_high[j] * channels + c
            weight[at] = x_weight[j]
            at += 1
    for k in range(at, low.size):
        low[k] = low[at - 1]
        high[k] = high[at - 1]
        weight[k] = weight[at - 1]


@njit(nogil=True, cache=True)
def _windows(low: Any, high: Any, row_size: int, base: Any, low_pick: Any, high_pick: Any) -> bool:
    """Fill the tables of `_lerp_windows`; False if some window would have to be wider."""
    fits = row_size >= WINDOW
    for window in range(base.size):
        first = np.int64(row_size - WINDOW)
        last = np.int64(0)
        for lane in range(LANES * window, LANES * (window + 1)):
            first = min(first, low[lane], high[lane])
            last = max(last, low[lane], high[lane])
        if last - first >= WINDOW:
            fits = False
        base[window] = first
        for lane in range(LANES * window, LANES * (window + 1)):
            # Of each value's four bytes the upper three pick nothing.
            low_pick[lane] = np.uint32(low[lane] - first) | np.uint32(0xFFFFFF00)
            high_pick[lane] = np.uint32(high[lane] - first) | np.uint32(0xFFFFFF00)
    return fits


@njit(nogil=True, cache=True)
def resize_bilinear(
    src: Any,
    height: int,
    width: int,
    channels: int,
    y_low: Any,
    y_high: Any,
    y_weight: Any,
    x_low: Any,
    x_high: Any,
    x_weight: Any,
    factor: Any,
    divide: bool,
    dst: Any,
) -> int:
    """Resize each image of the flat `src` into the flat `dst`, times or divided by `factor`; 0 or BAD_ARGUMENT.

    `src` is flat uint8 or float32, `dst` flat float32 or uint8 (truncated); the taps are those of `bilinear_taps`.
    """
    out_height = y_low.size
    out_width = x_low.size
    if height <= 0 or width <= 0 or channels <= 0 or out_height == 0 or out_width == 0:
        return BAD_ARGUMENT
    # Step by step, so that no product can overflow.
    if channels > src.size or width > src.size // channels or height > src.size // (width * channels):
        return BAD_ARGUMENT
    row_size = width * channels
    image_size = height * row_size
    out_row = out_width * channels
    count = src.size // image_size
    if (
        src.size != count * image_size
        or dst.size != count * out_height * out_row
        or y_high.size != out_height
        or y_weight.size != out_height
        or x_high.size != out_width
        or x_weight.size != out_width
        or not (_inside(y_low, height) and _inside(y_high, height))
        or not (_inside(x_low, width) and _inside(x_high, width))
    ):
        return BAD_ARGUMENT
    steps = (out_row + STEP * LANES - 1) // (STEP * LANES)
    room = steps * STEP * LANES
    low = np.empty(room, np.int64)
    high = np.empty(room, np.int64)
    weight = np.empty(room, np.float32)
    _spread(x_low, x_high, x_weight, channels, low, high, weight)
    base = np.empty(steps * STEP, np.int64)
    low_pick = np.empty(room, np.uint32)
    high_pick = np.empty(room, np.uint32)
    by_window = src.itemsize == 1 and _can_pick() and _windows(low, high, row_size, base, low_pick, high_pick)  # type: ignore[call-arg]
    left = np.empty(out_width, np.int64)
    right = np.empty(out_width, np.int64)
    for j in range(out_width):
        left[j] = x_low[j] * channels
        right[j] = x_high[j] * channels
    by_pixel = not by_window and (channels == 3 or channels == 4)
    # Far apart, rows are needed once: it does not pay to keep them.
    direct = by_pixel and 2 * height >= 3 * out_height
    one = np.empty(room + LANES, np.float32)
    other = np.empty(room + LANES, np.float32)
    one_is = np.int64(-1)  # where the source row begins that `one` was made of
    other_is = np.int64(-1)
    for i in range(count * out_height):
        image = (i // out_height) * image_size
        tap = i % out_height
        top = image + y_low[tap] * row_size
        bottom = image + y_high[tap] * row_size
        wy = y_weight[tap]
        at = i * out_row
        # A pixel is read as LANES values: the last of a row must not leave `src`.
        readable = by_pixel and max(top, bottom) + row_size - channels + LANES <= src.size
        if direct and readable:
            # The row's last pixel is never part of a vector, so the lane too many stays inside the row.
            for j in range(0, out_width - STEP, STEP):
                to = at + j * channels
                if divide:
                    _lerp_pixels_over(src, left, right, x_weight, j, channels, top, bottom, wy, factor, dst, to)
                else:
                    _lerp_pixels_times(src, left, right, x_weight, j, channels, top, bottom, wy, factor, dst, to)
            for k in range(np.uint64((out_width - 1) // STEP * STEP * channels), np.uint64(out_row)):
                a = np.float32(src[np.uint64(top + low[k])])
                b = np.float32(src[np.uint64(bottom + low[k])])
                a = a + (np.float32(src[np.uint64(top + high[k])]) - a) * weight[k]
                b = b + (np.float32(src[np.uint64(bottom + high[k])]) - b) * weight[k]
                value = a + (b - a) * wy
                dst[np.uint64(at) + k] = value / factor if divide else value * factor
            continue
        if top == other_is or bottom == one_is:
            one, other = other, one
            one_is, other_is = other_is, one_is
        for side in range(2):
            start = bottom if side else top
            if start == (other_is if side else one_is):
                continue
            row = other if side else one
            done = 0
            if by_window:
                for window in range(0, STEP * steps, STEP):
                    _lerp_windows(src, start, base, low_pick, high_pick, weight, window, row)
                    _expect_write(dst, at + window * LANES)
                done = out_row
            elif readable:
                for j in range(0, out_width - 1, STEP):
                    _lerp_pixels_row(src, left, right, x_weight, j, channels, start, start, wy, wy, row, j * channels)
                done = out_width // STEP * STEP * channels
            for k in range(np.uint64(done), np.uint64(out_row)):
                a = np.float32(src[np.uint64(start + low[k])])
                row[k] = a + (np.float32(src[np.uint64(start + high[k])]) - a) * weight[k]
        one_is = top
        other_is = bottom
        if divide:
            for k in range(np.uint64(out_row)):
                dst[np.uint64(at) + k] = (one[k] + (other[k] - one[k]) * wy) / factor
        else:
            for k in range(np.uint64(out_row)):
                dst[np.uint64(at) + k] = (one[k] + (other[k] - one[k]) * wy) * factor
    return 0


def warm_up() -> None:
    """Compile for photographs to float32 and to uint8, and for floats."""
    taps = np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(1, np.float32)
    for array in taps:
        array.flags.writeable = False
    for source, target in ((np.uint8, np.float32), (np.uint8, np.uint8), (np.float32, np.float32)):
        pixels = np.zeros(12, source)
        pixels.flags.writeable = False
        resize_bilinear(pixels, 2, 2, 3, *taps, *taps, np.float32(1), False, np.zeros(3, target))
