"""Weights: one number for each of several data sets, checked where the user gives them."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.errors import InvalidArgumentError, InvalidTypeError


def check_weights(name: str, value: Any, count: int | None = None, each: str = "data set") -> tuple[float, ...]:
    """Weights as float64: finite, none negative, one of them positive; `count` of them if that is known.

    `each` is what there is one of them for.

    >>> check_weights("weights", [1, 0.5])
    (1.0, 0.5)
    """
    array = numbers(value)
    if array is None:
        message = f"{name} must be a list of numbers, got {name}={value!r:.60} ({type(value).__name__})."
        raise InvalidTypeError(message, hint=_hint(each))
    fault = weights_fault(name, array, count, each)
    if fault is not None:
        raise fault
    return tuple(array.tolist())


def numbers(value: Any) -> np.ndarray | None:
    """A list or array of real numbers as one float64 array; None for anything else."""
    try:
        array = np.asarray(value)
    except ValueError:  # lists of differing length
        return None
    return array.astype(np.float64) if array.ndim and array.dtype.kind in "biuf" else None


def weights_fault(
    name: str, array: np.ndarray, count: int | None = None, each: str = "data set"
) -> InvalidArgumentError | None:
    """What is wrong with an array of weights, or None."""
    if array.ndim != 1 or not array.size or (count is not None and array.size != count):
        wanted = "at least one number" if count is None else f"{count} number{'' if count == 1 else 's'}"
        came = f"{array.size}" if array.ndim == 1 else f"an array of shape {array.shape}"
        message = f"{name} must hold {wanted}, one for each {each}, got {came}."
    elif not np.isfinite(array).all():
        message = f"{name} must be finite, got {_first(name, array, ~np.isfinite(array))}."
    elif (array < 0).any():
        message = f"{name} must not be negative, got {_first(name, array, array < 0)}."
    elif not array.any():
        message = f"At least one of {name} must be positive, got {name}={array.tolist()}."
    elif not np.isfinite(total(array)):
        message = f"The sum of {name} must be finite, got {name}={array.tolist()}."
    else:
        return None
    return InvalidArgumentError(message, hint=_hint(each))


def _hint(each: str) -> str:
    return f"Give one number of 0 or more for each {each}; they need not add up to 1."


def total(array: np.ndarray) -> Any:
    """The sum along the last axis; infinite where it is too large for float64."""
    with np.errstate(over="ignore"):
        return array.sum(axis=-1)


def _first(name: str, array: np.ndarray, wrong: np.ndarray) -> str:
    place = int(np.flatnonzero(wrong)[0])
    return f"{name}[{place}]={array[place]}"
