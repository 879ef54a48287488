"""Checks of places, flips and windows for the images of a Block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from penstock.errors import InvalidArgumentError
from penstock.image.checks import check_choice

if TYPE_CHECKING:
    import numpy.typing as npt


Flip = Literal["", "before", "after"]
Flips: TypeAlias = "Flip | npt.NDArray[np.int8]"
Windows: TypeAlias = "npt.NDArray[np.int64] | None"

FLIPS: tuple[Flip, ...] = ("", "before", "after")  # an array of flips has indices into this tuple


def check_places(out: npt.NDArray[Any], count: int, windows: Windows, *, planes: bool = False) -> None:
    """Refuse a batch that has not `count` images, or windows that do not fit them.

    Raises:
        InvalidArgumentError: If the value is invalid.
    """
    channels = 1 if planes else 3  # the axis of the channels
    if out.ndim != 4 or len(out) != count or out.shape[channels] not in (1, 3) or not out.flags.c_contiguous:
        wanted = "1 or 3, height, width" if planes else "height, width, 1 or 3"
        message = (
            f"JpegBlock writes to a C-contiguous array ({count}, {wanted}), "
            f"got shape {out.shape} with strides {out.strides}."
        )
        raise InvalidArgumentError(message)
    if windows is not None and (windows.shape != (count, 4) or windows.dtype != np.int64):
        message = f"JpegBlock takes windows as int64 ({count}, 4), got {windows.dtype} {windows.shape}."
        raise InvalidArgumentError(message)


def flip_codes(left_right: Flips, up_down: Flips, count: int) -> npt.NDArray[np.int8]:
    """Return (count, 2) indices into FLIPS."""
    flips = np.empty((count, 2), np.int8)
    for column, given in enumerate((left_right, up_down)):
        if isinstance(given, str):
            check_choice("decode_resize", "a flip", given, FLIPS)
            flips[:, column] = FLIPS.index(given)
        else:
            flips[:, column] = given
    if flips.size and not (flips.min() >= 0 and flips.max() < len(FLIPS)):
        message = f"decode_resize: flips are positions in {FLIPS}, got {flips.min()} to {flips.max()}."
        raise InvalidArgumentError(message)
    return flips


def cropped(op: str, image: npt.NDArray[np.uint8], window: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    """Return the part of `image` at (y, x, height, width), as a view.

    >>> cropped("crop", np.zeros((4, 6, 1), np.uint8), np.array([1, 2, 3, 4])).shape
    (3, 4, 1)

    Raises:
        InvalidArgumentError: the window is empty or not inside the image.
    """
    y, x, height, width = window.tolist()
    if min(y, x) < 0 or min(height, width) < 1 or y + height > image.shape[0] or x + width > image.shape[1]:
        message = (
            f"{op}: the window (y={y}, x={x}, height={height}, width={width}) "
            f"does not lie inside the image of {image.shape[0]} rows and {image.shape[1]} columns."
        )
        raise InvalidArgumentError(message)
    return image[y : y + height, x : x + width]
