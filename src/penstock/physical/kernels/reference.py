"""The loops of the shuffle and of packing in numpy and plain Python: the definition that compiled ones must equal."""

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


# The table of open rows has one line for each, in the order in which they were opened: how far each feature is filled,
# how many sequences there are, and the number of the row.

PATIENCE = 4  # times the rows that may be open: so many further ones opened, and a row leaves whatever it holds

Assigned = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def assign(
    sizes: np.ndarray,
    table: np.ndarray,
    opened: int,
    lengths: np.ndarray,
    most_sequences: int,
    most_open: int,
    best: bool,
) -> Assigned:
    """Give each sequence, in order, a place in a row.

    It goes to the first open row with room in all features, or to the fullest if `best`; without one a row is opened.
    A row in which a feature is full, or that has `most_sequences`, leaves. If then more than `most_open` are open one
    of them leaves: the oldest if more than PATIENCE × `most_open` rows were opened since, otherwise the fullest. Full
    means little room in all features together; of equals the oldest counts.

    Returns for each sequence its row, its starts and its number in the row from 1; for each row that left the row and
    the sequence at which it did; and the rows left open with their table. A row is named by its line in `table`, and
    behind those by the order of opening. `opened` rows were opened before.
    """
    limits = lengths.tolist()
    features = range(len(limits))
    total = sum(limits)
    rows: list[list[int]] = [[i, *line] for i, line in enumerate(table.tolist())]  # row, fills, count, number
    count_at, number_at = len(limits) + 1, len(limits) + 2
    known, first = len(rows), opened
    placed, starts, segments, left, left_at = [], [], [], [], []
    for piece, need in enumerate(sizes.tolist()):
        row = None
        least = total + 1
        for candidate in rows:
            if all(candidate[1 + f] + need[f] <= limits[f] for f in features):
                room = total - sum(candidate[1:count_at])
                if room < least:
                    row, least = candidate, room
                if not best:
                    break
        if row is None:
            row = [known + opened - first, *[0] * len(limits), 0, opened]
            rows.append(row)
            opened += 1
        placed.append(row[0])
        starts.append(row[1:count_at])
        for f in features:
            row[1 + f] += need[f]
        row[count_at] += 1
        segments.append(row[count_at])
        if row[count_at] >= most_sequences or any(row[1 + f] == limits[f] for f in features):
            leaving = row
        elif len(rows) <= most_open:
            continue
        elif opened - rows[0][number_at] > PATIENCE * most_open:
            leaving = rows[0]
        else:
            leaving = max(rows, key=lambda r: (sum(r[1:count_at]), -r[number_at]))
        rows.remove(leaving)
        left.append(leaving[0])
        left_at.append(piece)
    shape = (-1, len(limits))
    return (
        np.array(placed, np.int64),
        np.array(starts, np.int64).reshape(shape),
        np.array(segments, np.int32),
        np.array(left, np.int64),
        np.array(left_at, np.int64),
        np.array([row[0] for row in rows], np.int64),
        np.array([row[1:] for row in rows], np.int64).reshape(-1, table.shape[1]),
    )


def scatter(
    flat: np.ndarray,
    offsets: np.ndarray,
    sizes: np.ndarray,
    rows: np.ndarray,
    starts: np.ndarray,
    segments: np.ndarray,
    values: np.ndarray,
    ids: np.ndarray,
    positions: np.ndarray,
) -> None:
    """Write `sizes[i]` values from `offsets[i]` on into row `rows[i]` from `starts[i]` on, and what they are.

    `values`, `ids` and `positions` are contiguous arrays of rows; `values` has the dtype of `flat`.
    """
    within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    target = within + np.repeat(rows * values.shape[1] + starts, sizes)
    values.reshape(-1)[target] = flat[within + np.repeat(offsets, sizes)]
    ids.reshape(-1)[target] = np.repeat(segments, sizes)
    positions.reshape(-1)[target] = within
