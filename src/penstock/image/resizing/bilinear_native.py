"""The fast bilinear kernel. Its bits equal those of `reference`; it runs without the GIL.

A source row is interpolated along its width once, and reused for the next result row. Then the two rows around a result
row are blended. If the processor can select the bytes of a register by a table (AVX2, SSSE3, NEON), a uint8 row is read
sixteen bytes at a time. The table moves each byte to its results, for any number of channels. LLVM finds none of these
vectors by itself.

No fast-math flag is used: the order of the float32 operations is the one written here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir

from penstock.image.kernels import BAD_ARGUMENT
from penstock.image.kernels.instructions import F32, I8, I32, Code, images_in, vector_step
from penstock.native.kernel import has_feature, helper, kernel

LANES = 4  # values from one window, or loaded per pixel; a pixel of three channels has an extra one
WINDOW = 16  # bytes of a source row from which LANES values are selected
STEP = 2  # windows or pixels at a time: 8 lanes fill an AVX2 register


def _picker() -> tuple[str, int]:
    """Return the instruction that selects bytes by a table (255 selects 0), and the number of windows it takes."""
    if has_feature("avx2"):
        return "llvm.x86.avx2.pshuf.b", 2
    return ("llvm.aarch64.neon.tbl1.v16i8" if has_feature("neon") else "llvm.x86.ssse3.pshuf.b.128"), 1


def _between(builder: Any, low: Any, high: Any, weight: Any) -> Any:
    return builder.fadd(low, builder.fmul(builder.fsub(high, low), weight))


def _joined(code: Code, parts: list[Any]) -> Any:
    return code.both(*parts) if len(parts) == 2 else parts[0]


def _lerp_windows(code: Code) -> None:
    src, base, low, high, weights, out = 0, 2, 3, 4, 5, 7
    start, window = code.args[1], code.args[6]
    b = code.builder
    name, at_once = _picker()
    table = ir.VectorType(I8, WINDOW * at_once)
    pick = b.module.declare_intrinsic(name, (), ir.FunctionType(table, [table, table]))
    integers, floats = (ir.VectorType(kind, LANES * at_once) for kind in (I32, F32))
    for first in range(0, STEP, at_once):
        lane = b.mul(code.offset(window, first), ir.Constant(ir.IntType(64), LANES))
        windows = []
        for k in range(first, first + at_once):
            offset = b.load(code.at(base, code.offset(window, k)))
            place = b.bitcast(code.at(src, b.add(start, offset)), I8.as_pointer())  # not reached with floats
            windows.append(code.load(place, WINDOW))
        both = _joined(code, windows)
        picks = [b.bitcast(code.load(code.at(of, lane), LANES * at_once), table) for of in (low, high)]
        chosen = [b.bitcast(b.call(pick, [both, each]), integers) for each in picks]
        left, right = (b.sitofp(values, floats) for values in chosen)
        share = code.load(code.at(weights, lane), LANES * at_once)
        code.store(_between(b, left, right, share), code.at(out, lane))


lerp_windows = vector_step(_lerp_windows, "aiaaaaia")
"""lerp_windows(src, start, base, low, high, weight, window, out): interpolate STEP windows, from `window` on.

They lie along the row that begins at `start`; the results go to `out`. WINDOW bytes can be read at `start + base[...]`.
"""


def _expect_write(code: Code) -> None:
    b, pointer = code.builder, I8.as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [pointer, I32, I32, I32])
    prefetch = b.module.declare_intrinsic("llvm.prefetch", (pointer,), kind)
    place = b.bitcast(code.at(0, code.args[1]), pointer)
    b.call(prefetch, [place, *(ir.Constant(I32, value) for value in (1, 3, 1))])  # to write, to keep, data


expect_write = vector_step(_expect_write, "ai")
"""expect_write(array, at): tell the processor to fetch what its caches do not hold of `array[at]`, to be written.

Without it, results in memory not used for a while cost a third more.
"""


def _lerp_pixels(code: Code) -> None:
    src, weights, out = 0, 3, 7
    pixel, channels, start, at = (code.args[position] for position in (4, 5, 6, 8))
    b = code.builder
    floats = ir.VectorType(F32, LANES * STEP)
    shares = code.load(code.at(weights, pixel), STEP)
    across = code.shuffled(shares, shares, [lane // LANES for lane in range(LANES * STEP)])
    ends = []
    for taps in (1, 2):
        offsets = [b.load(code.at(taps, code.offset(pixel, k))) for k in range(STEP)]
        both = _joined(code, [code.load(code.at(src, b.add(start, offset)), LANES) for offset in offsets])
        ends.append(both if both.type.element == F32 else b.uitofp(both, floats))
    result = _between(b, ends[0], ends[1], across)
    for k in range(STEP):
        place = code.at(out, b.add(at, b.mul(channels, ir.Constant(ir.IntType(64), k))))
        code.store(code.shuffled(result, result, list(range(LANES * k, LANES * (k + 1)))), place)


lerp_pixels = vector_step(_lerp_pixels, "aaaaiiiai")
"""lerp_pixels(src, left, right, weight, pixel, channels, start, out, at): interpolate STEP pixels, from `pixel` on.

They lie along the row that begins at `start`; the results go to `out` from `at` on. LANES values can be read at each
tap, and written for each pixel: the extra lane of one pixel is overwritten by the next.
"""


@helper
def _inside(taps, size):
    inside = True
    for i in range(taps.size):
        inside &= (taps[i] >= 0) & (taps[i] < size)
    return inside


@helper
def _spread(x_low, x_high, x_weight, channels, low, high, weight):
    """Compute taps of each value from the taps of each pixel. The last one is repeated."""
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


@helper
def _windows(low, high, row_size, base, low_pick, high_pick):
    """Fill the tables of `lerp_windows`. Return False if a window would be too wide."""
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
            # The upper three of each value's four bytes select 0.
            low_pick[lane] = np.uint32(low[lane] - first) | np.uint32(0xFFFFFF00)
            high_pick[lane] = np.uint32(high[lane] - first) | np.uint32(0xFFFFFF00)
    return fits


@helper
def _resized(src, sizes, y_taps, x_taps, values, windows, rows, dst):
    """Run `resize_bilinear` with checked sizes.

    `values` is memory for the taps of each value, `windows` for the tables of `lerp_windows`, and `rows` for the
    positions of the pixels and for two rows.
    """
    count, height, width, channels = sizes
    y_low, y_high, y_weight = y_taps
    x_low, x_high, x_weight = x_taps
    low, high, weight = values
    base, low_pick, high_pick = windows
    left, right, one, other = rows
    out_height = y_low.size
    out_width = x_low.size
    row_size = width * channels
    image_size = height * row_size
    out_row = out_width * channels
    steps = low.size // (STEP * LANES)
    _spread(x_low, x_high, x_weight, channels, low, high, weight)
    by_window = src.itemsize == 1 and _windows(low, high, row_size, base, low_pick, high_pick)
    for j in range(out_width):
        left[j] = x_low[j] * channels
        right[j] = x_high[j] * channels
    by_pixel = not by_window and (channels == 3 or channels == 4)
    one_is = np.int64(-1)  # start of the source row in `one`
    other_is = np.int64(-1)
    for i in range(count * out_height):
        image = (i // out_height) * image_size
        tap = i % out_height
        top = image + y_low[tap] * row_size
        bottom = image + y_high[tap] * row_size
        wy = y_weight[tap]
        at = i * out_row
        # A pixel is read as LANES values: the last pixel of a row must not read beyond `src`.
        readable = by_pixel and max(top, bottom) + row_size - channels + LANES <= src.size
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
                    lerp_windows(src, start, base, low_pick, high_pick, weight, window, row)
                    expect_write(dst, at + window * LANES)
                done = out_row
            elif readable:
                for j in range(0, out_width - 1, STEP):
                    lerp_pixels(src, left, right, x_weight, j, channels, start, row, j * channels)
                done = out_width // STEP * STEP * channels
            for k in range(np.uint64(done), np.uint64(out_row)):
                a = np.float32(src[np.uint64(start + low[k])])
                row[k] = a + (np.float32(src[np.uint64(start + high[k])]) - a) * weight[k]
        one_is = top
        other_is = bottom
        for k in range(np.uint64(out_row)):
            dst[np.uint64(at) + k] = one[k] + (other[k] - one[k]) * wy


@kernel(
    "src: T[:], height: i64, width: i64, channels: i64, y_low: i64[:], y_high: i64[:], y_weight: f32[:], x_low: "
    "i64[:], x_high: i64[:], x_weight: f32[:], dst: w f32[:] -> i64",
    T="u8 f32",
    makes_arrays=True,
)
def resize_bilinear(src, height, width, channels, y_low, y_high, y_weight, x_low, x_high, x_weight, dst):
    """Resize each image of the flat `src` into the flat `dst`. Return 0 or BAD_ARGUMENT.

    The taps are those of `bilinear_taps`.
    """
    out_height = y_low.size
    out_width = x_low.size
    count = images_in(src.size, height, width, channels)
    out_row = out_width * channels
    if (
        count < 0
        or min(out_height, out_width) < 1
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
    values = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.float32)
    windows = np.empty(steps * STEP, np.int64), np.empty(room, np.uint32), np.empty(room, np.uint32)
    pixels, rows = np.empty((2, out_width), np.int64), np.empty((2, room + LANES), np.float32)
    _resized(
        src,
        (count, height, width, channels),
        (y_low, y_high, y_weight),
        (x_low, x_high, x_weight),
        values,
        windows,
        (pixels[0], pixels[1], rows[0], rows[1]),
        dst,
    )
    return 0
