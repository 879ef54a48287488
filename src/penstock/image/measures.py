"""psnr: the difference between images."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.errors import InvalidArgumentError
from penstock.image.checks import check_image, numbers
from penstock.image.dtypes import convert_image_dtype


def psnr(a: npt.NDArray[Any], b: npt.NDArray[Any], max_val: float) -> npt.NDArray[np.float32] | np.float32:
    """Compute the peak signal-to-noise ratio of two images, or of each pair of two batches, as tf.image.psnr does.

    In decibels, the higher the nearer; infinite for equal images.

    Args:
        a: An image (H, W, C) or a batch (N, H, W, C).
        b: Of the same shape.
        max_val: The range of the values: 255 for uint8, 1.0 for floats from 0 to 1.

    Returns:
        float32, a number for each image.

    Raises:
        InvalidArgumentError: If the shapes differ or are not shapes of images, or if `max_val` is not positive.
        InvalidTypeError: If the images have no numbers.

    Example:
        >>> image = np.full((4, 4, 3), 100, np.uint8)
        >>> round(float(psnr(image, image + 10, 255)), 3), psnr(image, image, 255)
        (28.131, np.float32(inf))
    """
    first, second = check_image("psnr", a), check_image("psnr", b)
    if first.shape != second.shape or 0 in first.shape[-3:]:
        message = f"psnr compares images of one shape and at least one pixel, got {first.shape} and {second.shape}."
        raise InvalidArgumentError(message)
    largest = numbers(max_val)
    if largest.ndim or largest.dtype.kind not in "iuf" or not 0 < largest < np.inf:
        raise InvalidArgumentError(f"psnr: max_val must be a number above 0; got {max_val!r}.")
    scale = convert_image_dtype(np.full((1, 1, 1), largest, first.dtype), np.float32).reshape(())
    difference = convert_image_dtype(first, np.float32) - convert_image_dtype(second, np.float32)
    mean = np.square(difference).mean(axis=(-3, -2, -1), dtype=np.float64).astype(np.float32)
    with np.errstate(divide="ignore"):
        found: npt.NDArray[np.float32] = 20 * np.log10(scale) - 10 * np.log10(mean)
    return found
