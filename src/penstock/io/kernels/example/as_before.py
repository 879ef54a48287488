"""as_before: the map entries that stand where they stood in the records before."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compiled.kernel import helper
from penstock.compiled.uncounted import uncounted
from penstock.io.kernels.example.direct import direct
from penstock.io.kernels.example.expected_entry import expected_entry
from penstock.io.kernels.example.memory import REMEMBERED
from penstock.io.kernels.example.table import HEAD

U = np.uint64


@uncounted
@helper
def as_before(
    buffer: Any,
    at: Any,
    stop: Any,
    slot: Any,
    row: Any,
    table: Any,
    keys: Any,
    memory: Any,
    notes: Any,
    ints: Any,
    floats: Any,
    starts: Any,
    lengths: Any,
) -> Any:
    """Read what stands where it stood before, written at once; (position, slot, entries read)."""
    first = slot
    while at < stop and slot < REMEMBERED:
        guess = memory[0, U(slot)]
        if guess < 0:
            break
        k = U(guess)
        size = expected_entry(buffer, at, stop, table, k, keys)
        if size < 0:
            break
        value = at + table[k, HEAD]
        if not direct(buffer, value, size, table, k, row, ints, floats, starts, lengths):
            break
        at = value + size
        notes[k, 2] = 2 * row + 1
        slot += 1
    return at, slot, slot - first
