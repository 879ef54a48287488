"""What is read at points of an image, compiled: the nearest pixel, or four of them blended."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from penstock.compiled.kernel import helper
from penstock.image.kernels.jpeg.vectors import F32, I8, I32, Code, vector_step

LANES = 4  # values blended at once per pixel; a pixel of three channels has one too many


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
def copy_points(src: Any, image: int, width: int, channels: int, y: Any, x: Any, fill: Any, dst: Any, at: int) -> None:
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
def _corners(y: Any, x: Any, image: int, height: int, width: int, channels: int, last: int, found: Any) -> None:
    """Where the upper left pixel of each point begins in `src`; -1 if one of the four is outside or after `last`."""
    for j in range(x.size):
        inside = (x[j] >= 0) & (y[j] >= 0) & (x[j] < width - 1) & (y[j] < height - 1)
        at = image + (np.int64(y[j]) * width + np.int64(x[j])) * channels
        found[j] = at if inside & (at <= last) else -1


@helper
def _blend_wide(
    src: Any, corners: Any, row: int, step: int, weights: Any, dst: Any, at: int, start: int, last: int
) -> int:
    """Blend pixels from `start` on in vectors, up to one with a corner outside or beyond `last`; returns which one."""
    j = start
    while j < last and corners[j] >= 0:
        top = corners[j]
        left, right, above, under = weights[0, j], weights[1, j], weights[2, j], weights[3, j]
        blend_pixel(src, top, top + row, step, left, right, above, under, dst, at + j * step)
        j += 1
    return j


@helper
def blend_points(
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
