"""Counter-based random numbers: each is a function of a key and a counter, so no generator is shared.

A key is a uint64. `fold` derives a key from another one and an integer (an epoch, a position, an operation). `draws`
returns the random numbers of a key. The mixing function is SplitMix64's finaliser (Steele, Lea, Flood: "Fast
splittable pseudorandom number generators", 2014), which passes BigCrush as a counter-based generator.
"""

from __future__ import annotations

import numpy as np

_GOLDEN = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


def mix(value: int) -> int:
    """Return the image of a 64-bit integer under a bijection. Every output bit depends on all input bits."""
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB & _MASK
    return value ^ (value >> 31)


def fold(key: int, *data: int) -> int:
    """Return a new key from a key and integers. The order of the integers matters.

    >>> fold(1, 2) == fold(1, 2), fold(1, 2) == fold(2, 1)
    (True, False)
    """
    for item in data:
        key = mix((mix((key + _GOLDEN) & _MASK) ^ (item & _MASK)) + _GOLDEN & _MASK)
    return key


def draw(key: int, counter: int, bound: int) -> int:
    """Return number `counter` of the sequence of `key`: an integer in [0, bound), uniform up to bound / 2**32."""
    bits = mix((key + (counter + 1) * _GOLDEN) & _MASK)
    return (bits >> 32) * bound >> 32


def draws(key: int | np.ndarray, start: int, count: int, bounds: np.ndarray | int) -> np.ndarray:
    """Return `draw(key, start + i, bounds[i])` for i below `count`, as int64. Bounds must be below 2**32.

    For keys of shape (n, 1), the result has one row per key.
    """
    counters = np.arange(start + 1, start + count + 1, dtype=np.uint64)
    value = _mixed(np.uint64(key) + counters * np.uint64(_GOLDEN))
    scaled: np.ndarray = (value >> np.uint64(32)) * np.asarray(bounds, np.uint64) >> np.uint64(32)
    return scaled.astype(np.int64)


def units(key: int, start: int, count: int) -> np.ndarray:
    """Return `count` uniform float64 in [0, 1), multiples of 2**-53: the sequence of `key` from number `start` on.

    Number n is `(draw(key, 2 * n, 2**26) * 2**27 + draw(key, 2 * n + 1, 2**27)) / 2**53`.
    """
    bounds = np.tile(np.array([1 << 26, 1 << 27], np.uint64), count)
    pairs = draws(key, 2 * start, 2 * count, bounds)
    found: np.ndarray = ((pairs[0::2] << 27) + pairs[1::2]) * 2.0**-53
    return found


def uniform(key: int, low: float, high: float, counter: int = 0) -> float:
    """Return a float in [low, high), from number `counter` of the sequence of `key` (`units`).

    >>> 2.0 <= uniform(1, 2.0, 3.0) < 3.0
    True
    """
    unit = ((draw(key, 2 * counter, 1 << 26) << 27) + draw(key, 2 * counter + 1, 1 << 27)) * 2.0**-53
    return min(low + (high - low) * unit, np.nextafter(high, low).item()) if high > low else low


def folds(key: np.ndarray | int, data: np.ndarray | int) -> np.ndarray:
    """Return `fold(key, data)` for arrays of keys, of integers, or both, as uint64.

    >>> folds(1, np.array([2, 3])).tolist() == [fold(1, 2), fold(1, 3)]
    True
    """
    golden = np.uint64(_GOLDEN)
    outer = _mixed(np.atleast_1d(np.asarray(key, np.uint64)) + golden)
    return _mixed((outer ^ np.asarray(data, np.int64).astype(np.uint64)) + golden)


def _mixed(values: np.ndarray) -> np.ndarray:
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: np.ndarray = values ^ (values >> np.uint64(31))
    return mixed
