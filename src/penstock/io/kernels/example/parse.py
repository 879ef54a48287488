"""parse: converts the records of a Block, in any number of buffers, to the arrays of their columns.

`penstock.io.wire` defines the wire format, and `penstock.io.plain` defines valid input. This kernel agrees with them on
every input, but does not report reasons. The plain parser parses a rejected record again, and raises the error.
"""

from __future__ import annotations

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
    addresses,
    sizes,
    which,
    record_starts,
    record_lengths,
    done,
    table,
    keys,
    places,
    int_defaults,
    float_defaults,
    splits,
    ints,
    floats,
    starts,
    lengths,
    memory,
    notes,
):
    """Parse the records from number `done` on. Return (number of parsed records, status, entry, values needed there).

    Buffer b is the `sizes[b]` bytes at `addresses[b]`. Record i has `record_lengths[i]` bytes of buffer `which[i]`,
    from `record_starts[i]` on. The caller keeps the buffers alive.

    An entry k of fixed size writes its values from `BASE + row * SIZE` on, in the array of its kind (floats as their
    bits). An entry of any length appends to its values from `BASE` on, at most `ROOM` values in all. `splits[SPLITS,
    i]` is the number of its values before row i. NO_ROOM means: give entry k memory for the needed values, and continue
    with this record.

    `memory` (2, REMEMBERED) has for each slot the entry last found there. For an UNWANTED entry it also has the
    address. `notes` has four numbers for each entry: start and end of its value; 2 * row if noted in this row, or 2 *
    row + 1 if its values were written at once; and the slot of the entry. Both begin with -1, and serve all calls for
    one Block.
    """
    entries = table.shape[0]
    tables, out = (table, keys, places, memory, notes), (ints, floats, starts, lengths)
    defaults = int_defaults, float_defaults
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
        written, noted = all_features(buffer, at, at + size, row, tables, out)
        if written < 0:
            return row, REJECTED, 0, 0
        if written == entries and noted == 0:
            continue
        status, entry, needed = write_noted(buffer, row, table, defaults, notes, splits, out)
        if status != DONE:
            return row, status, entry, needed
    return record_starts.size, DONE, 0, 0
