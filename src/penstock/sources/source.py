"""Source and Reader: the two interfaces of an origin of elements.

An IndexedSource has a known size and reads elements in any order. A FetchedSource fetches elements one by one, and each
may fail. A SlicedSource has a slice of another source.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from penstock.block.block import Block, concat_blocks, joins_freely

_FEW, _LITTLE = 256, 1 << 14  # limits of elements and bytes of a small source
Position = Any  # plain numbers, strings, lists and dicts, so that a checkpoint can be written as JSON


class Reader(ABC):
    """One iteration over a source. One thread at a time uses it."""

    @abstractmethod
    def read(self, max_elements: int) -> Block | None:
        """Return the next 1 to `max_elements` elements, or None at the end.

        It returns fewer if waiting would take long.

        An exception stands for one element, after all elements that were returned. The next call continues after it
        with the next record or file, or returns None.
        """

    @abstractmethod
    def position(self) -> Position:
        """Return the position after the last element read, for `Source.open`."""

    @property
    def at_end(self) -> bool:
        """True if certainly no element follows. Most readers find this out by a read only."""
        return False

    def close(self) -> None:  # noqa: B027 - many readers have no files
        """Close files. Idempotent."""


class Source(ABC):
    """An origin of elements that can be read many times, from the start or from any position."""

    holds_spec: ClassVar[bool] = False  # True if reading `spec` reads no data
    # the cost of access by number, if it is more than reading the element
    costly_by_number: ClassVar[str | None] = None
    index_hint: ClassVar[str] = "Write its elements out once with save(); what load() gives can be read by number."

    @property
    def calls(self) -> bool:
        """Return True if reading an element calls user code."""
        return False

    @property
    @abstractmethod
    def label(self) -> str:
        """The name in errors and in `explain`."""

    @property
    @abstractmethod
    def spec(self) -> Any:
        """The nest of specs of an element, or None if only reading can find it."""

    @property
    @abstractmethod
    def cardinality(self) -> int:
        """Number of elements, or -1 for infinite, -2 for unknown."""

    @abstractmethod
    def open(self, position: Position | None = None) -> Reader:
        """Start a new iteration, from the start or from a Reader's `position`."""

    def small(self) -> tuple[Any, int] | None:
        """Return the whole content and its bytes, for `together`, if it is small and quickly read; otherwise None.

        The call has no side effects, and leaves nothing open. It never raises: it returns None for an unreadable
        source, and the reader reports the error.
        """
        return None

    @classmethod
    def together(cls, sources: Sequence[Any], parts: Sequence[Any]) -> tuple[Block | None, list[int]] | None:
        """Return the elements of small sources of this class, concatenated, and the count per source.

        `parts` has the results of `small`: here a Block, or None for no elements. The method returns None if readers
        are needed after all, because a part is damaged or has another kind.
        """
        blocks = [part for part in parts if part is not None]
        if not all(joins_freely(blocks[0], block) for block in blocks):
            return None
        return concat_blocks(blocks) if blocks else None, [0 if part is None else part.size for part in parts]


class IndexedSource(Source):
    """A Source that can read element i without the elements before it.

    Its `cardinality` is known, unless a file cannot be counted. In this case `count` raises the error of the file.
    An element that fails raises from every call that reads it and from no other call. So smaller reads find the failing
    element; `pieces_at` does this. Several threads may use the source at once.
    """

    def count(self) -> int:
        """Return the number of elements. Raises the error of a file that cannot be counted."""
        return self.cardinality

    def __len__(self) -> int:
        return self.count()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out open files and other cached values."""
        return {part.name: getattr(self, part.name) for part in fields(self)}  # type: ignore[arg-type]  # a dataclass

    @abstractmethod
    def rows(self, start: int, stop: int) -> Block:
        """Return the elements from number `start` up to `stop` (exclusive); 0 <= start < stop <= len(self)."""

    @abstractmethod
    def rows_at(self, indices: np.ndarray) -> Block:
        """Return the elements with the int64 numbers `indices` (at least one), in this order. Numbers may repeat."""

    def seam(self, start: int, stop: int) -> int:
        """Return the number at which an iteration should split a read, to avoid a large copy.

        The result is greater than `start`, and at most `stop`.
        """
        return stop

    def pieces_at(self, indices: np.ndarray) -> Iterator[Block | Exception]:
        """Yield the elements as Blocks of neighbours, with an error in the place of each failing element."""
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
        """Return the result of `small` for a source that has all its elements in memory."""
        try:
            size = self.cardinality
            if not 0 < size <= _FEW:
                return None if size else (None, 0)
            block = self.rows(0, size)
        except Exception:  # for example, numbers that are too large
            return None
        return (block, block.nbytes) if block.nbytes <= _LITTLE else None


def before_failure(rows: Callable[[int, int], Block], start: int, stop: int) -> Block:
    """Return `rows(start, stop)`, or fewer rows if one of them fails. Raise the error of the first row."""
    while True:
        try:
            return rows(start, stop)
        except Exception:
            if stop == start + 1:
                raise
            stop = start + (stop - start) // 2  # return the elements before the failing one first


class IndexReader(Reader):
    """An iteration over an IndexedSource in the order of its numbers. Its position is the next number."""

    def __init__(self, source: IndexedSource, at: int) -> None:
        self._source = source
        self._at = at
        self._size = source.cardinality

    def read(self, max_elements: int) -> Block | None:
        start, stop = self._at, min(self._at + max_elements, self._size)
        if start >= stop:
            return None
        try:
            found = before_failure(self._source.rows, start, self._source.seam(start, stop))
        except Exception:
            self._at += 1
            raise
        self._at += found.size
        return found

    def position(self) -> int:
        return self._at


class FetchedSource(IndexedSource):
    """A source with expensive elements. A failing element is found without fetching its neighbours again."""

    @abstractmethod
    def fetch(self, indices: Sequence[int]) -> list[Block | Exception]:
        """Return the elements with the first of these numbers, with an error in the place of each failing element.

        The result has at least one element. It may have fewer than requested, if elements take long.
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
        return _FetchedReader(self, position or 0)


def _whole(pieces: Iterator[Block | Exception]) -> Block:
    found = []
    for piece in pieces:
        if isinstance(piece, Exception):
            raise piece
        found.append(piece)
    return concat_blocks(found)


class _FetchedReader(Reader):
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


@dataclass(frozen=True)
class SlicedSource(IndexedSource):
    """`inner[start:stop:step]` for numbers that are not negative, with the meaning of Python slices.

    The length of the inner source is read only when it is needed.
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
        """The numbers of the elements in the inner source."""
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
