"""The mean for contrast of a channel of levels, with which each level becomes what TensorFlow makes of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compiled.kernel import helper
from penstock.image.kernels.codes import LEFT_RIGHT, UP_DOWN
from penstock.image.kernels.floats import HALF, LEVELS, ONE, PER_LEVEL, TWO
from penstock.image.kernels.instructions import larger, smaller, whole

_ROUNDING = np.float32(1.2e-7)  # two roundings of a float32, relative


@helper
def _mean_by_halves(read: Any, first: int, n: int, halves: Any) -> Any:
    """The mean of `n` levels as numbers up to 1, added up as TensorFlow does it: right half onto left."""
    left = n - n // 2
    values = halves[:left]
    for j in range(left):
        values[j] = np.float32(read[np.uint64(first + j)]) * PER_LEVEL
    for j in range(n // 2):
        values[j] = values[j] + np.float32(read[np.uint64(first + left + j)]) * PER_LEVEL
    while left > 1:
        right = left // 2
        left -= right
        for j in range(right):
            values[j] = values[j] + values[np.uint64(left + j)]
    return values[0] * (ONE / np.float32(n))


@helper
def settled(factor: Any, mean: Any, error: Any) -> bool:
    """Whether every mean that differs from `mean` by at most `error` gives each level the same."""
    doubts = 0
    for level in range(256):
        far = factor * (np.float32(level) * PER_LEVEL - mean)
        y = mean + far
        margin = LEVELS * (abs(ONE - factor) * error + TWO * _ROUNDING * (abs(far) + abs(y)))
        y = smaller(larger(y * LEVELS, HALF), LEVELS)  # beyond, nothing changes
        doubts += abs(y - whole(y) - HALF) > HALF - margin
    return doubts == 0


@helper
def mean_of(
    total: int, factor: Any, read: Any, first: int, height: int, width: int, flip: int, spare: Any, halves: Any
) -> Any:
    """The mean for contrast of a channel whose levels add up to `total`; they lie in `read` from `first` on.

    TensorFlow's mean depends on the order of addition. Mostly that changes no level, so the exact sum will do.
    """
    n = height * width
    exact = np.float64(total) / np.float64(n) / 255.0
    mean = np.float32(exact)
    # 24 roundings at most: of 1 / 255, the products by it, 20 sums, 1 / n, the product by it; and our own.
    if settled(factor, mean, np.float32(exact * 2e-6)):
        return mean
    if flip == 0:
        return _mean_by_halves(read, first, n, halves)
    step = -1 if flip & LEFT_RIGHT else 1
    for y in range(height):
        at = first + width * (height - 1 - y if flip & UP_DOWN else y) + (width - 1 if flip & LEFT_RIGHT else 0)
        for x in range(width):
            spare[np.uint64(y * width + x)] = read[np.uint64(at + x * step)]
    return _mean_by_halves(read, 3 * n, n, halves)
