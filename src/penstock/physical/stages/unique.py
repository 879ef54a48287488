"""Unique: every value once, where it comes first."""

from __future__ import annotations

import sys
from collections.abc import Hashable

import numpy as np

from penstock.block.block import Block
from penstock.errors import Context, annotate
from penstock.physical.content_keys import content_keys
from penstock.physical.memory import UNCOUNTED, Memory
from penstock.physical.stage import Stage, State, StretchStage
from penstock.physical.stretch import Stretch
from penstock.plan.stateful import Unique as UniqueNode

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
