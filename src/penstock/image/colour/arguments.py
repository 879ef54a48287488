"""Checks of the arguments of colour functions, one image as a batch, and a number for each image."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.image.checks import check_image, numbers
from penstock.image.drawn import Keys, uniforms
from penstock.trace.lift import lifted_by

Array = npt.NDArray[Any]

LARGEST = float(np.finfo(np.float32).max)


def check_numbers(op: str, image: Any) -> npt.NDArray[Any]:
    """Return `image` as an array (H, W, C) or (N, H, W, C) of integers or floats.

    Raises:
        InvalidArgumentError: If the image has another rank.
        InvalidTypeError: other values, also bool.
    """
    array = check_image(op, image)
    if array.dtype.kind == "b":
        message = f"{op} needs an image of integers or floats, got bool."
        raise InvalidTypeError(message, hint="Give a mask a range first: cast(mask, np.float32).")
    return array


def check_colours(op: str, image: Any) -> npt.NDArray[Any]:
    """Return the result of `check_numbers`, after a check for three channels.

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
    """Return the result of `check_image`, after a check for uint8, or float32 if `floats`.

    Raises:
        InvalidArgumentError: If the image has another rank.
        InvalidTypeError: another dtype.
    """
    array = check_image(op, image)
    if array.dtype != np.uint8 and not (floats and array.dtype == np.float32):
        wanted = "uint8 or float32" if floats else "uint8"
        message = f"{op} needs an image of {wanted}, got {array.dtype}."
        raise InvalidTypeError(message, hint="convert_image_dtype changes the dtype and scales to its range.")
    return array


def check_number(op: str, name: str, value: Any, low: float = -np.inf, high: float = np.inf) -> float:
    """Return `value` as a float from `low` to `high` (inclusive) that is finite in float32.

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
        raise InvalidTypeError(f"{op}: {name} must be one number, got {value!r:.60}.") from None
    number = float(array)
    wanted = None
    if not abs(number) <= LARGEST:
        wanted = "finite in float32"
    elif not low <= number <= high:
        wanted = f"from {low:g} to {high:g}" if np.isfinite(high) else f"at least {low:g}"
    if wanted is not None:
        raise InvalidArgumentError(f"{op}: {name} must be {wanted}, got {number:g}.")
    return number


def check_range(op: str, lower: Any, upper: Any) -> tuple[float, float]:
    """Return the bounds of a random factor, after the checks of tf.image.

    >>> check_range("random_contrast", 0.5, 1.5)
    (0.5, 1.5)

    Raises:
        InvalidArgumentError: `lower` is negative, or `upper` not above it.
        InvalidTypeError: either is not one number.
    """
    low = check_number(op, "lower", lower, 0)
    high = check_number(op, "upper", upper)
    if high <= low:
        raise InvalidArgumentError(f"{op}: upper must be greater than lower, got lower={low:g} and upper={high:g}.")
    return low, high


def on_batch(operation: Callable[[Array], Array], image: Array) -> Array:
    """Apply `operation`, which takes (N, H, W, C), to a batch or to one image (H, W, C).

    >>> on_batch(lambda images: images + len(images), np.zeros((1, 1, 1))).ravel().tolist()
    [1.0]
    """
    return operation(image) if image.ndim == 4 else operation(image[None])[0]


def per_image(
    op: str, name: str, value: Any, image: Array, low: float = -np.inf, high: float = np.inf
) -> npt.NDArray[np.float32]:
    """Return `value` for each image: one number for all, or for a batch (N, H, W, C) an array of N numbers.

    >>> per_image("adjust_brightness", "delta", 0.5, np.zeros((2, 1, 1, 3))).tolist()
    [0.5, 0.5]

    Raises:
        InvalidArgumentError: not finite, outside `low` to `high`, or not as many as there are images.
        InvalidTypeError: no numbers.
    """
    count = len(image) if image.ndim == 4 else 1
    if np.ndim(value) == 0:
        return np.full(count, check_number(op, name, value, low, high), np.float32)
    numbers = [check_number(op, name, number, low, high) for number in value]
    if image.ndim == 3 or len(numbers) != count:
        raise InvalidArgumentError(
            f"{op}: {name} must be a number, or one for each image of a batch, got {len(numbers)} for {image.shape}."
        )
    return np.array(numbers, np.float32)


F = TypeVar("F", bound=Callable[..., Any])


def around_zero(op: str, key: Keys, max_delta: Any, most: float = np.inf) -> Any:
    """Return a uniform random number from [-max_delta, max_delta), or an array of them for an array of keys.

    >>> bool(-0.5 <= around_zero("random_hue", 7, 0.5) < 0.5)
    True

    Raises:
        InvalidArgumentError: `max_delta` is negative, or above `most`.
        InvalidTypeError: it is not one number.
    """
    delta = check_number(op, "max_delta", max_delta, 0, most)
    return uniforms(key, 1, -delta, delta)[..., 0]


def between(op: str, key: Keys, lower: Any, upper: Any) -> Any:
    """Return a uniform random number from [lower, upper), or an array of them for an array of keys.

    >>> bool(0.5 <= between("random_contrast", 7, 0.5, 1.5) < 1.5)
    True

    Raises:
        InvalidArgumentError: `lower` is negative, or `upper` not above it.
        InvalidTypeError: either is not one number.
    """
    return uniforms(key, 1, *check_range(op, lower, upper))[..., 0]


def composed(check: Callable[[str, Any], npt.NDArray[Any]]) -> Callable[[F], F]:
    """Declare a function that only calls primitives, so that it may be traced by running it.

    When the function is called with an image, `check(name, image)` checks the image first, under the function's name.
    """

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def checked(image: Any, *args: Any, **kwargs: Any) -> Any:
            return function(check(function.__name__, image), *args, **kwargs)

        made: Any = lifted_by(function)(checked)
        return made

    return decorate
