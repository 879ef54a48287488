"""When a pipeline has reached its speed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

SPAN = 0.5  # seconds over which a rate is taken


def reached(times: Sequence[float], steady: float, share: float) -> float:
    """The start of the first `SPAN` in which elements came at `share` of the rate `steady`.

    `times` are those at which elements came, ascending, since the first was asked for.

    >>> slowly, quickly = [i / 10 for i in range(20)], [2 + i / 100 for i in range(200)]
    >>> reached(slowly + quickly, 100, 0.95)
    2.0
    """
    for number, start in enumerate(times):
        if bisect_left(times, start + SPAN) - number >= share * steady * SPAN:
            return start
    return times[-1]
