"""The loop of a full shuffle, compiled; equal to the plain one by property test."""

from __future__ import annotations

from penstock.native.kernel import kernel


@kernel("picks: i64[:], slots: w i64[:], order: w i64[:] -> i64")
def drain(picks, slots, order):
    """Write the `order` in which slots empty, with `slots` to work in, and return 0. See `permutation.drain`."""
    count = picks.size
    if slots.size != count or order.size != count:
        return -1
    for i in range(count):
        slots[i] = i
    for i in range(count):
        pick = picks[i]
        if pick < 0 or pick >= count:
            return -1
        order[i] = slots[pick]
        slots[pick] = slots[count - 1 - i]
    return 0
