"""write_noted: the values of a record that could not be written when they were seen."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compiled.kernel import inlined
from penstock.compiled.uncounted import uncounted
from penstock.io.kernels.example.feature import feature
from penstock.io.kernels.example.status import DONE, NO_ROOM, REJECTED
from penstock.io.kernels.example.table import (
    BASE,
    DEFAULT,
    FLOAT,
    FROM_DEFAULT,
    INT64,
    KIND,
    NO_DEFAULT,
    ROOM,
    SIZE,
    SPLITS,
    STRIDE,
)


@uncounted
@inlined
def write_noted(
    buffer: Any,
    row: Any,
    table: Any,
    int_defaults: Any,
    float_defaults: Any,
    notes: Any,
    splits: Any,
    ints: Any,
    floats: Any,
    starts: Any,
    lengths: Any,
) -> Any:
    """Write what is noted of row `row`, and defaults of what is missing; (status, entry, values needed there)."""
    for k in range(table.shape[0]):
        if notes[k, 2] == 2 * row + 1:
            continue
        size = table[k, SIZE]
        wanted = table[k, KIND]
        before = np.int64(0)
        if size >= 0:
            base = table[k, BASE] + row * size
            room = size
        else:
            before = splits[table[k, SPLITS], row]
            base = table[k, BASE] + before
            room = table[k, ROOM] - before
        kind = np.int64(0)
        count = np.int64(0)
        if notes[k, 2] == 2 * row:
            kind, count = feature(buffer, notes[k, 0], notes[k, 1], wanted, room, base, ints, floats, starts, lengths)
        if kind == 0:
            default = table[k, DEFAULT]
            if default == NO_DEFAULT:
                return REJECTED, k, 0
            count = max(size, np.int64(0))
            for i in range(count):
                if wanted == INT64:
                    ints[base + i] = int_defaults[default + i]
                elif wanted == FLOAT:
                    floats[base + i] = float_defaults[default + i]
                else:
                    starts[base + i] = FROM_DEFAULT
                    lengths[base + i] = i
        elif kind != wanted or (size >= 0 and count != size) or count % table[k, STRIDE] != 0:
            return REJECTED, k, 0
        if size < 0:
            if count > room:
                return NO_ROOM, k, before + count
            splits[table[k, SPLITS], row + 1] = before + count
    return DONE, 0, 0
