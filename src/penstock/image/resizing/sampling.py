"""Nearest-neighbour and bilinear resizing. The nearest-neighbour resize takes arrays of any dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.errors import InvalidArgumentError
from penstock.image.resizing import reference
from penstock.image.resizing.reference import bilinear_taps, nearest_taps
from penstock.native.library import Kernels

_BILINEAR = Kernels("penstock.image.resizing.bilinear_native")


def resize_bilinear(images: npt.NDArray[Any], height: int, width: int) -> npt.NDArray[np.float32]:
    """Return the bilinear resize of all of `images` (N, H, W, C), uint8 or float32, without the GIL.

    >>> resize_bilinear(np.array([0, 100], np.uint8).reshape(1, 1, 2, 1), 1, 4).ravel().tolist()
    [0.0, 25.0, 75.0, 100.0]
    """
    count, in_height, in_width, channels = images.shape
    y, x = bilinear_taps(in_height, height), bilinear_taps(in_width, width)
    native = _BILINEAR.loaded()
    if native is None or not count:
        return reference.resize_bilinear(images, y, x)
    result = np.empty((count, height, width, channels), np.float32)
    pixels = np.require(images, requirements=["C", "A"]).reshape(-1)
    if native.resize_bilinear(pixels, in_height, in_width, channels, *y, *x, result.reshape(-1)) != 0:
        message = f"resize: the kernel refused images of shape {images.shape} for {height} x {width} pixels."
        raise InvalidArgumentError(message)
    return result


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
