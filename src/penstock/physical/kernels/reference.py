"""The shuffle's two loops in numpy and plain Python: the definition."""

from __future__ import annotations

import numpy as np


def reservoir(picks: np.ndarray, capacity: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pass `len(picks)` elements through a full buffer: input i leaves slot picks[i]'s element and takes its slot.

    Returns (source, slots, rows): output i is slot `source[i]`, or input `source[i] - capacity` where that is not
    negative; afterwards slot `slots[k]` holds input `rows[k]`.
    """
    order = np.argsort(picks, kind="stable")
    ordered = picks[order]
    first = np.ones(len(picks), bool)
    first[1:] = ordered[1:] != ordered[:-1]
    source = np.empty(len(picks), np.int64)
    source[order[first]] = ordered[first]
    later = np.flatnonzero(~first)
    source[order[later]] = capacity + order[later - 1]
    last = np.ones(len(picks), bool)
    last[:-1] = first[1:]
    return source, ordered[last], order[last]


def drain(picks: np.ndarray) -> np.ndarray:
    """The order in which `len(picks)` slots empty: pick i is among the remaining ones, the last fills its place."""
    slots = list(range(len(picks)))
    order = np.empty(len(picks), np.int64)
    for i, pick in enumerate(picks.tolist()):
        order[i] = slots[pick]
        slots[pick] = slots[-1]
        slots.pop()
    return order
