"""Numbers: which elements of a step's input a Block holds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Numbers(NamedTuple):
    """Counted from 0 in the order of the input, failures too, in the pass `epoch`.

    `first` is the number of the first, which the others follow, or an array with that of each, or None: not known.

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
        """Of all elements of a Block of this size; they have to be known."""
        assert self.first is not None
        return np.arange(self.first, self.first + size) if isinstance(self.first, int) else self.first

    def part(self, start: int, stop: int) -> Numbers:
        """Of the elements from `start` up to `stop`."""
        if self.first is None:
            return self
        first = self.first + start if isinstance(self.first, int) else self.first[start:stop]
        return Numbers(first, self.epoch)

    def take(self, rows: np.ndarray) -> Numbers:
        """Of the elements in these rows."""
        if self.first is None:
            return self
        return Numbers(self.first + rows if isinstance(self.first, int) else self.first[rows], self.epoch)

    def lost(self) -> Numbers:
        """Of what a filter has left: how many came before is not known."""
        return Numbers(None, self.epoch)
