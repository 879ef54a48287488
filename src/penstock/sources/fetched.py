"""FetchedSource: an indexed source whose elements are fetched one by one, and may each fail."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence

import numpy as np

from penstock.block.block import Block, concat_blocks
from penstock.sources.indexed import IndexedSource
from penstock.sources.source import Position, Reader


class FetchedSource(IndexedSource):
    """Fetching is dear, so that an element which fails is not looked for by fetching its neighbours again."""

    @abstractmethod
    def fetch(self, indices: Sequence[int]) -> list[Block | Exception]:
        """The elements with the first of these numbers, at least one, with the error in the place of each that failed.

        It may be fewer than were asked for, where they take long.
        """

    def rows(self, start: int, stop: int) -> Block:
        return _whole(self._pieces(range(start, stop)))

    def rows_at(self, indices: np.ndarray) -> Block:
        return _whole(self._pieces(indices.tolist()))

    def pieces_at(self, indices: np.ndarray) -> Iterator[Block | Exception]:
        return self._pieces(indices.tolist())

    def _pieces(self, indices: Sequence[int]) -> Iterator[Block | Exception]:
        at = 0
        while at < len(indices):
            for piece in self.fetch(indices[at:]):
                at += piece.size if isinstance(piece, Block) else 1
                yield piece

    def open(self, position: Position | None = None) -> Reader:
        return _Reader(self, position or 0)


def _whole(pieces: Iterator[Block | Exception]) -> Block:
    found = []
    for piece in pieces:
        if isinstance(piece, Exception):
            raise piece
        found.append(piece)
    return concat_blocks(found)


class _Reader(Reader):
    def __init__(self, source: FetchedSource, at: int) -> None:
        self._source = source
        self._at = at
        self._size = source.cardinality
        self._fetched: deque[Block | Exception] = deque()

    def read(self, max_elements: int) -> Block | None:
        if not self._fetched:
            stop = min(self._at + max_elements, self._size)
            if self._at >= stop:
                return None
            self._fetched.extend(self._source.fetch(range(self._at, stop)))
        piece = self._fetched.popleft()
        if isinstance(piece, Block):
            if piece.size > max_elements:
                self._fetched.appendleft(piece.slice(max_elements, piece.size))
                piece = piece.slice(0, max_elements)
            self._at += piece.size
            return piece
        self._at += 1
        raise piece

    def position(self) -> Position:
        return self._at

    def close(self) -> None:
        """Nothing is held."""
