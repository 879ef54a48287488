"""Change the type of an image's values, with or without scaling to its range."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.errors import InvalidTypeError
from penstock.image import rules
from penstock.trace.lift import traceable


@traceable("image.cast", rules.retyped, batches=lambda rank: True)
def cast(x: Any, dtype: npt.DTypeLike) -> Any:
    """Change the dtype, as tf.cast does: floats are truncated, integers wrap around.

    A float outside the range of an integer type has no defined result; clip it first.

    Args:
        x: Array or number.
        dtype: Numeric dtype of the result.

    Returns:
        A value of the same shape, with the new dtype.

    Raises:
        InvalidTypeError: If the value or the dtype is not numeric.

    Example:
        >>> cast(np.array([1.9, -1.9], np.float32), np.int32).tolist()
        [1, -1]
    """
    array = np.asarray(x)
    wanted = np.dtype(dtype)
    if array.dtype.kind not in "biufc" or wanted.kind not in "biufc":
        message = f"cast changes one number type to another, got {array.dtype} to {wanted}."
        raise InvalidTypeError(message, hint="Byte strings are decoded by decode_raw or decode_image, or by int(text).")
    if array.dtype.kind == "c" and wanted.kind != "c":
        array = array.real
    with np.errstate(invalid="ignore", over="ignore"):
        return array.astype(wanted, copy=False)[()]


@traceable("image.convert_image_dtype", rules.retyped, batches=lambda rank: True)
def convert_image_dtype(image: Any, dtype: npt.DTypeLike, saturate: bool = False) -> Any:
    """Change the dtype and scale the values to its range, as tf.image.convert_image_dtype does.

    Integer types span 0 to their maximum, floats 0 to 1. Float to integer truncates after scaling by `max + 0.5`.

    Args:
        image: Integers or floats, any shape.
        dtype: Integer or float type of the result.
        saturate: If True, clip values outside the range. Otherwise they wrap around.

    Returns:
        An array of the same shape, with the new dtype.

    Raises:
        InvalidTypeError: If the image or the dtype is neither integer nor float.

    Example:
        >>> convert_image_dtype(np.array([0, 51, 255], np.uint8), np.float32).tolist()
        [0.0, 0.20000001788139343, 1.0]
        >>> convert_image_dtype(np.array([0.5, 2.0], np.float32), np.uint8, saturate=True).tolist()
        [127, 255]
    """
    array = np.asarray(image)
    wanted = np.dtype(dtype)
    if array.dtype.kind not in "iuf" or wanted.kind not in "iuf":
        message = f"convert_image_dtype converts integers and floats, got {array.dtype} to {wanted}."
        raise InvalidTypeError(message, hint="A bool mask is converted by cast.")
    if array.dtype == wanted:
        return array[()]
    with np.errstate(invalid="ignore", over="ignore"):  # float16 overflows to infinity early
        return _scaled(array, wanted, _saturating if saturate else cast)


def _scaled(array: npt.NDArray[Any], wanted: np.dtype[Any], change: Callable[[Any, np.dtype[Any]], Any]) -> Any:
    if wanted.kind == "f":
        if array.dtype.kind == "f":
            return cast(array, wanted)
        return cast(array, wanted) * _of(wanted, 1.0 / np.iinfo(array.dtype).max)
    top = int(np.iinfo(wanted).max)
    if array.dtype.kind == "f":
        return change(array * _of(array.dtype, top + 0.5), wanted)
    in_top = int(np.iinfo(array.dtype).max)
    if in_top > top:
        return change(array // _of(array.dtype, (in_top + 1) // (top + 1)), wanted)
    return change(array, wanted) * _of(wanted, (top + 1) // (in_top + 1))


def _of(dtype: np.dtype[Any], value: float) -> Any:
    return np.array(value, dtype)[()]


def _saturating(array: Any, dtype: np.dtype[Any]) -> Any:
    """Cast with clipping to the range of `dtype`, as tf.saturate_cast does."""
    limits = np.iinfo(dtype)
    array = np.asarray(array)
    if array.dtype.kind == "f":
        # This is the largest float that fits: float32(2**31 - 1) rounds up to 2**31, which wraps around.
        top = _of(array.dtype, limits.max)
        if not np.isfinite(top):
            top = np.finfo(array.dtype).max
        elif int(top) > limits.max:
            top = np.nextafter(top, _of(array.dtype, 0))
        low = max(_of(array.dtype, limits.min), np.finfo(array.dtype).min)
        return cast(np.clip(array, low, top), dtype)
    span = np.iinfo(array.dtype)
    return cast(np.clip(array, max(int(limits.min), int(span.min)), min(int(limits.max), int(span.max))), dtype)
