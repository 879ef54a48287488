"""Windows of images, at any position and optionally mirrored, in plain numpy: the reference.

Beyond its edges an image continues as in tf.pad: with a constant, or mirrored once with (SYMMETRIC) or without
(REFLECT) the edge. Crops, paddings, flips and every chain of them are windows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

CONSTANT, REFLECT, SYMMETRIC = range(3)


def window(
    images: npt.NDArray[Any],
    top: npt.NDArray[np.int64],
    left: npt.NDArray[np.int64],
    upside_down: npt.NDArray[np.bool_],
    mirrored: npt.NDArray[np.bool_],
    mode: int,
    fill: Any,
    height: int,
    width: int,
) -> npt.NDArray[Any]:
    """Cut rows [top, top + height) and columns [left, left + width) of each of `images` (N, H, W, C), then mirror.

    `top`, `left`, `upside_down` and `mirrored` have one value per image. No window may reach further than one mirror
    image.

    >>> images = np.array([[[[1], [2], [3]]]], np.uint8)
    >>> zero, no, yes = np.zeros(1, np.int64), np.zeros(1, bool), np.ones(1, bool)
    >>> window(images, zero, zero - 2, no, no, REFLECT, 0, 1, 4).ravel().tolist()
    [3, 2, 1, 2]
    >>> window(images, zero, zero + 1, no, yes, CONSTANT, 9, 1, 3).ravel().tolist()
    [9, 3, 2]
    """
    rows = _places(top, upside_down, mode, height, images.shape[1])
    columns = _places(left, mirrored, mode, width, images.shape[2])
    found = np.empty((len(images), height, width, images.shape[3]), images.dtype)
    for image, its_rows, its_columns, place in zip(images, rows, columns, found, strict=True):
        place[...] = image.take(its_rows, 0, mode="clip").take(its_columns, 1, mode="clip")
        place[its_rows < 0] = fill
        place[:, its_columns < 0] = fill
    return found


def _places(
    start: npt.NDArray[np.int64], backwards: npt.NDArray[np.bool_], mode: int, extent: int, size: int
) -> npt.NDArray[np.int64]:
    """Return the source row or column of each place of a window, or -1 for the constant."""
    steps = np.arange(extent)
    at = start[:, None] + np.where(backwards[:, None], extent - 1 - steps, steps)
    if mode == CONSTANT:
        return np.where((at >= 0) & (at < size), at, -1)
    edge = 1 if mode == SYMMETRIC else 0
    at = np.where(at < 0, -at - edge, at)
    return np.where(at >= size, 2 * size - 2 + edge - at, at)
