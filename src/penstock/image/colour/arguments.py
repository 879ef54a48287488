"""What the colour functions refuse, and the texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.image.checks import check_image, numbers

if TYPE_CHECKING:
    import numpy.typing as npt


LARGEST = float(np.finfo(np.float32).max)


def check_numbers(op: str, image: Any) -> npt.NDArray[Any]:
    """`image` as an array (H, W, C) or (N, H, W, C) of integers or floats.

    Raises:
        InvalidArgumentError: another rank.
        InvalidTypeError: other values, also bool.
    """
    array = check_image(op, image)
    if array.dtype.kind == "b":
        message = f"{op} needs an image of integers or floats, got bool."
        raise InvalidTypeError(message, hint="Give a mask a range first: cast(mask, np.float32).")
    return array


def check_colours(op: str, image: Any) -> npt.NDArray[Any]:
    """`check_numbers`, of three channels.

    Raises:
        InvalidArgumentError: another rank, or another number of channels.
        InvalidTypeError: other values.
    """
    array = check_numbers(op, image)
    if array.shape[-1] != 3:
        message = f"{op} needs 3 channels (red, green, blue), got shape {array.shape}."
        hint = None
        if array.shape[-1] == 1:
            hint = "A grey image becomes RGB by grayscale_to_rgb."
        elif array.shape[-1] == 4:
            hint = "Leave out the alpha channel: image[..., :3]."
        raise InvalidArgumentError(message, hint=hint)
    return array


def check_kind(op: str, image: Any, *, floats: bool) -> npt.NDArray[Any]:
    """`check_image`, of uint8, or float32 if `floats`.

    Raises:
        InvalidArgumentError: another rank.
        InvalidTypeError: another dtype.
    """
    array = check_image(op, image)
    if array.dtype != np.uint8 and not (floats and array.dtype == np.float32):
        wanted = "uint8 or float32" if floats else "uint8"
        message = f"{op} needs an image of {wanted}, got {array.dtype}."
        raise InvalidTypeError(message, hint="convert_image_dtype changes the dtype and scales to its range.")
    return array


def check_number(op: str, name: str, value: Any, low: float = -np.inf, high: float = np.inf) -> float:
    """`value` as a float from `low` to `high`, both inclusive, that is finite in float32.

    >>> check_number("adjust_hue", "delta", 0.5, -1, 1)
    0.5

    Raises:
        InvalidArgumentError: outside, or too large.
        InvalidTypeError: not one number.
    """
    try:
        array = numbers(value)
        if array.ndim or array.dtype.kind not in "biuf":
            raise TypeError
    except (TypeError, ValueError):
        message = f"{op}: {name} must be one number, got {value!r:.60}."
        raise InvalidTypeError(message) from None
    number = float(array)
    wanted = None
    if not abs(number) <= LARGEST:
        wanted = "finite in float32"
    elif not low <= number <= high:
        wanted = f"from {low:g} to {high:g}" if np.isfinite(high) else f"at least {low:g}"
    if wanted is not None:
        message = f"{op}: {name} must be {wanted}, got {number:g}."
        raise InvalidArgumentError(message)
    return number


def check_range(op: str, lower: Any, upper: Any) -> tuple[float, float]:
    """The bounds of a random factor, as tf.image demands them.

    >>> check_range("random_contrast", 0.5, 1.5)
    (0.5, 1.5)

    Raises:
        InvalidArgumentError: `lower` is negative, or `upper` not above it.
        InvalidTypeError: either is not one number.
    """
    low = check_number(op, "lower", lower, 0)
    high = check_number(op, "upper", upper)
    if high <= low:
        message = f"{op}: upper must be greater than lower, got lower={low:g} and upper={high:g}."
        raise InvalidArgumentError(message)
    return low, high
