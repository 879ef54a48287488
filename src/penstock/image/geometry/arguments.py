"""Checks of the numbers that geometry takes: each names the function, what it wanted and what came."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import InvalidArgumentError

if TYPE_CHECKING:
    import numpy.typing as npt


def check_integer(op: str, name: str, value: Any, least: int | None = 0) -> int:
    """`value` as a Python integer of at least `least`.

    >>> check_integer("crop_to_bounding_box", "target_height", np.int32(3), 1)
    3

    Raises:
        InvalidArgumentError: no integer, or less.
    """
    try:
        found = operator.index(value)
    except TypeError:
        found = None
    if found is None or (least is not None and found < least):
        wanted = "an integer" if least is None else f"an integer of at least {least}"
        message = f"{op}: {name} must be {wanted}, got {value!r}."
        raise InvalidArgumentError(message)
    return found


def numbers(value: Any) -> npt.NDArray[Any]:
    """`value` as an array; a ragged one, which has no shape, as an array of objects.

    >>> numbers([1, 2]).shape, numbers([[1], 2]).dtype.kind
    ((2,), 'O')
    """
    try:
        return np.asarray(value)
    except ValueError:
        return np.empty(0, object)


def check_sizes(op: str, name: str, sizes: Any, count: int, wanted: str, least: int = 0) -> tuple[int, ...]:
    """`sizes` as `count` integers of at least `least`; `wanted` says what they mean.

    >>> check_sizes("random_crop", "size", [2, 3], 2, "one per dimension")
    (2, 3)

    Raises:
        InvalidArgumentError: another number of them, or what are no such integers.
    """
    values = numbers(sizes)
    if values.shape != (count,) or (count and (values.dtype.kind not in "iu" or (values < least).any())):
        message = f"{op}: {name} must be {count} integers of at least {least}, {wanted}; got {sizes!r}."
        raise InvalidArgumentError(message)
    return tuple(int(value) for value in values)


def check_fill(op: str, name: str, value: Any, dtype: np.dtype[Any]) -> Any:
    """`value` as one of `dtype`; a fraction is cut off for integers.

    >>> check_fill("rotate", "fill_value", 7.5, np.dtype(np.uint8))
    np.uint8(7)

    Raises:
        InvalidArgumentError: no single number, or one that does not fit.
    """
    number = np.asarray(value)
    if number.ndim == 0 and number.dtype.kind in "biuf":
        if dtype.kind == "f":
            return number.astype(dtype)[()]
        low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        if np.isfinite(number) and low <= int(number) <= high:
            return np.asarray(int(number), dtype)[()]
    message = f"{op}: {name} must be a number that fits {dtype}, got {value!r}."
    raise InvalidArgumentError(message)
