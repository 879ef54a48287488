"""IndexedSource: a source of known size whose elements can be read in any order."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

import numpy as np

from penstock.block.block import Block
from penstock.sources.source import Position, Reader, Source


class IndexedSource(Source):
    """A Source whose element number i can be had without those before it.

    Its `cardinality` is known, unless it lies in files of which one cannot be counted: then `count` says which and why.

    An element that fails raises from every call that asks for it and from no other, so that asking for fewer finds it;
    `pieces_at` does that. May be used by several threads at once.
    """

    def count(self) -> int:
        """The number of elements. Raises what is wrong with a file for which it is not known."""
        return self.cardinality

    def __len__(self) -> int:
        return self.count()

    @abstractmethod
    def rows(self, start: int, stop: int) -> Block:
        """The elements from number `start` up to, not including, number `stop`; 0 <= start < stop <= len(self)."""

    @abstractmethod
    def rows_at(self, indices: np.ndarray) -> Block:
        """The elements with the int64 numbers `indices` (at least one), in that order; numbers may repeat."""

    def pieces_at(self, indices: np.ndarray) -> Iterator[Block | Exception]:
        """The same elements, neighbours as one Block, with the error in the place of each one that fails."""
        try:
            found = self.rows_at(indices)
        except Exception as error:
            if len(indices) == 1:
                yield error
                return
            half = len(indices) // 2
            yield from self.pieces_at(indices[:half])
            yield from self.pieces_at(indices[half:])
        else:
            yield found

    def open(self, position: Position | None = None) -> Reader:
        return IndexReader(self, position or 0)


class IndexReader(Reader):
    """A pass over an IndexedSource in the order of its numbers; its position is the next number."""

    def __init__(self, source: IndexedSource, at: int) -> None:
        self._source = source
        self._at = at
        self._size = source.cardinality

    def read(self, max_elements: int) -> Block | None:
        start = self._at
        stop = min(start + max_elements, self._size)
        while start < stop:
            try:
                found = self._source.rows(start, stop)
            except Exception:
                if stop == start + 1:
                    self._at = stop
                    raise
                stop = start + (stop - start) // 2  # what comes before the failing one goes first
            else:
                self._at = stop
                return found
        return None

    def position(self) -> int:
        return self._at

    def close(self) -> None:
        """Nothing is held."""
