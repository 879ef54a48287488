"""Checks of the numbers that geometry takes: each names the function, what it wanted and what came."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from penstock.errors import InvalidArgumentError
from penstock.image.checks import numbers


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
    number = numbers(value)
    if number.ndim == 0 and number.dtype.kind in "biuf":
        if dtype.kind == "f":
            return number.astype(dtype)[()]
        low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        if np.isfinite(number) and low <= int(number) <= high:
            return np.asarray(int(number), dtype)[()]
    message = f"{op}: {name} must be a number that fits {dtype}, got {value!r}."
    raise InvalidArgumentError(message)


def check_fills(op: str, name: str, value: Any, dtype: np.dtype[Any], channels: int) -> Any:
    """`value` as one number of `dtype`, or as an array of one for each channel.

    >>> check_fills("rotate", "fill_value", (1, 2.5, 3), np.dtype(np.uint8), 3).tolist()
    [1, 2, 3]

    Raises:
        InvalidArgumentError: another number of them, or some that do not fit.
    """
    given = numbers(value)
    if given.shape == (channels,):
        return np.array([check_fill(op, name, number, dtype) for number in given.tolist()], dtype)
    if given.ndim == 0:
        return check_fill(op, name, value, dtype)
    message = f"{op}: {name} must be a number, or one for each of the {channels} channels, got {value!r}."
    raise InvalidArgumentError(message)
