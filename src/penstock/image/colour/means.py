"""Reference of functions that need the whole image first: contrast and standardisation. Normalisation is here too."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from penstock.image.colour.pixels import STRIP, from_unit, in_strips, to_unit

LANES = 1024
Float = TypeVar("Float", np.float32, np.float64)


def folded_sum(rows: npt.NDArray[Float]) -> npt.NDArray[Float]:
    """Return the sum over the first axis, by adding the second half to the first until one row is left.

    This is TensorFlow's order; its error grows with the logarithm of the length.

    >>> folded_sum(np.array([[1.0], [2.0], [4.0]])).tolist()
    [7.0]
    """
    rows = rows.copy()
    count = len(rows)
    while count > 1:
        half = count // 2
        rows[:half] += rows[count - half : count]
        count -= half
    return rows[0]


def channel_means(image: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the mean of each channel of (H, W, C), as (C,).

    >>> channel_means(np.array([1, 2, 3, 4], np.float32).reshape(2, 1, 2)).tolist()
    [2.0, 3.0]
    """
    rows = image.reshape(-1, image.shape[-1])
    return folded_sum(rows) * (np.float32(1) / np.float32(len(rows)))


def contrast(image: npt.NDArray[Any], factor: float) -> npt.NDArray[Any]:
    """Multiply the distance from the channel's mean by `factor`, in uint8 or float32 (H, W, C).

    >>> contrast(np.array([0, 100], np.uint8).reshape(1, 2, 1), 0.5).ravel().tolist()
    [25, 75]
    """
    if image.size == 0:
        return image.copy()
    means = np.tile(channel_means(to_unit(image)), (STRIP, 1))

    def away(pixels: npt.NDArray[Any], by: float) -> npt.NDArray[Any]:
        centre = means[: len(pixels)]
        return from_unit(centre + np.float32(by) * (to_unit(pixels) - centre), image.dtype)

    with np.errstate(all="ignore"):
        return in_strips(away)(image, factor)


def standardised(images: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Return each image of uint8 or float32 (N, H, W, C) with mean 0 and variance 1. An image of one value becomes 0.

    >>> standardised(np.array([1, 3], np.uint8).reshape(1, 1, 2, 1)).ravel().tolist()
    [-1.0, 1.0]
    """
    result = np.empty(images.shape, np.float32)
    for image, place in zip(images, result, strict=True):
        mean, spread = moments(image)
        with np.errstate(all="ignore"):
            place[...] = (image.astype(np.float32) - mean) / spread
    return result


def moments(image: npt.NDArray[Any]) -> tuple[np.float32, np.float32]:
    """Return the mean of all values, and their standard deviation, at least 1 / sqrt(count).

    For uint8, sums of integers are exact. For float32, sums are float64 in lanes.

    >>> moments(np.array([1, 3], np.uint8))
    (np.float32(2.0), np.float32(1.0))
    """
    values = image.reshape(-1)
    count = values.size
    with np.errstate(all="ignore"):
        if image.dtype == np.uint8:
            total, squares = int(values.sum(dtype=np.int64)), int((values.astype(np.int64) ** 2).sum())
            mean = total / count
            variance = squares / count - mean * mean
        else:
            wide = values.astype(np.float64)
            mean = laned_sum(wide) / count
            variance = laned_sum((wide - mean) * (wide - mean)) / count
        spread = np.sqrt(variance if variance > 0 else 0.0 * variance)
    least = 1 / np.sqrt(count)
    return np.float32(mean), np.float32(least if spread < least else spread)


def laned_sum(values: npt.NDArray[np.float64]) -> float:
    """Return the sum of 1024 partial sums: value i belongs to sum i modulo 1024. A folded sum then adds them.

    >>> laned_sum(np.arange(2000.0))
    1999000.0
    """
    padded = np.zeros(-(-values.size // LANES) * LANES)
    padded[: values.size] = values
    lanes = np.zeros(LANES)
    for row in padded.reshape(-1, LANES):
        lanes += row
    return float(folded_sum(lanes))


def normalised(
    pixels: npt.NDArray[Any], mean: npt.NDArray[np.float32], std: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Return `(pixels - mean) / std` for each channel, in float32.

    >>> normalised(np.array([[1, 3]], np.uint8), np.float32([1, 1]), np.float32([2, 4])).tolist()
    [[0.0, 0.5]]
    """
    with np.errstate(all="ignore"):
        return (pixels.astype(np.float32) - mean) / std
