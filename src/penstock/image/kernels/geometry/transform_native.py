"""The fast kernels that move pixels: the numbers of the references, bit for bit, compiled and run without the GIL.

Imported inside functions only: numba takes a third of a second to load. No fast-math flag is used, so that the order of
the float32 operations is the one written here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core.extending import intrinsic
from numba.np import arrayobj

BAD_ARGUMENT = 1  # status: sizes that do not fit; nothing was written

CONSTANT, REFLECT, WRAP, NEAREST = range(4)
NOWHERE = np.float32(-5)
FARTHEST = np.float32(2**60)
BEYOND = np.float32(2**25)  # as good as any coordinate outside: a side has less than 2**24 pixels
ZERO, HALF, ONE = np.float32(0), np.float32(0.5), np.float32(1)

PIXELS = 512  # whose points are found at once: vectors run long and the arrays stay in the nearest cache
LANES = 4  # values blended at once per pixel; a pixel of three channels has one too many


def _blend_lanes(
    typing: Any,
    src: Any,
    top: Any,
    below: Any,
    step: Any,
    left: Any,
    right: Any,
    above: Any,
    under: Any,
    dst: Any,
    at: Any,
) -> Any:
    """Blend the four pixels around a point, LANES channels in one vector, which LLVM does not find by itself.

    The caller must have checked that LANES values can be read at `top + step` and `below + step` and written at `at`.
    """
    size, weight = types.int64, types.float32
    return types.none(src, size, size, size, weight, weight, weight, weight, dst, size), _generate


def _generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    src, top, below, step, left, right, above, under, dst, at = args
    floats = ir.VectorType(ir.FloatType(), LANES)

    def place(position: int, array: Any, index: Any, kind: Any) -> Any:
        made: Any = arrayobj.make_array
        data = made(signature.args[position])(context, builder, array).data
        vector = ir.VectorType(kind, LANES).as_pointer()
        return builder.bitcast(builder.gep(data, [index]), vector)

    def taken(index: Any) -> Any:
        kind = signature.args[0].dtype
        values = builder.load(place(0, src, index, context.get_data_type(kind)))
        values.align = kind.bitwidth // 8
        return values if kind == types.float32 else builder.uitofp(values, floats)

    def splat(value: Any) -> Any:
        unused, index = ir.Constant(floats, ir.Undefined), ir.IntType(32)
        first = builder.insert_element(unused, value, ir.Constant(index, 0))
        return builder.shuffle_vector(first, unused, ir.Constant(ir.VectorType(index, LANES), [0] * LANES))

    def mix(a: Any, a_weight: Any, b: Any, b_weight: Any) -> Any:
        return builder.fadd(builder.fmul(splat(a_weight), a), builder.fmul(splat(b_weight), b))

    upper = mix(taken(top), left, taken(builder.add(top, step)), right)
    lower = mix(taken(below), left, taken(builder.add(below, step)), right)
    result, kind = mix(upper, above, lower, under), signature.args[8].dtype
    if kind == types.uint8:
        result = builder.fptosi(result, ir.VectorType(ir.IntType(32), LANES))
        result = builder.trunc(result, ir.VectorType(ir.IntType(8), LANES))
    builder.store(result, place(8, dst, at, context.get_data_type(kind))).align = kind.bitwidth // 8
    return context.get_dummy_value()


_blend_pixel: Any = intrinsic(_blend_lanes)


@njit(nogil=True, cache=True, error_model="numpy")
def _reflected(at: Any, size: int) -> Any:
    twice = np.float32(2 * size)
    if at < ZERO:
        at = np.float32(2 * size * np.int64(-at / twice)) + at
        return at + twice if at < np.float32(-size) else -at - ONE
    at = at - np.float32(2 * size * np.int64(at / twice))
    return twice - at - ONE if at >= np.float32(size) else at


@njit(nogil=True, cache=True, error_model="numpy")
def _wrapped(at: Any, size: int) -> Any:
    turn = np.float32(size - 1)
    if at < ZERO:
        return at + np.float32(size * (np.int64(-at / turn) + 1))
    return at - np.float32(size * np.int64(at / turn))


@njit(nogil=True, cache=True, error_model="numpy")
def _map(row: Any, size: int, mode: int) -> None:
    """Bring the coordinates of a row inside, each of `mode`."""
    last = np.float32(size - 1)
    if mode == CONSTANT:
        for j in range(row.size):
            row[j] = row[j] if abs(row[j]) < np.float32(np.inf) else NOWHERE
        return
    if mode != NEAREST:
        for j in range(row.size):
            at = row[j]
            if not (at >= ZERO and at <= last):
                if size <= 1 or not abs(at) < FARTHEST:
                    row[j] = ZERO
                else:
                    row[j] = _reflected(at, size) if mode == REFLECT else _wrapped(at, size)
    for j in range(row.size):
        at = row[j] if row[j] > ZERO else ZERO
        row[j] = last if last < at else at


@njit(nogil=True, cache=True, error_model="numpy")
def _points(a: Any, first: int, rows: Any, columns: Any, height: int, width: int, mode: int, ys: Any, xs: Any) -> None:
    """Where output pixels look that lie in `columns`, and in `rows` below row `first`."""
    base = np.float32(first)
    projective = a[6] != ZERO or a[7] != ZERO
    for j in range(columns.size):
        y = base + rows[j]
        xs[j] = a[0] * columns[j] + a[1] * y + a[2]
        ys[j] = a[3] * columns[j] + a[4] * y + a[5]
    if projective:
        for j in range(columns.size):
            k = a[6] * columns[j] + a[7] * (base + rows[j]) + ONE
            xs[j] = xs[j] / k
            ys[j] = ys[j] / k
    _map(xs, width, mode)
    _map(ys, height, mode)
    if projective:
        for j in range(columns.size):
            k = a[6] * columns[j] + a[7] * (base + rows[j]) + ONE
            if k == ZERO:
                xs[j] = NOWHERE
                ys[j] = NOWHERE


@njit(nogil=True, cache=True)
def _round(row: Any, size: int, found: Any) -> None:
    """The nearest pixel of each coordinate, halves away from zero; -1 outside."""
    for j in range(row.size):
        far = min(abs(row[j]), BEYOND)
        whole = np.int32(far)
        whole = whole + np.int32(1) if far - np.float32(whole) >= HALF else whole
        found[j] = whole if (row[j] > -HALF) & (whole < size) else np.int32(-1)


@njit(nogil=True, cache=True)
def _split(row: Any, found: Any, low: Any, high: Any) -> None:
    """The pixel below each coordinate, kept in range of an int32, and the weights of that one and the next."""
    for j in range(row.size):
        floor = np.floor(row[j])
        low[j] = floor + ONE - row[j]
        high[j] = row[j] - floor
        found[j] = np.int32(min(max(floor, NOWHERE), BEYOND))


@njit(nogil=True, cache=True)
def _copy_points(src: Any, image: int, width: int, channels: int, y: Any, x: Any, fill: Any, dst: Any, at: int) -> None:
    for j in range(x.size):
        to = at + j * channels
        if (x[j] < 0) | (y[j] < 0):
            for c in range(channels):
                dst[np.uint64(to + c)] = fill
            continue
        of = image + (np.int64(y[j]) * width + x[j]) * channels
        if channels == 3:
            dst[np.uint64(to)] = src[np.uint64(of)]
            dst[np.uint64(to + 1)] = src[np.uint64(of + 1)]
            dst[np.uint64(to + 2)] = src[np.uint64(of + 2)]
        else:
            for c in range(channels):
                dst[np.uint64(to + c)] = src[np.uint64(of + c)]


@njit(nogil=True, cache=True)
def _blend_edge(
    src: Any,
    image: int,
    height: int,
    width: int,
    channels: int,
    y: int,
    x: int,
    left: Any,
    right: Any,
    above: Any,
    under: Any,
    fill: Any,
    dst: Any,
    at: int,
) -> None:
    """Blend the four pixels around a point where some of them are outside: those are the fill."""
    outside = np.float32(fill)
    top, bottom = (y >= 0) & (y < height), (y >= -1) & (y < height - 1)
    west, east = (x >= 0) & (x < width), (x >= -1) & (x < width - 1)
    if not ((top | bottom) & (west | east)):
        edge = left * outside + right * outside
        for c in range(channels):
            dst[np.uint64(at + c)] = above * edge + under * edge
        return
    of = image + (y * width + x) * channels
    below = of + width * channels
    for c in range(channels):
        a = np.float32(src[np.uint64(of + c)]) if top & west else outside
        b = np.float32(src[np.uint64(of + channels + c)]) if top & east else outside
        upper = left * a + right * b
        a = np.float32(src[np.uint64(below + c)]) if bottom & west else outside
        b = np.float32(src[np.uint64(below + channels + c)]) if bottom & east else outside
        lower = left * a + right * b
        dst[np.uint64(at + c)] = above * upper + under * lower


@njit(nogil=True, cache=True)
def _corners(y: Any, x: Any, image: int, height: int, width: int, channels: int, last: int, found: Any) -> None:
    """Where the upper left pixel of each point begins in `src`; -1 if one of the four is outside or after `last`."""
    for j in range(x.size):
        inside = (x[j] >= 0) & (y[j] >= 0) & (x[j] < width - 1) & (y[j] < height - 1)
        at = image + (np.int64(y[j]) * width + np.int64(x[j])) * channels
        found[j] = at if inside & (at <= last) else -1


@njit(nogil=True, cache=True)
def _blend_wide(
    src: Any, corners: Any, row: int, step: int, weights: Any, dst: Any, at: int, start: int, last: int
) -> int:
    """Blend pixels from `start` on in vectors, up to one with a corner outside or beyond `last`; returns which one."""
    j = start
    while j < last and corners[j] >= 0:
        top = corners[j]
        left, right, above, under = weights[0, j], weights[1, j], weights[2, j], weights[3, j]
        _blend_pixel(src, top, top + row, step, left, right, above, under, dst, at + j * step)
        j += 1
    return j


@njit(nogil=True, cache=True)
def _blend_points(
    src: Any,
    image: int,
    height: int,
    width: int,
    channels: int,
    y: Any,
    x: Any,
    corners: Any,
    weights: Any,
    fill: Any,
    dst: Any,
    at: int,
) -> None:
    """Blend the four pixels around each point; `at` is where the results begin in `dst`."""
    # Vectors read and write LANES values a pixel: those must not leave `src` and `dst`.
    wide = (channels == 3) | (channels == 4)
    row = width * channels
    _corners(y, x, image, height, width, channels, src.size - row - channels - LANES, corners)
    last = min(x.size, (dst.size - at - LANES) // channels + 1) if wide else 0
    j: Any = np.int64(0)  # a plain 0 would have `_blend_wide` compiled twice
    while j < x.size:
        if wide:  # in order: the lane too many of one pixel is written over by the next
            j = _blend_wide(src, corners, row, channels, weights, dst, at, j, last)
            if j == x.size:
                return
        left, right, above, under = weights[0, j], weights[1, j], weights[2, j], weights[3, j]
        yj, xj = int(y[j]), int(x[j])
        _blend_edge(
            src, image, height, width, channels, yj, xj, left, right, above, under, fill, dst, at + j * channels
        )
        j += 1


@njit(nogil=True, cache=True)
def _fits(size: int, count: int, height: int, width: int, channels: int) -> bool:
    """Whether `size` is the product of the others, step by step so that none can overflow."""
    if min(count, height, width, channels) < 1:
        return size == 0
    if channels > size or width > size // channels or height > size // (width * channels):
        return False
    image = width * channels * height
    return count <= size // image and count * image == size


@njit(nogil=True, cache=True)
def transform(
    src: Any,
    count: int,
    height: int,
    width: int,
    channels: int,
    transforms: Any,
    mode: int,
    bilinear: bool,
    fill: Any,
    out_height: int,
    out_width: int,
    dst: Any,
) -> int:
    """Transform each image of the flat `src` into the flat `dst`; 0 or BAD_ARGUMENT.

    `transforms` is float32 of shape (1, 8) or (count, 8); `fill` an array of one value.
    """
    if (
        min(count, height, width, channels, out_height, out_width) < 1
        or max(height, width, out_height, out_width) >= 1 << 24
        or not _fits(src.size, count, height, width, channels)
        or not _fits(dst.size, count, out_height, out_width, channels)
        or transforms.shape[1] != 8
        or (transforms.shape[0] != 1 and transforms.shape[0] != count)
        or fill.size != 1
    ):
        return BAD_ARGUMENT
    step = min(max(PIXELS // out_width, 1), out_height)  # so many rows at a time
    floats = np.empty((8, step * out_width), np.float32)
    rows, columns = floats[0], floats[1]
    whole = np.empty((2, step * out_width), np.int32)
    corners, weights = np.empty(step * out_width, np.int64), floats[4:]
    for j in range(columns.size):
        rows[j] = np.float32(j // out_width)
        columns[j] = np.float32(j % out_width)
    for n in range(count):
        a = transforms[n if transforms.shape[0] > 1 else 0]
        image = n * height * width * channels
        for i in range(0, out_height, step):
            size = min(step, out_height - i) * out_width
            at = (n * out_height + i) * out_width * channels
            ys, xs = floats[2, :size], floats[3, :size]
            y, x = whole[0, :size], whole[1, :size]
            _points(a, i, rows[:size], columns[:size], height, width, mode, ys, xs)
            if bilinear:
                _split(xs, x, weights[0], weights[1])
                _split(ys, y, weights[2], weights[3])
                _blend_points(src, image, height, width, channels, y, x, corners, weights, fill[0], dst, at)
            else:
                _round(xs, width, x)
                _round(ys, height, y)
                _copy_points(src, image, width, channels, y, x, fill[0], dst, at)
    return 0


def warm_up() -> None:
    """Compile for what most pipelines do: uint8 and float32 images."""
    transforms = np.array([[1, 0, 0, 0, 1, 0, 0, 0]], np.float32)
    for array in (np.zeros(12, np.uint8), np.zeros(12, np.float32)):
        fill, out = np.zeros(1, array.dtype), np.zeros_like(array)
        array.flags.writeable = transforms.flags.writeable = fill.flags.writeable = False
        transform(array, 1, 2, 2, 3, transforms, CONSTANT, False, fill, 2, 2, out)
