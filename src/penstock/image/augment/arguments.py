"""Checks of the numbers that augmentations take, and random rectangles.

Rectangles have the distributions of torchvision's RandomResizedCrop and RandomErasing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from penstock.errors import InvalidArgumentError
from penstock.image.checks import numbers
from penstock.keys import draw, fold, uniform


def check_range(op: str, name: str, values: Any, low: float, high: float = math.inf) -> tuple[float, float]:
    """Return `values` as two floats from `low` to `high`, the smaller first.

    >>> check_range("random_resized_crop", "scale", [0.5, 1], 0, 1)
    (0.5, 1.0)

    Raises:
        InvalidArgumentError: If `values` is no such pair.
    """
    pair = numbers(values)
    if (
        pair.shape == (2,)
        and pair.dtype.kind in "iuf"
        and np.isfinite(pair).all()
        and low <= pair[0] <= pair[1] <= high
    ):
        return float(pair[0]), float(pair[1])
    most = "" if math.isinf(high) else f" to {high}"
    message = f"{op}: {name} must be (least, most), two numbers from {low}{most}, the smaller first; got {values!r}."
    raise InvalidArgumentError(message)


def check_positive(op: str, name: str, value: Any) -> float:
    """Return `value` as a finite float above 0.

    >>> check_positive("mixup", "alpha", 1)
    1.0

    Raises:
        InvalidArgumentError: If the value is invalid.
    """
    number = numbers(value)
    if number.ndim == 0 and number.dtype.kind in "iuf" and np.isfinite(number) and number > 0:
        return float(number)
    raise InvalidArgumentError(f"{op}: {name} must be a number above 0, got {value!r}.")


def check_probability(op: str, value: Any) -> float:
    """Return `value` as a float from 0 to 1.

    >>> check_probability("random_erasing", 1)
    1.0

    Raises:
        InvalidArgumentError: If the value is invalid.
    """
    number = numbers(value)
    if number.ndim == 0 and number.dtype.kind in "iuf" and 0 <= number <= 1:
        return float(number)
    raise InvalidArgumentError(f"{op}: probability must be a number from 0 to 1, got {value!r}.")


ATTEMPTS = 10


def tried(key: int, area: int, scale: tuple[float, float], ratio: tuple[float, float]) -> Iterator[tuple[int, int]]:
    """Yield ten random pairs of sides. The area is uniform in `scale` times `area`, the ratio log-uniform in `ratio`.

    >>> list(tried(1, 100, (1.0, 1.0), (4.0, 4.0)))[0]
    (20, 5)
    """
    low, high = math.log(ratio[0]), math.log(ratio[1])
    for attempt in range(ATTEMPTS):
        wanted = area * uniform(key, *scale, 2 * attempt)
        form = math.exp(uniform(key, low, high, 2 * attempt + 1))
        yield round(math.sqrt(wanted * form)), round(math.sqrt(wanted / form))


def placed(key: int, size: tuple[int, int], inside: tuple[int, int]) -> list[int]:
    """Return (top, left, height, width) of a rectangle of this size at a random position inside.

    >>> placed(1, (5, 7), (5, 7))
    [0, 0, 5, 7]
    """
    place = fold(key, 1)
    top, left = (draw(place, axis, inside[axis] - size[axis] + 1) for axis in (0, 1))
    return [top, left, *size]
