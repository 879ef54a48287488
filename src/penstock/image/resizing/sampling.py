"""Nearest-neighbour and bilinear resizing.

The bilinear resize writes into memory of the caller, such as an image's place in a batch. The nearest-neighbour resize
takes arrays of any dtype.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.errors import InvalidArgumentError
from penstock.image.resizing import reference
from penstock.image.resizing.reference import Flip, bilinear_taps, nearest_taps
from penstock.native.library import Kernels

_BILINEAR = Kernels("penstock.image.resizing.bilinear_native")


def resize_bilinear_into(
    src: npt.NDArray[Any],
    dst: npt.NDArray[Any],
    *,
    multiply: float | None = None,
    divide: float | None = None,
    flip_left_right: Flip = "",
    flip_up_down: Flip = "",
) -> None:
    """Write the bilinear resize of `src` to the size of `dst` into `dst`, with scaling and flips.

    Each value equals, to the last bit, the steps done one by one: `resize(src, size)`, then `* multiply` or
    `/ divide`; division is kept apart because a float32 division differs from multiplying by the reciprocal. A flip is
    "before" or "after" the resize. Runs without the GIL, for all images of a batch in one go.

    >>> batch = np.zeros((2, 2, 2, 3), np.float32)
    >>> resize_bilinear_into(np.full((5, 7, 3), 51, np.uint8), batch[1], divide=255.0)
    >>> batch[:, 0, 0, 0].tolist()
    [0.0, 0.20000000298023224]

    Args:
        src: uint8 or float32, (H, W, C) or (N, H, W, C).
        dst: C-contiguous float32, or uint8 for an unscaled uint8 `src` (truncated, as a cast does); of the same rank,
            N and C.
        multiply: factor applied to each result, as float32.
        divide: divisor applied to each result, as float32; not both.
        flip_left_right: mirror the columns.
        flip_up_down: mirror the rows.

    Raises:
        InvalidArgumentError: shapes, dtypes or the scaling do not fit.
    """
    _check(src, dst, multiply, divide)
    if dst.size == 0:
        return
    height, width, channels = src.shape[-3:]
    y = bilinear_taps(height, dst.shape[-3], flip_up_down)
    x = bilinear_taps(width, dst.shape[-2], flip_left_right)
    native = _BILINEAR.loaded()
    if native is None:
        whole = src if src.ndim == 4 else src[None]
        result = reference.resize_bilinear(whole, y, x, multiply=multiply, divide=divide)
        dst[...] = (result if src.ndim == 4 else result[0]).astype(dst.dtype)
        return
    pixels = np.require(src, requirements=["C", "A"]).reshape(-1)
    factor = np.float32(1 if multiply is None else multiply) if divide is None else np.float32(divide)
    status = native.resize_bilinear(
        pixels, height, width, channels, *y, *x, factor, divide is not None, dst.reshape(-1)
    )
    if status != 0:
        message = f"resize: the kernel refused an image of shape {src.shape} for a result of shape {dst.shape}."
        raise InvalidArgumentError(message)


def _check(src: npt.NDArray[Any], dst: npt.NDArray[Any], multiply: float | None, divide: float | None) -> None:
    if (
        src.ndim not in (3, 4)
        or src.ndim != dst.ndim
        or src.shape[-1] != dst.shape[-1]
        or src.shape[:-3] != dst.shape[:-3]
    ):
        raise InvalidArgumentError(
            f"resize: the result must have the rank, batch and channels of the image, {src.shape}; got {dst.shape}."
        )
    if 0 in src.shape and dst.size:
        raise InvalidArgumentError(f"resize: an image needs at least one pixel and one channel, got shape {src.shape}.")
    if src.dtype not in (np.uint8, np.float32) or dst.dtype not in (np.uint8, np.float32):
        message = f"resize: the fast path takes and gives uint8 and float32, got {src.dtype} and {dst.dtype}."
        raise InvalidArgumentError(message, hint="Use penstock.image.resize, which takes any number type.")
    if dst.dtype == np.uint8 and (src.dtype != np.uint8 or multiply is not None or divide is not None):
        message = "resize: a uint8 result needs a uint8 image and no scaling; other values may not fit it."
        raise InvalidArgumentError(message, hint="Write to float32 and cast afterwards.")
    if multiply is not None and divide is not None:
        raise InvalidArgumentError(f"resize: give multiply or divide, got both ({multiply} and {divide}).")
    if not dst.flags.c_contiguous:
        message = f"resize: the result must be C-contiguous, got strides {dst.strides} for shape {dst.shape}."
        raise InvalidArgumentError(message)


_NEAREST = Kernels("penstock.image.resizing.nearest_native")


def resize_nearest(images: npt.NDArray[Any], height: int, width: int) -> npt.NDArray[Any]:
    """Return the nearest pixels for all of `images` (N, H, W, C), without the GIL.

    >>> resize_nearest(np.arange(3, dtype=np.int16).reshape(1, 1, 3, 1), 1, 5).ravel().tolist()
    [0, 0, 1, 2, 2]
    """
    count, in_height, in_width, channels = images.shape
    y, x = nearest_taps(in_height, height), nearest_taps(in_width, width)
    native = _NEAREST.loaded()
    if native is None or not count:
        return reference.resize_nearest(images, y, x)
    result = np.empty((count, height, width, channels), images.dtype)
    # A pixel is copied in the widest integers that divide its size.
    part = max(size for size in (1, 2, 4, 8) if channels * images.itemsize % size == 0)
    pixels = np.require(images, requirements=["C", "A"]).reshape(-1).view(f"u{part}")
    parts = channels * images.itemsize // part
    status = native.resize_nearest(pixels, in_height, in_width, parts, y, x, result.reshape(-1).view(f"u{part}"))
    if status != 0:
        message = f"resize: the kernel refused images of shape {images.shape} for {height} x {width} pixels."
        raise InvalidArgumentError(message)
    return result
