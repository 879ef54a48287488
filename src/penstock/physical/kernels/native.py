"""The shuffle's two loops compiled; equal to `reference` by property test."""

from __future__ import annotations

import numpy as np

from penstock.compiled.kernel import kernel


@kernel
def reservoir(picks: np.ndarray, capacity: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    count = picks.size
    source = np.empty(count, np.int64)
    holder = np.empty(capacity, np.int64)
    for slot in range(capacity):
        holder[slot] = -1
    touched = np.empty(min(count, capacity), np.int64)
    distinct = 0
    for i in range(count):
        slot = picks[i]
        held = holder[slot]
        if held < 0:
            source[i] = slot
            touched[distinct] = slot
            distinct += 1
        else:
            source[i] = capacity + held
        holder[slot] = i
    slots = touched[:distinct].copy()
    rows = np.empty(distinct, np.int64)
    for k in range(distinct):
        rows[k] = holder[slots[k]]
    return source, slots, rows


@kernel
def drain(picks: np.ndarray) -> np.ndarray:
    count = picks.size
    slots = np.empty(count, np.int64)
    for i in range(count):
        slots[i] = i
    order = np.empty(count, np.int64)
    for i in range(count):
        pick = picks[i]
        order[i] = slots[pick]
        slots[pick] = slots[count - 1 - i]
    return order


def warm_up() -> None:
    """Compile both."""
    picks = np.zeros(2, np.int64)
    reservoir(picks, 1)
    drain(picks)
