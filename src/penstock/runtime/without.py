"""Without: a stream less some ranges of its elements, for runs in free order that continue.

Such a run delivers later elements before earlier ones. Its state is the upstream state before the first element not yet
delivered, and the ranges behind it that were; a continued run passes those over.
"""

from __future__ import annotations

import numpy as np

from penstock.block.block import Block
from penstock.physical.stage import Stage, State
from penstock.runtime.segment import Ranges


class Without(Stage):
    """The upstream less the (first, count) ranges its state names; ranges are sorted and apart."""

    def __init__(self, upstream: Stage) -> None:
        super().__init__(upstream.label, (upstream,), upstream.where)
        self._upstream = upstream
        self._ranges: Ranges = []
        self._count = 0

    def next(self, want: int) -> Block | None:
        while (block := self._upstream.next(want)) is not None:
            first = self._count
            self._count += block.size
            kept = self._kept(block, first)
            if kept is not None:
                return kept
        return None

    def _kept(self, block: Block, first: int) -> Block | None:
        if not self._ranges:
            return block
        mask = np.ones(block.size, bool)
        for start, count in self._ranges:
            mask[max(start - first, 0) : max(start + count - first, 0)] = False
        rows = np.flatnonzero(mask)
        self._ranges = [(start, count) for start, count in self._ranges if start + count > self._count]
        if len(rows) == block.size:
            return block
        return block.take(rows) if len(rows) else None

    def state(self) -> State:
        return [self._upstream.state(), [[start - self._count, count] for start, count in self._ranges]]

    def restore(self, state: State) -> None:
        below, ranges = state
        self._ranges = [(start, count) for start, count in ranges]
        self._upstream.restore(below)

    @staticmethod
    def merged(state: State, done: Ranges) -> State:
        """The state that also leaves out `done`, ranges of the elements that `state` gives."""
        below, ranges = state
        found = [(start, count) for start, count in ranges]
        for first, count in sorted(done):
            found.extend(_upstream_ranges(first, count, ranges))
        return [below, [[start, count] for start, count in sorted(found)]]


def _upstream_ranges(first: int, count: int, ranges: list[list[int]]) -> Ranges:
    """Where elements `first` up to `first + count` of the thinned stream stand in the whole one, between `ranges`."""
    found: Ranges = []
    for start, gap in ranges:
        start = max(start, 0)
        if start <= first:
            first += gap
        elif start < first + count:
            found.append((first, start - first))
            count -= start - first
            first = start + gap
    if count:
        found.append((first, count))
    return found
