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
MULTIPLY, DIVIDE, ADD, SUBTRACT = range(4)
NOWHERE = np.float32(-5)
FARTHEST = np.float32(2**60)
BEYOND = np.float32(2**25)  # as good as any coordinate outside: a side has less than 2**24 pixels
ZERO, HALF, ONE = np.float32(0), np.float32(0.5), np.float32(1)

PIXELS = 512  # whose points are found at once: vectors run long and the arrays stay in the nearest cache
SLACK = 64  # values behind an image in memory of its own, so that its last pixels are blended like all others
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


@njit(nogil=True, cache=True)
def _near(row: Any, size: int) -> bool:
    """Whether all coordinates are on the image or its first mirror image to either side."""
    low, high = np.float32(-size), np.float32(2 * size)
    near = 0
    for j in range(row.size):
        near += (row[j] >= low) & (row[j] < high)
    return bool(near == row.size)


@njit(nogil=True, cache=True, error_model="numpy")
def _map(row: Any, size: int, mode: int) -> None:
    """Bring the coordinates of a row inside, each of `mode`."""
    last = np.float32(size - 1)
    if mode == CONSTANT:
        for j in range(row.size):
            row[j] = row[j] if abs(row[j]) < np.float32(np.inf) else NOWHERE
        return
    if mode == REFLECT and size > 1 and _near(row, size):
        for j in range(row.size):
            at = row[j]
            row[j] = -at - ONE if at < ZERO else np.float32(2 * size) - at - ONE if at >= np.float32(size) else at
    elif mode != NEAREST:
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
def _points_memory(out_height: int, out_width: int) -> Any:
    """What finding the points of some rows at a time needs: numbers of rows and columns, coordinates, weights."""
    step = min(max(PIXELS // out_width, 1), out_height)  # so many rows at a time
    floats, corners = np.empty((8, step * out_width), np.float32), np.empty(step * out_width, np.int64)
    for j in range(step * out_width):
        floats[0, j] = np.float32(j // out_width)
        floats[1, j] = np.float32(j % out_width)
    return floats, np.empty((2, step * out_width), np.int32), corners, step


@njit(nogil=True, cache=True)
def _transform_one(
    src: Any,
    image: int,
    height: int,
    width: int,
    channels: int,
    a: Any,
    mode: int,
    bilinear: bool,
    fill: Any,
    out_height: int,
    out_width: int,
    points: Any,
    dst: Any,
    start: int,
) -> None:
    """Transform the image that begins at `image` by the eight numbers `a` into `dst` from `start` on."""
    floats, whole, corners, step = points
    weights = floats[4:]
    for i in range(0, out_height, step):
        size = min(step, out_height - i) * out_width
        at = start + i * out_width * channels
        ys, xs = floats[2, :size], floats[3, :size]
        y, x = whole[0, :size], whole[1, :size]
        _points(a, i, floats[0, :size], floats[1, :size], height, width, mode, ys, xs)
        if bilinear:
            _split(xs, x, weights[0], weights[1])
            _split(ys, y, weights[2], weights[3])
            _blend_points(src, image, height, width, channels, y, x, corners, weights, fill, dst, at)
        else:
            _round(xs, width, x)
            _round(ys, height, y)
            _copy_points(src, image, width, channels, y, x, fill, dst, at)


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
    points = _points_memory(out_height, out_width)
    for n in range(count):
        a = transforms[n if transforms.shape[0] > 1 else 0]
        image, at = n * height * width * channels, n * out_height * out_width * channels
        _transform_one(
            src, image, height, width, channels, a, mode, bilinear, fill[0], out_height, out_width, points, dst, at
        )
    return 0


@njit(nogil=True, cache=True)
def _picked(
    src: Any, row: int, channels: int, columns: Any, first: int, last: int, fill: Any, dst: Any, at: int
) -> None:
    """Write the pixels of one row that stand at `columns[first:last]`, where -1 is `fill`."""
    for j in range(first, last):
        to = at + j * channels
        if columns[j] < 0:
            for c in range(channels):
                dst[np.uint64(to + c)] = fill
            continue
        of = row + columns[j] * channels
        if channels == 3:
            dst[np.uint64(to)] = src[np.uint64(of)]
            dst[np.uint64(to + 1)] = src[np.uint64(of + 1)]
            dst[np.uint64(to + 2)] = src[np.uint64(of + 2)]
        else:
            for c in range(channels):
                dst[np.uint64(to + c)] = src[np.uint64(of + c)]


@njit(nogil=True, cache=True)
def _window(src: Any, image: int, width: int, channels: int, rows: Any, columns: Any, fill: Any, dst: Any) -> None:
    """Write the pixels at `rows` and `columns` of an image, where -1 is `fill`."""
    first, last, start = 0, 0, 0  # the longest run of columns that follow one another
    for j in range(columns.size):
        if columns[j] < 0 or (j > start and columns[j] != columns[j - 1] + 1):
            start = j + 1 if columns[j] < 0 else j
        if j + 1 - start > last - first:
            first, last = start, j + 1
    for i in range(rows.size):
        at = i * columns.size * channels
        if rows[i] < 0:
            for k in range(at, at + columns.size * channels):
                dst[np.uint64(k)] = fill
            continue
        row = image + rows[i] * width * channels
        _picked(src, row, channels, columns, 0, first, fill, dst, at)
        if last > first:
            of, to = row + columns[first] * channels, at + first * channels
            for k in range((last - first) * channels):
                dst[np.uint64(to + k)] = src[np.uint64(of + k)]
        _picked(src, row, channels, columns, last, columns.size, fill, dst, at)


@njit(nogil=True, cache=True, error_model="numpy")
def _finished(src: Any, of: int, codes: Any, numbers: Any, dst: Any, at: int, count: int) -> None:
    """Write `count` values of `src`, after the arithmetic `codes` with the first `count` of `numbers`."""
    for k in range(count):
        dst[np.uint64(at + k)] = src[np.uint64(of + k)]
    for step in range(codes.size):
        code, row = codes[step], numbers[step]
        if code == MULTIPLY:
            for k in range(count):
                dst[np.uint64(at + k)] = dst[np.uint64(at + k)] * row[np.uint64(k)]
        elif code == DIVIDE:
            for k in range(count):
                dst[np.uint64(at + k)] = dst[np.uint64(at + k)] / row[np.uint64(k)]
        elif code == ADD:
            for k in range(count):
                dst[np.uint64(at + k)] = dst[np.uint64(at + k)] + row[np.uint64(k)]
        else:
            for k in range(count):
                dst[np.uint64(at + k)] = dst[np.uint64(at + k)] - row[np.uint64(k)]


@njit(nogil=True, cache=True)
def _covered(dst: Any, at: int, height: int, width: int, channels: int, box: Any, values: Any) -> None:
    """Write `values`, one per channel, into the part of the box (top, left, height, width) that is in the image."""
    for i in range(max(box[0], 0), min(box[0] + box[2], height)):
        for j in range(max(box[1], 0), min(box[1] + box[3], width)):
            to = at + (i * width + j) * channels
            for c in range(channels):
                dst[np.uint64(to + c)] = values[c]


@njit(nogil=True, cache=True)
def _within(places: Any, size: int) -> bool:
    """Whether these are rows or columns of an image of that size, or -1."""
    near = True
    for n in range(places.shape[0]):
        for i in range(places.shape[1]):
            near = near & (places[n, i] >= -1) & (places[n, i] < size)
    return near


@njit(nogil=True, cache=True)
def moves(
    src: Any,
    count: int,
    height: int,
    width: int,
    channels: int,
    rows: Any,
    columns: Any,
    outside: Any,
    transforms: Any,
    mode: int,
    bilinear: bool,
    fill: Any,
    codes: Any,
    numbers: Any,
    boxes: Any,
    covers: Any,
    dst: Any,
) -> int:
    """Move, change and cover each image of the flat `src` on its way into the flat `dst`; 0 or BAD_ARGUMENT.

    First the pixels at `rows` (count, out height) and `columns` (count, out width) are taken, -1 being `outside`. Then
    comes a transform, if `transforms` has rows, (count, 8) or (1, 8). Then comes arithmetic: `codes` in float32, with
    `numbers` for the values of some pixels, which repeat, (codes, pixels * channels). Last are covered `boxes` (count,
    covers, 4) with `covers` (covers, channels). `outside` and `fill` are arrays of one value.
    """
    out_height, out_width = rows.shape[1], columns.shape[1]
    if (
        min(count, height, width, channels, out_height, out_width) < 1
        or max(height, width, out_height, out_width) >= 1 << 24
        or not _fits(src.size, count, height, width, channels)
        or not _fits(dst.size, count, out_height, out_width, channels)
        or min(rows.shape[0], columns.shape[0], boxes.shape[0]) < count
        or not (_within(rows, height) and _within(columns, width))
        or not (transforms.shape[0] <= 1 or transforms.shape[0] == count)
        or transforms.shape[1] != 8
        or min(outside.size, fill.size) < 1
        or numbers.shape[0] != codes.size
        or numbers.shape[1] < channels
        or numbers.shape[1] % channels != 0
        or boxes.shape[1] != covers.shape[0]
        or boxes.shape[2] != 4
        or covers.shape[1] != channels
    ):
        return BAD_ARGUMENT
    size, run = out_height * out_width * channels, numbers.shape[1]
    window = np.empty(size + SLACK, src.dtype)
    turned = np.empty(size + SLACK if transforms.shape[0] else 0, src.dtype)
    points = _points_memory(out_height, out_width)
    for n in range(count):
        _window(src, n * height * width * channels, width, channels, rows[n], columns[n], outside[0], window)
        now = window
        if transforms.shape[0]:
            a, side = transforms[n if transforms.shape[0] > 1 else 0], (out_height, out_width)
            _transform_one(window, 0, *side, channels, a, mode, bilinear, fill[0], *side, points, turned, 0)
            now = turned
        at = n * size
        for i in range(0, size, run):
            _finished(now, i, codes, numbers, dst, at + i, min(run, size - i))
        for k in range(covers.shape[0]):
            _covered(dst, at, out_height, out_width, channels, boxes[n, k], covers[k])
    return 0


def warm_up() -> None:
    """Compile for what most pipelines do: uint8 and float32 images, the first also on their way to float32."""
    transforms, numbers = np.array([[1, 0, 0, 0, 1, 0, 0, 0]], np.float32), np.ones((1, 6), np.float32)
    places, codes, boxes = np.zeros((1, 2), np.int64), np.zeros(1, np.int64), np.zeros((1, 1, 4), np.int64)
    for array in (np.zeros(12, np.uint8), np.zeros(12, np.float32)):
        fill, out = np.zeros(1, array.dtype), np.zeros_like(array)
        for each in (array, transforms, fill):
            each.flags.writeable = False
        transform(array, 1, 2, 2, 3, transforms, CONSTANT, False, fill, 2, 2, out)
        sizes, turn = (1, 2, 2, 3), (transforms, CONSTANT, True, fill)
        for finished in {array.dtype, np.dtype(np.float32)}:
            covers, result = np.zeros((1, 3), finished), np.zeros(12, finished)
            moves(array, *sizes, places, places, fill, *turn, codes, numbers, boxes, covers, result)
