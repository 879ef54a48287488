"""Reference of sharpening: an image blended with its smoothed self, as PIL's ImageEnhance.Sharpness."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.image.kernels.colour.units import as_levels

if TYPE_CHECKING:
    import numpy.typing as npt


def smoothed(images: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Each inner pixel of (N, H, W, C) as (its eight neighbours + 5 times itself) / 13; the border stays.

    uint8 is rounded to the nearest level. float32 is added up row by row, the nine terms in order.

    >>> smoothed(np.array([0, 0, 0, 0, 13, 0, 0, 0, 0], np.uint8).reshape(1, 3, 3, 1)).ravel()[4]
    np.uint8(5)
    """
    result = images.copy()
    height, width = images.shape[1:3]
    if height < 3 or width < 3:
        return result
    whole = images.dtype == np.uint8
    wide: npt.NDArray[Any] = images.astype(np.int64 if whole else np.float32)
    total = np.zeros_like(wide[:, 1:-1, 1:-1])
    for i in range(3):
        for j in range(3):
            part = wide[:, i : height - 2 + i, j : width - 2 + j]
            total = total + (part * wide.dtype.type(5) if i == j == 1 else part)
    result[:, 1:-1, 1:-1] = (2 * total + 13) // 26 if whole else total / np.float32(13)
    return result


def sharpened(images: npt.NDArray[Any], factor: float) -> npt.NDArray[Any]:
    """The image moved `1 - factor` times the way to its smoothed self, clipped to 255 or 1: what is flat stays.

    >>> sharpened(np.array([0, 0, 0, 0, 13, 0, 0, 0, 0], np.uint8).reshape(1, 3, 3, 1), 2.0).ravel()[4]
    np.uint8(21)
    """
    if min(images.shape[1:3]) < 3:
        return images.copy()
    own = images.astype(np.float32)
    mixed = own + np.float32(1 - factor) * (smoothed(images).astype(np.float32) - own)
    if images.dtype == np.uint8:
        return as_levels(mixed)
    above = np.where(mixed > 0, mixed, np.float32(0))
    return np.where(above < 1, above, np.float32(1))
