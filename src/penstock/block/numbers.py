"""Numbers: the numbers of a Block's elements in the input of a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(slots=True)
class Numbers:
    """Numbers of elements, counted from 0 in the order of the input, including failures, in the epoch `epoch`.

    `first` is the number of the first element, and the others follow it; or an array with the number of each element;
    or None if the numbers are unknown.

    >>> Numbers(10).part(2, 5), Numbers(10).take(np.array([0, 3])).at(1)
    (Numbers(first=12, epoch=0), 13)
    """

    first: int | np.ndarray | None
    epoch: int = 0

    def at(self, row: int) -> int | None:
        if self.first is None or isinstance(self.first, int):
            return None if self.first is None else self.first + row
        return int(self.first[row])

    def all(self, size: int) -> np.ndarray:
        """Return the numbers of all elements of a Block of this size. They must be known."""
        assert self.first is not None
        return np.arange(self.first, self.first + size) if isinstance(self.first, int) else self.first

    def part(self, start: int, stop: int) -> Numbers:
        """Return the numbers of the elements from `start` up to `stop`."""
        if self.first is None:
            return self
        first = self.first + start if isinstance(self.first, int) else self.first[start:stop]
        return Numbers(first, self.epoch)

    def take(self, rows: np.ndarray) -> Numbers:
        """Return the numbers of the elements in these rows."""
        if self.first is None:
            return self
        return Numbers(self.first + rows if isinstance(self.first, int) else self.first[rows], self.epoch)

    def lost(self) -> Numbers:
        """Return unknown numbers: after a filter, the count of earlier elements is not known."""
        return Numbers(None, self.epoch)


def joined(parts: Sequence[Numbers], sizes: Sequence[int]) -> Numbers:
    """Join the numbers of Blocks of these sizes, one after the other, of the same epoch.

    >>> joined([Numbers(4), Numbers(6)], [2, 3]), joined([Numbers(4), Numbers(None)], [2, 3])
    (Numbers(first=4, epoch=0), Numbers(first=None, epoch=0))
    """
    first, epoch = parts[0].first, parts[0].epoch
    if len(parts) == 1:
        return parts[0]
    if any(part.first is None for part in parts):
        return Numbers(None, epoch)
    if isinstance(first, int):
        begins = [first + sum(sizes[:i]) for i in range(len(parts))]
        if all(isinstance(part.first, int) and part.first == at for part, at in zip(parts, begins, strict=True)):
            return parts[0]
    return Numbers(np.concatenate([part.all(size) for part, size in zip(parts, sizes, strict=True)]), epoch)
