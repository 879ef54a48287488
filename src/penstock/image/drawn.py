"""Random parameters of functions, from one key, or from the keys of many elements at once. The results are equal.

A function `sample(key, shape, ...)` of this package takes a key, or an array of keys for elements of one shape. For an
array, the parameters have one more leading axis. The deterministic functions take such parameters for a batch.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from penstock.errors import InvalidArgumentError
from penstock.image.checks import numbers
from penstock.keys import draws, fold

Keys: TypeAlias = "int | npt.NDArray[np.uint64]"

_MASK = (1 << 64) - 1


def integers(key: Keys, bounds: Sequence[int]) -> npt.NDArray[np.int64]:
    """Return one integer in [0, bound) for each of `bounds`; for an array of keys, (len(keys), len(bounds)).

    >>> integers(7, [10, 10]).tolist() == integers(np.array([3, 7], np.uint64), [10, 10])[1].tolist()
    True
    """
    return draws(_column(key), 0, len(bounds), np.asarray(bounds, np.uint64))


def uniforms(key: Keys, count: int, low: float, high: float) -> npt.NDArray[np.float64]:
    """Return `count` floats in [low, high), like `keys.units`; for an array of keys, (len(keys), count).

    >>> uniforms(7, 2, -1, 1).tolist() == uniforms(np.array([3, 7], np.uint64), 2, -1, 1)[1].tolist()
    True
    """
    pairs = draws(_column(key), 0, 2 * count, np.tile(np.array([1 << 26, 1 << 27], np.uint64), count))
    unit = ((pairs[..., 0::2] << 27) + pairs[..., 1::2]) * 2.0**-53
    return np.minimum(low + (high - low) * unit, np.nextafter(high, low))


def _column(key: Keys) -> int:
    """Return a key in the form for `draws`. Its arithmetic also works for a column of keys."""
    return cast(Any, key[:, None]) if isinstance(key, np.ndarray) else operator.index(key) & _MASK


def stateless_key(op: str, seed: Any) -> int:
    """Return the key of `seed`, an integer or a pair of integers.

    >>> stateless_key("stateless_random_crop", (1, 2)) == fold(1, 2)
    True

    Raises:
        InvalidArgumentError: neither.
    """
    given = numbers(seed)
    try:
        parts = [operator.index(number) for number in np.atleast_1d(given)]
    except TypeError:
        parts = []
    if given.ndim > 1 or len(parts) not in (1, 2):
        raise InvalidArgumentError(f"{op}: seed must be an integer or a pair of integers, got {seed!r}.")
    return fold(*parts)


def each(key: Keys, shape: Sequence[int], draw: Callable[[int], npt.ArrayLike]) -> npt.NDArray[np.generic]:
    """Return `draw(key)` for an image of `shape`, or one row for each image of a batch, from a key of its own.

    An array of keys, for elements of this shape, adds one leading axis.

    >>> each(5, (8, 8, 3), lambda key: [key, 1]).tolist()
    [5, 1]
    >>> each(5, (3, 8, 8, 3), lambda key: [key, 1]).shape
    (3, 2)
    """
    if isinstance(key, np.ndarray):
        return np.stack([each(int(one), shape, draw) for one in key])
    if len(shape) == 3:
        return np.asarray(draw(key))
    rows = [np.asarray(draw(fold(key, number))) for number in range(shape[0])]
    return np.stack(rows) if rows else np.asarray(draw(key))[None][:0]
