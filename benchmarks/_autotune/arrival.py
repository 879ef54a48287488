"""The time until a pipeline has reached its speed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

SPAN = 0.5  # seconds of elements for a rate


def reached(times: Sequence[float], steady: float, share: float) -> float:
    """Return the start of the first `SPAN` with a rate of at least `share * steady`.

    `times` are the seconds from the first request to each element, ascending.

        >>> slowly, quickly = [i / 10 for i in range(20)], [2 + i / 100 for i in range(200)]
        >>> reached(slowly + quickly, 100, 0.95)
        2.0
    """
    for number, start in enumerate(times):
        if bisect_left(times, start + SPAN) - number >= share * steady * SPAN:
            return start
    return times[-1]
