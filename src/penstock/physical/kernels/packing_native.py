"""The two loops of packing compiled; equal to `reference` by property test."""

from __future__ import annotations

from penstock.native.kernel import kernel
from penstock.physical.kernels.reference import PATIENCE


@kernel(
    "sizes: i64[:, :], table: i64[:, :], opened: i64, lengths: i64[:], most_sequences: i64, most_open: i64, "
    "best: bool, rows: w i64[:, :], names: w i64[:], rooms: w i64[:], placed: w i64[:], starts: w i64[:, :], "
    "segments: w i32[:], left: w i64[:], left_at: w i64[:] -> i64, i64"
)
def assign(
    sizes,
    table,
    opened,
    lengths,
    most_sequences,
    most_open,
    best,
    rows,
    names,
    rooms,
    placed,
    starts,
    segments,
    left,
    left_at,
):
    """Fill the arrays behind `best`; returns how many rows leave, and how many stay open. See `reference`.

    `rows`, `names` and `rooms` are for one row more than may be open, `left` and `left_at` for one at each sequence.
    """
    pieces, features = sizes.shape
    known, first, total = table.shape[0], opened, lengths.sum()
    for i in range(known):
        for f in range(features + 2):
            rows[i, f] = table[i, f]
        names[i] = i
        rooms[i] = total - table[i, :features].sum()
    open_now = known
    leavers = 0
    for piece in range(pieces):
        at = -1
        need = sizes[piece].sum()
        least = total + 1
        for i in range(open_now):
            if rooms[i] < need or rooms[i] >= least:
                continue
            fits = True
            for f in range(features):
                if rows[i, f] + sizes[piece, f] > lengths[f]:
                    fits = False
                    break
            if fits:
                at = i
                least = rooms[i]
                if not best:
                    break
        if at < 0:
            at = open_now
            for f in range(features + 1):
                rows[at, f] = 0
            rows[at, features + 1] = opened
            names[at] = known + opened - first
            rooms[at] = total
            open_now += 1
            opened += 1
        placed[piece] = names[at]
        full = False
        for f in range(features):
            starts[piece, f] = rows[at, f]
            rows[at, f] += sizes[piece, f]
            rooms[at] -= sizes[piece, f]
            full = full or rows[at, f] == lengths[f]
        rows[at, features] += 1
        segments[piece] = rows[at, features]
        if not full and rows[at, features] < most_sequences:
            if open_now <= most_open:
                continue
            at = 0
            if opened - rows[0, features + 1] <= PATIENCE * most_open:
                for i in range(1, open_now):
                    if rooms[i] < rooms[at]:
                        at = i
        left[leavers] = names[at]
        left_at[leavers] = piece
        leavers += 1
        open_now -= 1
        for i in range(at, open_now):
            for f in range(features + 2):
                rows[i, f] = rows[i + 1, f]
            names[i] = names[i + 1]
            rooms[i] = rooms[i + 1]
    return leavers, open_now


@kernel(
    "flat: T[:], offsets: i64[:], sizes: i64[:], rows: i64[:], starts: i64[:], segments: i32[:], "
    "values: w T[:, :], ids: w i32[:, :], positions: w i32[:, :]",
    T="u8 u16 u32 u64 c128",
)
def scatter(flat, offsets, sizes, rows, starts, segments, values, ids, positions):
    """Write runs of `flat` into rows. See `reference`."""
    for i in range(sizes.size):
        row, start, offset, segment = rows[i], starts[i], offsets[i], segments[i]
        for k in range(sizes[i]):
            values[row, start + k] = flat[offset + k]
            ids[row, start + k] = segment
            positions[row, start + k] = k
