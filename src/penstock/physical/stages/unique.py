"""Unique: every value once, where it comes first."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterator
from hashlib import blake2b
from typing import Any

import numpy as np

from penstock.block.block import Block
from penstock.block.column import BytesColumn, Column, DenseColumn
from penstock.errors import Context, annotate
from penstock.physical.memory import UNCOUNTED, Memory
from penstock.physical.stage import Stage, State, StretchStage
from penstock.physical.stretch import Stretch
from penstock.plan.stateful import Unique as UniqueNode

_AS_IT_IS = 64  # bytes of a value up to which its key is the value; a longer one has a digest of 128 bits


def content_keys(column: Column) -> list[Hashable]:
    """A key for every element of a column, equal for equal values only.

    Equal means the same bits: two NaNs of one kind are, 0.0 and -0.0 are not. Two values above 64 bytes that differ
    have one key with a probability of 2**-128.
    """
    if isinstance(column, DenseColumn):
        return _of_array(column.array)
    if isinstance(column, BytesColumn) and column.starts.ndim == 1:
        return [_short(value) for value in column.values()]
    return [_of_value(value) for value in column.values()]


def _of_array(array: np.ndarray) -> list[Hashable]:
    if array.ndim == 1:
        size = array.itemsize
        bits: Any = np.ascontiguousarray(array).view(f"u{size}" if size in (1, 2, 4, 8) else f"V{size}")
        found: list[Hashable] = bits.tolist()
        return found
    shape = array.shape[1:]
    return [(shape, _short(row)) for row in _rows(array)]


def _rows(array: np.ndarray) -> Iterator[bytes]:
    width = array[0].nbytes
    view = memoryview(np.ascontiguousarray(array).tobytes())
    for row in range(len(array)):
        yield bytes(view[row * width : (row + 1) * width])


def _of_value(value: np.ndarray) -> Hashable:
    if value.dtype != object:
        return value.shape, _short(value.tobytes())
    return value.shape, tuple(_short(item) for item in value.reshape(-1).tolist())


def _short(data: bytes) -> Hashable:
    return data if len(data) <= _AS_IT_IS else int.from_bytes(blake2b(data, digest_size=16).digest(), "little")


_KEY = 48  # bytes of a key beside its place in the set
_MOST = 1 << 14  # elements to ask for where they are read again


class Unique(StretchStage):
    """Keeps the key of every value in memory; in the state only how many elements have been looked at.

    A restored stage reads those again, from the start, to know their keys. That is the price of states without
    elements: as many elements again as the pass had read.
    """

    def __init__(self, upstream: Stage, label: str, where: str | None, *, memory: Memory = UNCOUNTED) -> None:
        super().__init__(label, (upstream,), where)
        self._account = memory.account("unique", label, where)
        self._upstream = upstream
        self._seen: set[Hashable] = set()
        self._start: State = None  # of the upstream, in front of its first element
        self._started = False
        self._taken = 0
        self._known = 0  # positions that an earlier run had looked at
        self._unfit = False  # what comes cannot be compared: nothing follows that failure

    def make(self, want: int) -> Stretch | None:
        while not self._unfit:
            first = self._taken
            try:
                block = self._upstream.next(max(want, min(self._known - first, _MOST)))
            except Exception:
                self._taken += 1
                if first < self._known:
                    continue
                raise
            if block is None:
                return None
            self._taken += block.size
            keys = self._keys(block)
            if self._taken <= self._known:
                self._seen.update(keys)
                continue
            rows = self._first_times(keys)
            self._account.hold(sys.getsizeof(self._seen) + len(self._seen) * _KEY)
            if first < self._known:
                rows = rows[rows >= self._known - first]
            if len(rows):
                return Stretch(block if len(rows) == block.size else block.take(rows))
        return None

    def _keys(self, block: Block) -> list[Hashable]:
        """The keys of the elements taken last."""
        try:
            UniqueNode.check(block.specs())
            return content_keys(block.columns[0])
        except Exception as error:
            self._unfit = True
            annotate(error, Context(self.label, self.where, self._taken - block.size))
            raise

    def _first_times(self, keys: list[Hashable]) -> np.ndarray:
        """The rows whose value has not come before."""
        seen = self._seen
        rows = []
        for row, key in enumerate(keys):
            if key not in seen:
                seen.add(key)
                rows.append(row)
        return np.array(rows, np.int64)

    def place(self) -> State:
        if not self._started:  # once, before the first element: a state in free order goes on to grow
            self._start, self._started = self._upstream.state(), True
        return [self._start, max(self._taken, self._known), self._unfit]

    def go_to(self, place: State) -> None:
        start, self._known, self._unfit = place
        self._upstream.restore(start)
        self._started = False

    def close(self) -> None:
        self._seen = set()
        self._account.close()
        super().close()
