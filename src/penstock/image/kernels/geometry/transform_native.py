"""Projective transforms, compiled: the numbers of the reference, bit for bit, without the GIL.

Imported inside functions only: numba takes a third of a second to load. No fast-math flag is used, so that the order of
the float32 operations is the one written here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compiled.kernel import helper, kernel
from penstock.image.kernels.bounds import BAD_ARGUMENT, fits
from penstock.image.kernels.geometry.points_native import points_of, rounded, split
from penstock.image.kernels.geometry.reading_native import blend_points, copy_points
from penstock.image.kernels.geometry.transform_reference import CONSTANT

PIXELS = 512  # whose points are found at once: vectors run long and the arrays stay in the nearest cache


@helper
def points_memory(out_height: int, out_width: int) -> Any:
    """What finding the points of some rows at a time needs: numbers of rows and columns, coordinates, weights."""
    step = min(max(PIXELS // out_width, 1), out_height)  # so many rows at a time
    floats, corners = np.empty((8, step * out_width), np.float32), np.empty(step * out_width, np.int64)
    for j in range(step * out_width):
        floats[0, j] = np.float32(j // out_width)
        floats[1, j] = np.float32(j % out_width)
    return floats, np.empty((2, step * out_width), np.int32), corners, step


@helper
def transform_one(
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
        points_of(a, i, floats[0, :size], floats[1, :size], height, width, mode, ys, xs)
        if bilinear:
            split(xs, x, weights[0], weights[1])
            split(ys, y, weights[2], weights[3])
            blend_points(src, image, height, width, channels, y, x, corners, weights, fill, dst, at)
        else:
            rounded(xs, width, x)
            rounded(ys, height, y)
            copy_points(src, image, width, channels, y, x, fill, dst, at)


@kernel
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

    `transforms` is float32 of shape (1, 8) or (count, 8); `fill` has a value for each channel.
    """
    if (
        max(height, width, out_height, out_width) >= 1 << 24
        or not fits(src.size, count, height, width, channels)
        or not fits(dst.size, count, out_height, out_width, channels)
        or transforms.shape[1] != 8
        or (transforms.shape[0] != 1 and transforms.shape[0] != count)
        or fill.size != channels
    ):
        return BAD_ARGUMENT
    points = points_memory(out_height, out_width)
    for n in range(count):
        a = transforms[n if transforms.shape[0] > 1 else 0]
        image, at = n * height * width * channels, n * out_height * out_width * channels
        transform_one(
            src, image, height, width, channels, a, mode, bilinear, fill, out_height, out_width, points, dst, at
        )
    return 0


def warm_up() -> None:
    """Compile for uint8 and float32 images."""
    transforms = np.array([[1, 0, 0, 0, 1, 0, 0, 0]], np.float32)
    for dtype in (np.uint8, np.float32):
        pixels, fill = np.zeros(12, dtype), np.zeros(3, dtype)
        for array in (pixels, transforms, fill):
            array.flags.writeable = False
        transform(pixels, 1, 2, 2, 3, transforms, CONSTANT, False, fill, 2, 2, np.zeros(12, dtype))
