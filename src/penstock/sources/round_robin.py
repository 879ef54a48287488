"""RoundRobin: one element of each shard in turn; shards that are at their end are passed over."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


class RoundRobin:
    """Where the elements of shards of these sizes stand in that order.

    >>> shard, row = RoundRobin([3, 1]).places(np.arange(4))
    >>> shard.tolist(), row.tolist()
    ([0, 1, 0, 0], [0, 0, 1, 2])
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        ends = sorted({size for size in sizes if size})
        self._active = [np.array([i for i, size in enumerate(sizes) if size >= end]) for end in ends]
        self._rounds = np.array([0, *ends[:-1]], np.int64)  # from which on only the active shards have elements
        lengths = [(end - first) * len(s) for end, first, s in zip(ends, self._rounds, self._active, strict=False)]
        self._begins = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)

    def places(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(shard, number in it) of the elements with these numbers."""
        shards, rows = np.empty_like(numbers), np.empty_like(numbers)
        stretch = np.searchsorted(self._begins, numbers, side="right") - 1
        for i in np.unique(stretch).tolist():
            found = np.flatnonzero(stretch == i)
            turn, place = np.divmod(numbers[found] - self._begins[i], len(self._active[i]))
            shards[found] = self._active[i][place]
            rows[found] = self._rounds[i] + turn
        return shards, rows
