"""Compiled projective transforms, with the bits of the reference. They are parts of the kernel of `moves_native`.

No fast-math flag is used: the order of the float32 operations is the one written here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from penstock.image.geometry.transform_reference import CONSTANT, FARTHEST, NEAREST, NOWHERE, REFLECT
from penstock.image.kernels import HALF, ONE, ZERO
from penstock.image.kernels.instructions import F32, I8, I32, Code, vector_step
from penstock.native.kernel import helper, maker

BEYOND = np.float32(2**25)  # counts as far outside, because a side has less than 2**24 pixels


@helper
def _reflected(at, size):
    twice = np.float32(2 * size)
    if at < ZERO:
        at = np.float32(2 * size * np.int64(-at / twice)) + at
        return at + twice if at < np.float32(-size) else -at - ONE
    at = at - np.float32(2 * size * np.int64(at / twice))
    return twice - at - ONE if at >= np.float32(size) else at


@helper
def _wrapped(at, size):
    turn = np.float32(size - 1)
    if at < ZERO:
        return at + np.float32(size * (np.int64(-at / turn) + 1))
    return at - np.float32(size * np.int64(at / turn))


@helper
def _near(row, size):
    """Return True if all coordinates are on the image or its first mirror image on either side."""
    low, high = np.float32(-size), np.float32(2 * size)
    near = 0
    for j in range(row.size):
        near += (row[j] >= low) & (row[j] < high)
    return bool(near == row.size)


@helper
def _map(row, size, mode):
    """Map the coordinates of a row into the image, according to `mode`."""
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


@helper
def points_of(a, first, rows, columns, height, width, mode, ys, xs):
    """Compute the source points of output pixels in `columns`, and in `rows` counted from row `first`."""
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


@helper
def rounded(row, size, found):
    """Compute the nearest pixel of each coordinate, halves away from zero, or -1 outside."""
    for j in range(row.size):
        far = min(abs(row[j]), BEYOND)
        whole = np.int32(far)
        whole = whole + np.int32(1) if far - np.float32(whole) >= HALF else whole
        found[j] = whole if (row[j] > -HALF) & (whole < size) else np.int32(-1)


@helper
def split(row, found, low, high):
    """Compute the pixel below each coordinate, limited to int32, and the weights of this pixel and the next."""
    for j in range(row.size):
        floor = np.floor(row[j])
        low[j] = floor + ONE - row[j]
        high[j] = row[j] - floor
        found[j] = np.int32(min(max(floor, NOWHERE), BEYOND))


LANES = 4  # values blended at once per pixel; a pixel of three channels has an extra one


def _blend_pixel(code: Code) -> None:
    src, dst = 0, 8
    top, below, step, left, right, above, under = code.args[1:8]
    b = code.builder

    def taken(index: Any) -> Any:
        values = code.load(code.at(src, index), LANES)
        return values if values.type.element == F32 else b.uitofp(values, ir.VectorType(F32, LANES))

    def mix(one: Any, one_weight: Any, other: Any, other_weight: Any) -> Any:
        first, second = code.splat(one_weight, LANES), code.splat(other_weight, LANES)
        return b.fadd(b.fmul(first, one), b.fmul(second, other))

    upper = mix(taken(top), left, taken(b.add(top, step)), right)
    lower = mix(taken(below), left, taken(b.add(below, step)), right)
    result = mix(upper, above, lower, under)
    if code.signature.args[dst].dtype == types.uint8:
        result = code.narrowed(b.fptosi(result, ir.VectorType(I32, LANES)), I8)
    code.store(result, code.at(dst, code.args[9]))


blend_pixel = vector_step(_blend_pixel, "aiiiffffai")
"""blend_pixel(src, top, below, step, left, right, above, under, dst, at): the four pixels around a point, blended.

LANES values can be read at `top + step` and `below + step`, and written at `at`. LLVM does not find this vector.
"""


@helper
def copy_points(src, image, width, channels, y, x, fill, dst, at):
    for j in range(x.size):
        to = at + j * channels
        if (x[j] < 0) | (y[j] < 0):
            for c in range(channels):
                dst[np.uint64(to + c)] = fill[np.uint64(c)]
            continue
        of = image + (np.int64(y[j]) * width + x[j]) * channels
        if channels == 3:
            dst[np.uint64(to)] = src[np.uint64(of)]
            dst[np.uint64(to + 1)] = src[np.uint64(of + 1)]
            dst[np.uint64(to + 2)] = src[np.uint64(of + 2)]
        else:
            for c in range(channels):
                dst[np.uint64(to + c)] = src[np.uint64(of + c)]


@helper
def _blend_edge(src, image, height, width, channels, y, x, left, right, above, under, fill, dst, at):
    """Blend the four pixels around a point if some of them are outside. Those have the fill value."""
    top, bottom = (y >= 0) & (y < height), (y >= -1) & (y < height - 1)
    west, east = (x >= 0) & (x < width), (x >= -1) & (x < width - 1)
    if not ((top | bottom) & (west | east)):
        for c in range(channels):
            outside = np.float32(fill[np.uint64(c)])
            edge = left * outside + right * outside
            dst[np.uint64(at + c)] = above * edge + under * edge
        return
    of = image + (y * width + x) * channels
    below = of + width * channels
    for c in range(channels):
        outside = np.float32(fill[np.uint64(c)])
        a = np.float32(src[np.uint64(of + c)]) if top & west else outside
        b = np.float32(src[np.uint64(of + channels + c)]) if top & east else outside
        upper = left * a + right * b
        a = np.float32(src[np.uint64(below + c)]) if bottom & west else outside
        b = np.float32(src[np.uint64(below + channels + c)]) if bottom & east else outside
        lower = left * a + right * b
        dst[np.uint64(at + c)] = above * upper + under * lower


@helper
def _corners(y, x, image, height, width, channels, last, found):
    """Compute the position of each point's upper left pixel in `src`, or -1 if a corner is outside or after `last`."""
    for j in range(x.size):
        inside = (x[j] >= 0) & (y[j] >= 0) & (x[j] < width - 1) & (y[j] < height - 1)
        at = image + (np.int64(y[j]) * width + np.int64(x[j])) * channels
        found[j] = at if inside & (at <= last) else -1


@helper
def _blend_wide(src, corners, row, step, weights, dst, at, start, last):
    """Blend pixels from `start` on in vectors, up to one with a corner outside or after `last`. Return its number."""
    j = start
    while j < last and corners[j] >= 0:
        top = corners[j]
        left, right, above, under = weights[0, j], weights[1, j], weights[2, j], weights[3, j]
        blend_pixel(src, top, top + row, step, left, right, above, under, dst, at + j * step)
        j += 1
    return j


@helper
def blend_points(src, image, height, width, channels, y, x, corners, weights, fill, dst, at):
    """Blend the four pixels around each point. Results begin at `at` in `dst`."""
    # Vectors read and write LANES values per pixel, which must stay inside `src` and `dst`.
    wide = (channels == 3) | (channels == 4)
    row = width * channels
    _corners(y, x, image, height, width, channels, src.size - row - channels - LANES, corners)
    last = min(x.size, (dst.size - at - LANES) // channels + 1) if wide else 0
    j: Any = np.int64(0)  # a plain 0 would compile `_blend_wide` twice
    while j < x.size:
        if wide:  # in order: the next pixel overwrites the extra lane
            j = _blend_wide(src, corners, row, channels, weights, dst, at, j, last)
            if j == x.size:
                return
        left, right, above, under = weights[0, j], weights[1, j], weights[2, j], weights[3, j]
        yj, xj = int(y[j]), int(x[j])
        _blend_edge(
            src, image, height, width, channels, yj, xj, left, right, above, under, fill, dst, at + j * channels
        )
        j += 1


PIXELS = 512  # points computed at once: long vectors, and arrays that stay in the first cache


@maker
def points_memory(out_height, out_width):
    """Return memory for the points of some rows: numbers of rows and columns, coordinates, weights."""
    step = min(max(PIXELS // out_width, 1), out_height)  # rows per step
    floats, corners = np.empty((8, step * out_width), np.float32), np.empty(step * out_width, np.int64)
    for j in range(step * out_width):
        floats[0, j] = np.float32(j // out_width)
        floats[1, j] = np.float32(j % out_width)
    return floats, np.empty((2, step * out_width), np.int32), corners, step


@helper
def transform_one(
    src, image, height, width, channels, a, mode, bilinear, fill, out_height, out_width, points, dst, start
):
    """Transform the image at `image` by the eight numbers `a` into `dst`, from `start` on."""
    floats, whole, corners, step = points
    weights = floats[4:]
    for i in range(0, out_height, step):
        size = min(step, out_height - i) * out_width
        at = start + i * out_width * channels
        ys, xs = floats[2, :size], floats[3, :size]
        y, x = whole[0, :size], whole[1, :size]
        points_of(a, i, floats[0, :size], floats[1, :size], height, width, mode, ys, xs)
        if bilinear:
            split(xs, x, weights[0], weights[1])
            split(ys, y, weights[2], weights[3])
            blend_points(src, image, height, width, channels, y, x, corners, weights, fill, dst, at)
        else:
            rounded(xs, width, x)
            rounded(ys, height, y)
            copy_points(src, image, width, channels, y, x, fill, dst, at)
