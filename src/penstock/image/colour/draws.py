"""What random colour functions draw from a key, or from an array of keys, one for each of many elements."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from penstock.image.colour.arguments import check_number, check_range
from penstock.image.drawn import Keys, uniforms
from penstock.trace.lift import lifted_by

F = TypeVar("F", bound=Callable[..., Any])


def around_zero(op: str, key: Keys, max_delta: Any, most: float = np.inf) -> Any:
    """A number drawn uniformly from [-max_delta, max_delta), for an array of keys an array of them.

    >>> bool(-0.5 <= around_zero("random_hue", 7, 0.5) < 0.5)
    True

    Raises:
        InvalidArgumentError: `max_delta` is negative, or above `most`.
        InvalidTypeError: it is not one number.
    """
    delta = check_number(op, "max_delta", max_delta, 0, most)
    return uniforms(key, 1, -delta, delta)[..., 0]


def between(op: str, key: Keys, lower: Any, upper: Any) -> Any:
    """A number drawn uniformly from [lower, upper), for an array of keys an array of them.

    >>> bool(0.5 <= between("random_contrast", 7, 0.5, 1.5) < 1.5)
    True

    Raises:
        InvalidArgumentError: `lower` is negative, or `upper` not above it.
        InvalidTypeError: either is not one number.
    """
    return uniforms(key, 1, *check_range(op, lower, upper))[..., 0]


def composed(check: Callable[[str, Any], npt.NDArray[Any]]) -> Callable[[F], F]:
    """Declare a function that does nothing but call primitives: it may be traced by running it.

    Called with an image, it sees that checked in its own name first, as `check(name, image)`.
    """

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def checked(image: Any, *args: Any, **kwargs: Any) -> Any:
            return function(check(function.__name__, image), *args, **kwargs)

        made: Any = lifted_by(function)(checked)
        declared: F = made
        return declared

    return decorate
