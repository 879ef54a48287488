"""Projective transforms in plain numpy, the reference that the compiled kernel matches bit for bit.

The formulas are those of TensorFlow's ImageProjectiveTransformV3 (Eigen, float32, in this order). The bits are equal
wherever C++ defines the result. Eight numbers a map the output pixel (x, y) to the input point `((a0 x + a1 y + a2) /
k, (a3 x + a4 y + a5) / k)` with `k = a6 x + a7 y + 1`. If k is 0, the result is the fill.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

CONSTANT, REFLECT, WRAP, NEAREST = range(4)  # modes for points beyond the edge
NOWHERE = np.float32(-5)  # no pixel is near this coordinate, so its value is the fill
FARTHEST = np.float32(2**60)  # beyond, TensorFlow's integer arithmetic overflows; here the result is the first pixel

Float = np.float32


class ProjectiveTransform(NamedTuple):
    """A transform for the kernels: the interpolation, the mode and the value outside.

    `numbers` has one row of eight numbers for all images, or one for each. `fill` is a value of the images' dtype, or
    one for each channel.
    """

    numbers: npt.NDArray[np.float32]
    mode: int
    bilinear: bool
    fill: Any


def transform(images: npt.NDArray[Any], how: ProjectiveTransform, size: tuple[int, ...]) -> npt.NDArray[Any]:
    """Compute each pixel of the results (N, *size, C) from `images` (N, H, W, C).

    >>> row = np.array([[[[1], [2], [3]]]], np.uint8)
    >>> left = np.array([[1, 0, 1, 0, 1, 0, 0, 0]], np.float32)
    >>> transform(row, ProjectiveTransform(left, CONSTANT, False, np.uint8(9)), (1, 3)).ravel().tolist()
    [2, 3, 9]
    """
    count, height, width, _ = images.shape
    y, x = (np.broadcast_to(axis, (count, *size)) for axis in _points(how.numbers, size, (height, width), how.mode))
    batch = np.arange(count)[:, None, None]

    def read(at_y: npt.NDArray[np.float32], at_x: npt.NDArray[np.float32]) -> npt.NDArray[Any]:
        inside = (at_y >= 0) & (at_y < height) & (at_x >= 0) & (at_x < width)
        rows = np.where(inside, at_y, 0).astype(np.int64)
        columns = np.where(inside, at_x, 0).astype(np.int64)
        return np.where(inside[..., None], images[batch, rows, columns], how.fill)

    if not how.bilinear:
        return read(_rounded(y), _rounded(x))
    with np.errstate(invalid="ignore", over="ignore"):
        y_floor, x_floor = np.floor(y), np.floor(x)
        y_ceil, x_ceil = y_floor + Float(1), x_floor + Float(1)
        left, right = (x_ceil - x)[..., None], (x - x_floor)[..., None]
        above, below = (y_ceil - y)[..., None], (y - y_floor)[..., None]
        upper = left * read(y_floor, x_floor).astype(Float) + right * read(y_floor, x_ceil).astype(Float)
        lower = left * read(y_ceil, x_floor).astype(Float) + right * read(y_ceil, x_ceil).astype(Float)
        return (above * upper + below * lower).astype(images.dtype)


def _points(
    transforms: npt.NDArray[np.float32], size: tuple[int, ...], image_size: tuple[int, ...], mode: int
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return the source point of each output pixel: y and x, each (transforms, *size)."""
    a = transforms.astype(Float)[:, :, None, None]
    y = np.arange(size[0]).astype(Float)[:, None]
    x = np.arange(size[1]).astype(Float)
    with np.errstate(all="ignore"):
        k = a[:, 6] * x + a[:, 7] * y + Float(1)
        from_x = (a[:, 0] * x + a[:, 1] * y + a[:, 2]) / k
        from_y = (a[:, 3] * x + a[:, 4] * y + a[:, 5]) / k
        found = _mapped(from_y, image_size[0], mode), _mapped(from_x, image_size[1], mode)
    return np.where(k == 0, NOWHERE, found[0]), np.where(k == 0, NOWHERE, found[1])


def _mapped(at: npt.NDArray[np.float32], size: int, mode: int) -> npt.NDArray[np.float32]:
    """Map coordinates beyond the edge into the image, according to `mode`. CONSTANT leaves them outside."""
    if mode == CONSTANT:
        return np.where(np.isfinite(at), at, NOWHERE)
    last = Float(size - 1)
    if mode != NEAREST:
        near = np.where(np.abs(at) < FARTHEST, at, Float(0))
        inner = (near >= 0) & (near <= last)
        at = np.where(inner, near, _reflected(near, size) if mode == REFLECT else _wrapped(near, size))
    return np.where(at > 0, np.minimum(at, last), Float(0))


def _reflected(at: npt.NDArray[np.float32], size: int) -> npt.NDArray[np.float32]:
    """Reflect coordinates: [abcd] continues as [dcba|abcd|dcba]."""
    if size <= 1:
        return np.zeros_like(at)
    twice = Float(2 * size)
    below = (2 * size * (-at / twice).astype(np.int64)).astype(Float) + at
    below = np.where(below < Float(-size), below + twice, -below - Float(1))
    above = at - (2 * size * (at / twice).astype(np.int64)).astype(Float)
    above = np.where(above >= Float(size), twice - above - Float(1), above)
    return np.where(at < 0, below, above)


def _wrapped(at: npt.NDArray[np.float32], size: int) -> npt.NDArray[np.float32]:
    """Wrap coordinates: [abcd] continues as [abcd|abcd|abcd]. TensorFlow counts `size - 1` pixels per period."""
    if size <= 1:
        return np.zeros_like(at)
    turn = Float(size - 1)
    below = at + (size * ((-at / turn).astype(np.int64) + 1)).astype(Float)
    above = at - (size * (at / turn).astype(np.int64)).astype(Float)
    return np.where(at < 0, below, above)


def _rounded(at: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the nearest integer, halves away from zero, like C's roundf."""
    size = np.abs(at)
    whole = np.floor(size)
    with np.errstate(invalid="ignore"):
        rounded: npt.NDArray[np.float32] = np.copysign(whole + (size - whole >= Float(0.5)), at).astype(Float)
    return rounded
