"""Windows of a whole batch, by the compiled kernel or else by the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.errors import InvalidArgumentError
from penstock.image.geometry import window_reference as reference
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
    mode: int = reference.CONSTANT,
    fill: Any = 0,
) -> npt.NDArray[Any]:
    """Compute `reference.window` in one call without the GIL, for images of any dtype, into a new array.

    >>> images = np.arange(6, dtype=np.uint8).reshape(2, 1, 3, 1)
    >>> window_batch(images, (1, 2), left=[0, 1], mirrored=[False, True]).reshape(2, 2).tolist()
    [[0, 1], [5, 4]]

    Args:
        images: (N, H, W, C).
        size: (height, width) of the window, the same for all.
        top: first row, one or one per image; may be negative.
        left: first column, likewise.
        upside_down: whether the window's rows are reversed, one or one per image.
        mirrored: whether its columns are.
        mode: CONSTANT, REFLECT or SYMMETRIC: how images go on beyond their edges, as in tf.pad.
        fill: a value of the images' dtype, for CONSTANT.

    Raises:
        InvalidArgumentError: a window reaches further than one mirror image.
    """
    count, height, width, channels = images.shape
    rows, columns = _each(top, count, np.int64), _each(left, count, np.int64)
    up, mirror = _each(upside_down, count, np.bool_), _each(mirrored, count, np.bool_)
    if mode != reference.CONSTANT:
        check_reach(rows, size[0], height, mode)
        check_reach(columns, size[1], width, mode)
    filling = np.full(channels, fill, images.dtype)
    native = _NATIVE.loaded()
    result = np.empty((count, *size, channels), images.dtype)
    if not images.size:
        result[...] = fill
        return result
    if native is None or not result.size:
        result[...] = reference.window(images, rows, columns, up, mirror, mode, fill, *size)
        return result
    unit = np.uint32 if images.dtype.itemsize % 4 == 0 else np.uint8
    values = channels * images.dtype.itemsize // np.dtype(unit).itemsize
    pixels, filling = np.require(images, requirements=["C", "A"]).reshape(-1).view(unit), filling.view(unit)
    flat = result.reshape(-1).view(unit)
    status = native.window(pixels, count, height, width, values, rows, columns, up, mirror, mode, filling, *size, flat)
    if status != 0:
        message = f"The kernel refused windows of {size} in images of shape {images.shape}."
        raise InvalidArgumentError(message)
    return result


def _each(values: npt.ArrayLike, count: int, dtype: Any) -> npt.NDArray[Any]:
    return np.broadcast_to(np.asarray(values, dtype), count).copy()


def check_reach(starts: npt.NDArray[np.int64], extent: int, size: int, mode: int) -> None:
    """Refuse a window that no single mirror image of `size` pixels fills.

    Raises:
        InvalidArgumentError: If a window reaches further.
    """
    reach = size if mode == reference.SYMMETRIC else size - 1
    if starts.size and (starts.min() < -reach or starts.max() + extent > size + reach):
        message = (
            f"A window that begins at {starts.min()} and ends at {starts.max() + extent} needs more than "
            f"the {reach} mirrored pixels that {size} give."
        )
        raise InvalidArgumentError(message)
