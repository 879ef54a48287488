"""The hot loops of the stages: by the compiled kernel where it is there, else by its `reference`."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.native.library import Kernels
from penstock.physical.kernels import reference
from penstock.physical.kernels.reference import Assigned

_SHUFFLE = Kernels("penstock.physical.kernels.shuffle_native")
_PACKING = Kernels("penstock.physical.kernels.packing_native")
_GATHER = Kernels("penstock.physical.kernels.gather_native")
_LINE = 64  # bytes
_LARGE = 1 << 23  # bytes of a batch that is not in the cache any more when somebody reads it
_WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64, 16: np.complex128}  # values are moved as bits


def reservoir(picks: np.ndarray, capacity: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """As `reference.reservoir`."""
    native = _SHUFFLE.loaded()
    if native is None:
        return reference.reservoir(picks, capacity)
    most = min(len(picks), capacity)
    source, slots, rows = np.empty(len(picks), np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    count = native.reservoir(_fitting(picks), np.empty(capacity, np.int64), source, slots, rows)
    return source, slots[:count], rows[:count]


def gather(whole: np.ndarray, rows: np.ndarray, out: np.ndarray) -> None:
    """out[i] = whole[rows[i]], all of one dtype, C-contiguous, and the rows within `whole`."""
    native = _GATHER.loaded() if out.nbytes >= _LARGE else None
    if native is None:
        whole.take(rows, axis=0, out=out, mode="clip")  # "raise" would copy twice
    elif native.gather(_bytes(whole), _fitting(rows), out[0].nbytes, _bytes(out), -out.ctypes.data % _LINE):
        message = f"Elements {rows.min()} to {rows.max()} of {len(whole)} as {len(out)}."
        raise IndexError(message)


def _fitting(array: np.ndarray) -> np.ndarray:
    """The array as kernels take it: int64, contiguous and aligned; a copy where it is not."""
    fits = array.dtype == np.int64 and array.flags.carray  # `np.require` costs more than a call
    return array if fits else np.require(array, np.int64, ["C", "A"])


def _bytes(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1).view(np.uint8)


def assign(
    sizes: np.ndarray,
    table: np.ndarray,
    opened: int,
    lengths: np.ndarray,
    most_sequences: int,
    most_open: int,
    best: bool,
) -> Assigned:
    """As `reference.assign`."""
    native = _PACKING.loaded()
    if native is None:
        return reference.assign(sizes, table, opened, lengths, most_sequences, most_open, best)
    pieces, features = sizes.shape
    capacity = max(len(table), most_open) + 1
    rows, names, rooms = np.empty((capacity, features + 2), np.int64), *np.empty((2, capacity), np.int64)
    placed, left, left_at = np.empty((3, pieces), np.int64)
    starts, segments = np.empty((pieces, features), np.int64), np.empty(pieces, np.int32)
    leavers, kept = native.assign(
        *(_fitting(sizes), _fitting(table), opened, _fitting(lengths), most_sequences, most_open, best),
        *(rows, names, rooms, placed, starts, segments, left, left_at),
    )
    return placed, starts, segments, left[:leavers], left_at[:leavers], names[:kept], rows[:kept]


class PackingTrial:
    """Places sequences one by one in a table of its own, by the `rules` of `assign`, which costs a sixth of it."""

    def __init__(self, table: np.ndarray, opened: int, lengths: np.ndarray, *rules: Any) -> None:
        features = len(lengths)
        self._table, self._opened, self._left = table, opened, 0
        self._rules = lengths, *rules
        self._sizes = np.empty((1, features), np.int64)
        capacity = max(len(table), rules[1]) + 1  # rows that may be open
        self._rows, self._next = np.empty((2, capacity, features + 2), np.int64)
        placed, left, left_at = np.empty((3, 1), np.int64)
        starts, segments = np.empty((1, features), np.int64), np.empty(1, np.int32)
        self._out = *np.empty((2, capacity), np.int64), placed, starts, segments, left, left_at

    def leaving(self, sizes: list[int]) -> int:
        """Place a sequence of these sizes; return how many rows have left."""
        self._sizes[0] = sizes
        native = _PACKING.loaded()
        known = len(self._table)
        if native is None:
            *_, gone, _, _, self._table = reference.assign(self._sizes, self._table, self._opened, *self._rules)
            leavers = len(gone)
        else:
            leavers, kept = native.assign(self._sizes, self._table, self._opened, *self._rules, self._next, *self._out)
            self._rows, self._next = self._next, self._rows
            self._table = self._rows[:kept]
        self._opened += leavers + len(self._table) - known
        self._left += leavers
        return self._left


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
    """As `reference.scatter`."""
    native = _PACKING.loaded()
    if native is None:
        reference.scatter(flat, offsets, sizes, rows, starts, segments, values, ids, positions)
        return
    word = _WORDS[values.dtype.itemsize]
    runs = *map(_fitting, (offsets, sizes, rows, starts)), np.require(segments, np.int32, ["C", "A"])
    flat = np.require(flat, requirements=["C", "A"])
    native.scatter(flat.view(word), *runs, values.view(word), ids, positions)
