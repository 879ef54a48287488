"""Source and Reader: the two interfaces an origin of elements implements.

IndexedSource is of known size and read in any order; FetchedSource gets its elements one by one, and each may fail;
SlicedSource has some of the elements of another.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from penstock.block.block import Block, concat_blocks, joins_freely

_FEW, _LITTLE = 256, 1 << 14  # elements and bytes of what is small
Position = Any  # plain numbers, strings, lists and dicts, so that a checkpoint can be written as JSON


class Reader(ABC):
    """One pass over a source. Used by one thread at a time."""

    @abstractmethod
    def read(self, max_elements: int) -> Block | None:
        """The next 1 to `max_elements` elements, or None at the end; fewer where waiting for more would take long.

        An Exception takes the place of one element, behind all that were given; asked again, the reader goes on behind
        it (with the next record, or the next file), or says that the end has come.
        """

    @abstractmethod
    def position(self) -> Position:
        """What `Source.open` needs to go on behind the last element read."""

    @abstractmethod
    def close(self) -> None:
        """Let go of files. Idempotent."""


class Source(ABC):
    """An origin of elements that can be read again and again, from the start or from any position."""

    holds_spec: ClassVar[bool] = False  # so that asking for it reads nothing
    costly_by_number: ClassVar[str | None] = None  # what one element by number costs, where that is more than itself
    index_hint: ClassVar[str] = "Write its elements out once with save(); what load() gives can be read by number."

    @property
    def calls(self) -> bool:
        """Return True if reading an element calls code of the user's."""
        return False

    @property
    @abstractmethod
    def label(self) -> str:
        """How errors and `explain` call it."""

    @property
    @abstractmethod
    def spec(self) -> Any:
        """The nest of specs of an element, or None where only reading can tell."""

    @property
    @abstractmethod
    def cardinality(self) -> int:
        """Number of elements, or -1 for infinite, -2 for unknown."""

    @abstractmethod
    def open(self, position: Position | None = None) -> Reader:
        """A new pass, from the start or from where a Reader's `position` pointed."""

    def small(self) -> tuple[Any, int] | None:
        """All of it, for `together`, and its bytes, where that is little and had at once; None elsewhere.

        Nobody could see that it is read, and nothing stays open. It never raises: what cannot be read is None, and its
        reader says why.
        """
        return None

    @classmethod
    def together(cls, sources: Sequence[Any], parts: Sequence[Any]) -> tuple[Block | None, list[int]] | None:
        """The elements of small sources of this class, one's behind the other's, and how many each has.

        `parts` is what `small` gave: here a Block, or None for nothing. None where readers are needed after all:
        something is damaged, or of another kind than what comes before.
        """
        blocks = [part for part in parts if part is not None]
        if not all(joins_freely(blocks[0], block) for block in blocks):
            return None
        return concat_blocks(blocks) if blocks else None, [0 if part is None else part.size for part in parts]


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

    def seam(self, start: int, stop: int) -> int:
        """Where a pass that wants these elements is better given those before: all at once would be a large copy.

        A number behind `start`, and not behind `stop`.
        """
        return stop

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

    def in_memory(self) -> tuple[Block | None, int] | None:
        """What `small` gives, for a source that has all its elements in memory."""
        try:
            size = self.cardinality
            if not 0 < size <= _FEW:
                return None if size else (None, 0)
            block = self.rows(0, size)
        except Exception:  # of numbers that are too large, for one
            return None
        return (block, block.nbytes) if block.nbytes <= _LITTLE else None


class IndexReader(Reader):
    """A pass over an IndexedSource in the order of its numbers; its position is the next number."""

    def __init__(self, source: IndexedSource, at: int) -> None:
        self._source = source
        self._at = at
        self._size = source.cardinality

    def read(self, max_elements: int) -> Block | None:
        start = self._at
        stop = min(start + max_elements, self._size)
        if start < stop:
            stop = self._source.seam(start, stop)
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


@dataclass(frozen=True)
class SlicedSource(IndexedSource):
    """`inner[start:stop:step]`, with what Python means by it for numbers that are not negative.

    The length of the inner source is asked for when it is needed, and not before.
    """

    inner: IndexedSource
    start: int
    stop: int | None = None
    step: int = 1

    @property
    def label(self) -> str:
        stop = "" if self.stop is None else str(self.stop)
        step = "" if self.step == 1 else f":{self.step}"
        return f"{self.inner.label}[{self.start or ''}:{stop}{step}]"

    @property
    def spec(self) -> Any:
        return self.inner.spec

    @property
    def numbers(self) -> range:
        """The numbers that the elements have in the inner source."""
        return range(self.inner.count())[self.start : self.stop : self.step]

    @property
    def cardinality(self) -> int:
        return len(self.numbers)

    def rows(self, start: int, stop: int) -> Block:
        if self.step == 1:
            return self.inner.rows(self.start + start, self.start + stop)
        return self.rows_at(np.arange(start, stop))

    def rows_at(self, indices: np.ndarray) -> Block:
        return self.inner.rows_at(self.start + indices * self.step)

    def seam(self, start: int, stop: int) -> int:
        return self.inner.seam(self.start + start, self.start + stop) - self.start if self.step == 1 else stop
