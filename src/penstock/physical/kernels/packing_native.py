"""The two loops of packing compiled; equal to `reference` by property test."""

from __future__ import annotations

import numpy as np

from penstock.compiled.kernel import kernel
from penstock.physical.kernels.reference import PATIENCE, Assigned


@kernel
def assign(
    sizes: np.ndarray,
    table: np.ndarray,
    opened: int,
    lengths: np.ndarray,
    most_sequences: int,
    most_open: int,
    best: bool,  # noqa: FBT001 - compiled functions take no keywords
) -> Assigned:
    pieces, features = sizes.shape
    known, first, total = table.shape[0], opened, lengths.sum()
    capacity = max(known, most_open) + 1
    rows = np.empty((capacity, features + 2), np.int64)
    names = np.empty(capacity, np.int64)
    rooms = np.empty(capacity, np.int64)
    for i in range(known):
        for f in range(features + 2):
            rows[i, f] = table[i, f]
        names[i] = i
        rooms[i] = total - table[i, :features].sum()
    open_now = known
    placed = np.empty(pieces, np.int64)
    starts = np.empty((pieces, features), np.int64)
    segments = np.empty(pieces, np.int32)
    left = np.empty(pieces, np.int64)
    left_at = np.empty(pieces, np.int64)
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
    return (
        placed,
        starts,
        segments,
        left[:leavers].copy(),
        left_at[:leavers].copy(),
        names[:open_now].copy(),
        rows[:open_now].copy(),
    )


@kernel
def _scatter(
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
    for i in range(sizes.size):
        row, start, offset, segment = rows[i], starts[i], offsets[i], segments[i]
        for k in range(sizes[i]):
            values[row, start + k] = flat[offset + k]
            ids[row, start + k] = segment
            positions[row, start + k] = k


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
    """Values are moved as bits, whatever they mean."""
    kind = _KINDS[values.dtype.itemsize]
    bits: np.ndarray = flat.view(kind)
    bits.flags.writeable = False  # one compiled version for arrays of both sorts
    _scatter(bits, offsets, sizes, rows, starts, segments, values.view(kind), ids, positions)


_KINDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64, 16: np.complex128}


def warm_up() -> None:
    """Compile all."""
    one = np.ones((1, 1), np.int64)
    none = np.zeros(1, np.int64)
    assign(one, np.empty((0, 3), np.int64), 0, one[0], 1, 1, True)
    out = np.zeros((1, 1), np.int32)
    for kind in _KINDS.values():
        scatter(np.zeros(1, kind), none, one[0], none, none, np.ones(1, np.int32), np.zeros((1, 1), kind), out, out)
