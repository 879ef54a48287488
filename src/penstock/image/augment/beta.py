"""Numbers with a beta distribution, which follow from a key."""

from __future__ import annotations

import math

from penstock.keys import fold, uniform


def beta(key: int, alpha: float) -> float:
    """A number from 0 to 1 with the distribution Beta(alpha, alpha): X / (X + Y) of two gamma variates.

    >>> 0.0 < beta(1, 0.2) < 1.0
    True

    Args:
        key: equal keys give equal numbers.
        alpha: above 0; small ones give numbers near 0 and 1, 1 all alike, large ones numbers near one half.
    """
    difference = _log_gamma(fold(key, 1), alpha) - _log_gamma(fold(key, 2), alpha)
    return 1 / (1 + math.exp(difference)) if difference < 700 else 0.0


def _log_gamma(key: int, alpha: float) -> float:
    """The logarithm of a number with the distribution Gamma(alpha), as it may be too small for a float.

    Marsaglia and Tsang, "A simple method for generating gamma variables", 2000: from alpha + 1, which their method
    takes, down to alpha by the power of a uniform number.
    """
    d = alpha + 1 - 1 / 3
    c = 1 / math.sqrt(9 * d)
    attempt = 0
    while True:
        radius = math.sqrt(-2 * math.log1p(-uniform(key, 0, 1, 3 * attempt)))
        normal = radius * math.cos(2 * math.pi * uniform(key, 0, 1, 3 * attempt + 1))
        v = (1 + c * normal) ** 3
        share = 1 - uniform(key, 0, 1, 3 * attempt + 2)
        if v > 0 and math.log(share) < 0.5 * normal * normal + d - d * v + d * math.log(v):
            return math.log(d * v) + math.log1p(-uniform(fold(key, 1), 0, 1)) / alpha
        attempt += 1
