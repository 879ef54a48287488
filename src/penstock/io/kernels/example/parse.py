"""parse: the records of a Block, wherever they lie, into the arrays of their columns.

`penstock.io.wire` says what the wire format means and `penstock.io.plain` what is accepted; this agrees with them on
every input, well-formed or not, and says nothing about reasons: a rejected record is parsed again by the plain parser,
which raises the error.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.io.kernels.example import DONE, REJECTED
from penstock.io.kernels.example.features import all_features
from penstock.io.kernels.example.values import bytes_at, write_noted
from penstock.native.kernel import kernel

U = np.uint64


@kernel(
    "addresses: i64[:], sizes: i64[:], which: i32[:], record_starts: i64[:], record_lengths: i64[:], done: i64, "
    "table: w i64[:, :], keys: u8[:], places: w i64[:], int_defaults: w i64[:], float_defaults: w u32[:], splits: "
    "w i64[:, :], ints: w i64[:], floats: w u32[:], starts: w i64[:], lengths: w i64[:], memory: w i64[:, :], "
    "notes: w i64[:, :] -> i64, i64, i64, i64"
)
def parse(
    addresses: Any,
    sizes: Any,
    which: Any,
    record_starts: Any,
    record_lengths: Any,
    done: Any,
    table: Any,
    keys: Any,
    places: Any,
    int_defaults: Any,
    float_defaults: Any,
    splits: Any,
    ints: Any,
    floats: Any,
    starts: Any,
    lengths: Any,
    memory: Any,
    notes: Any,
) -> Any:
    """Parse the records from number `done` on; returns (how many are done, status, entry, values needed there).

    Buffer b is the `sizes[b]` bytes at `addresses[b]`; record i has `record_lengths[i]` bytes from `record_starts[i]`
    on of buffer `which[i]`. The caller holds the buffers.

    Entry k of fixed size writes its values from `BASE + row * SIZE` on in the array of its kind (floats as their bits);
    one of any length appends to what it has from `BASE` on, at most `ROOM` values in all; `splits[SPLITS, i]` is how
    many it had before row i. NO_ROOM means: give entry k room for so many values and continue there.

    `memory` (2, REMEMBERED) has for each slot the entry last found there and, of an UNWANTED one, its address. `notes`
    has for each entry where its value begins and ends; 2 * row where that is of this row, 2 * row + 1 where its values
    were written at once; and the slot at which it was learnt. Both begin with -1 and serve all calls for one Block.
    """
    entries = table.shape[0]
    for row in range(done, record_starts.size):
        number = which[U(row)]
        if number < 0 or number >= addresses.size:
            return row, REJECTED, 0, 0
        room = sizes[U(number)]
        at = record_starts[U(row)]
        size = record_lengths[U(row)]
        if at < 0 or size < 0 or at > room or size > room - at:
            return row, REJECTED, 0, 0
        buffer = bytes_at(addresses[U(number)], room)
        written, noted = all_features(
            *(buffer, at, at + size, row, table, keys, places, memory, notes),
            *(ints, floats, starts, lengths),
        )
        if written < 0:
            return row, REJECTED, 0, 0
        if written == entries and noted == 0:
            continue
        status, entry, needed = write_noted(
            *(buffer, row, table, int_defaults, float_defaults, notes),
            *(splits, ints, floats, starts, lengths),
        )
        if status != DONE:
            return row, status, entry, needed
    return record_starts.size, DONE, 0, 0
