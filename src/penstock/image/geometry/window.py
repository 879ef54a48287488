"""Windows of a whole batch: parts of the images, mirrored or not."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.errors import InvalidArgumentError
from penstock.native.library import Kernels

_NATIVE = Kernels("penstock.image.geometry.window_native")


def window_batch(
    images: npt.NDArray[Any],
    size: tuple[int, int],
    *,
    top: npt.ArrayLike = 0,
    left: npt.ArrayLike = 0,
    upside_down: npt.ArrayLike = False,
    mirrored: npt.ArrayLike = False,
) -> npt.NDArray[Any]:
    """Compute `cut` in one call without the GIL, for images of any dtype, into a new array.

    >>> images = np.arange(6, dtype=np.uint8).reshape(2, 1, 3, 1)
    >>> window_batch(images, (1, 2), left=[0, 1], mirrored=[False, True]).reshape(2, 2).tolist()
    [[0, 1], [5, 4]]

    Args:
        images: (N, H, W, C).
        size: (height, width) of the window, the same for all.
        top: First row, one or one per image.
        left: First column, likewise.
        upside_down: If True, the rows of the window are reversed. One or one per image.
        mirrored: If True, its columns are reversed.

    Raises:
        InvalidArgumentError: If a window is not inside its image.
    """
    count, height, width, channels = images.shape
    rows, columns = _each(top, count, np.int64), _each(left, count, np.int64)
    up, mirror = _each(upside_down, count, np.bool_), _each(mirrored, count, np.bool_)
    for starts, extent, whole in ((rows, size[0], height), (columns, size[1], width)):
        if starts.size and (starts.min() < 0 or starts.max() + extent > whole):
            message = f"Windows of {size} pixels from {starts.tolist()} on are not inside images of {height} x {width}."
            raise InvalidArgumentError(message)
    native = _NATIVE.loaded()
    result = np.empty((count, *size, channels), images.dtype)
    if native is None or not result.size:
        cut(images, rows, columns, up, mirror, result)
        return result
    unit = np.uint32 if images.dtype.itemsize % 4 == 0 else np.uint8
    values = channels * images.dtype.itemsize // np.dtype(unit).itemsize
    pixels = np.require(images, requirements=["C", "A"]).reshape(-1).view(unit)
    flat = result.reshape(-1).view(unit)
    status = native.window(pixels, count, height, width, values, rows, columns, up, mirror, *size, flat)
    if status != 0:
        raise InvalidArgumentError(f"The kernel refused windows of {size} in images of shape {images.shape}.")
    return result


def _each(values: npt.ArrayLike, count: int, dtype: Any) -> npt.NDArray[Any]:
    return np.broadcast_to(np.asarray(values, dtype), count).copy()


def cut(
    images: npt.NDArray[Any],
    top: npt.NDArray[np.int64],
    left: npt.NDArray[np.int64],
    upside_down: npt.NDArray[np.bool_],
    mirrored: npt.NDArray[np.bool_],
    out: npt.NDArray[Any],
) -> None:
    """Write the window at `top` and `left` of each image into `out` (N, height, width, C), reversed if asked for."""
    height, width = out.shape[1:3]
    for image, i, j, up, mirror, place in zip(images, top, left, upside_down, mirrored, out, strict=True):
        place[...] = image[i : i + height, j : j + width][:: -1 if up else 1, :: -1 if mirror else 1]
