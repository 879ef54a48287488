"""Recorder: the Blocks of a pass, laid side by side as they come, so that batches of what is kept are views."""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod

import numpy as np

from penstock.block.block import Block, concat_blocks
from penstock.block.column import Column, DenseColumn, ListColumn
from penstock.block.footprint import Footprints, counted_memory
from penstock.errors import InvalidTypeError

_FIRST = 1 << 22  # bytes that a small cache has room for, where nobody knows how many elements will come
_SECOND = 1 << 26  # and one that has outgrown that; behind them comes room for all, of which only what is used costs
_LOOSE = 1 << 26  # bytes of elements without one shape that are joined


class Recorder:
    """`add` takes the Blocks of a pass in their order, and `finish` gives few large ones with the same elements.

    Components that have one shape lie side by side, all of them where there are no others. If the number of elements is
    not known beforehand, memory is set aside three times, and the first 68 MiB move in front of the rest. What is set
    aside and not used costs nothing. Components of differing shape stay as they come.
    """

    def __init__(self, count: int = -1) -> None:
        self._count = count  # elements that will come; negative: unknown
        self._done: list[Block] = []
        self._parts: list[Block] = []  # of the Block in the making
        self._columns: list[_Place] = []
        self._loose: set[int] = set()  # components without one shape
        self._capacity = 0
        self._before = 0  # elements in the Block in front, which will move into the one in the making
        self._size = 0
        self._laid = 0  # bytes
        self._alive = Footprints()
        self._alive_before = 0  # as of the Block in the making
        self.elements = 0

    @property
    def nbytes(self) -> int:
        """Bytes of what is kept so far."""
        return self._laid + self._alive.nbytes

    @property
    def full(self) -> int | None:
        """Bytes of all elements, where these are known for certain."""
        rows = [place.row for place in self._columns]
        if self._count < 0 or self._loose or not rows or None in rows:
            return None
        return self._count * sum(row for row in rows if row)

    def add(self, block: Block) -> Block:
        """The same elements, read-only, from where they are kept."""
        if not self._fits(block):
            self._close()
            self._begin(block)
        at = self._before + self._size
        columns = [place.put(at, column) for place, column in zip(self._columns, block.columns, strict=True)]
        kept = Block(block.structure, columns, block.size, block.origin).freeze()
        self._parts.append(kept)
        self._size += block.size
        self.elements += block.size
        self._laid += sum(place.row for place in self._columns if place.row) * block.size
        for place, column in zip(self._columns, kept.columns, strict=True):
            if place.row is None:
                self._alive.add_block(Block.single(column))
        return kept

    def finish(self) -> tuple[Block, ...]:
        """All that came."""
        self._close()
        return tuple(self._done)

    def _fits(self, block: Block) -> bool:
        if not self._parts or block.structure != self._parts[0].structure or self._size + block.size > self._capacity:
            return False
        if self._alive.nbytes - self._alive_before > _LOOSE:
            return False
        other = {i for i, place in enumerate(self._columns) if not place.accepts(block.columns[i])}
        self._loose |= other
        return not other

    def _begin(self, block: Block) -> None:
        alike = [None if i in self._loose else _alike(column) for i, column in enumerate(block.columns)]
        self._loose |= {i for i, found in enumerate(alike) if found is None}
        row = sum(found.nbytes for found in alike if found is not None)
        wanted = self._count - self.elements
        if wanted < block.size:  # the number is not known, or was wrong
            room = _FIRST if not self.elements else _SECOND if self.nbytes < _SECOND else _all_room()
            wanted = room // max(row, 1)
        self._capacity = max(wanted, block.size) if row else 1 << 62
        self._before = self.elements if self._continues(block) else 0
        self._size = 0
        self._alive_before = self._alive.nbytes
        try:
            self._columns = [_place(found, self._before + self._capacity) for found in alike]
        except (MemoryError, ValueError):  # more than the machine has, or can name: a little at a time
            self._before, self._capacity = 0, max(_FIRST // max(row, 1), block.size)
            self._columns = [_place(found, self._capacity) for found in alike]

    def _continues(self, block: Block) -> bool:
        """Whether all there is so far is little, in one Block, and of one kind with these elements."""
        if len(self._done) != 1 or self._loose or self._laid > 2 * _SECOND:
            return False
        if block.structure != self._done[0].structure:
            return False
        return all(place.accepts(column) for place, column in zip(self._columns, block.columns, strict=True))

    def _close(self) -> None:
        if not self._parts:
            return
        parts, self._parts = self._parts, []
        if self._before:
            (before,) = self._done
            parts, self._done = [before, *parts], []
            for place, column in zip(self._columns, before.columns, strict=True):
                place.put(0, column)
        size = self._before + self._size
        loose = [i for i, place in enumerate(self._columns) if place.row is None]
        try:
            joined = concat_blocks([_only(part, loose) for part in parts])
        except InvalidTypeError:  # of several kinds, which is for those behind the cache to say
            self._done += parts
            return
        columns = iter(joined.columns)
        whole = [place.whole(size) or next(columns) for place in self._columns]
        self._done.append(Block(parts[0].structure, whole, size, joined.origin).freeze())


def _all_room() -> int:
    """Bytes in which a cache that the machine can hold has room."""
    if sys.platform != "linux":  # elsewhere what is set aside may have to be there
        return _SECOND << 4
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def _only(block: Block, columns: list[int]) -> Block:
    """Some of the components; the structure is that of all, which nobody asks for."""
    return Block(block.structure, [block.columns[i] for i in columns], block.size, block.origin)


def _alike(column: Column) -> np.ndarray | None:
    """An element of a column whose elements all have one shape, as an array; None for other columns.

    What cannot be written to is there anyway, in a source or another cache, and is no such column: neighbours of it are
    joined without a copy.
    """
    if isinstance(column, DenseColumn):
        copied = column.array.flags.writeable and not column.array.dtype.hasobject
        return np.asarray(column.array[0]) if copied else None
    if not isinstance(column, ListColumn):
        return None
    first = column.items[0]
    if type(first) is not np.ndarray or first.dtype.hasobject:
        return None
    return first if all(type(item) is np.ndarray and _same(item, first) for item in column.items) else None


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    return one.shape == other.shape and one.dtype == other.dtype


class _Place(ABC):
    """Where one component of the elements goes. `row` is its bytes for each of them, where they are the same."""

    row: int | None = None

    @abstractmethod
    def accepts(self, column: Column) -> bool: ...

    @abstractmethod
    def put(self, start: int, column: Column) -> Column:
        """Keep a column from element `start` on; gives what is kept."""

    @abstractmethod
    def whole(self, size: int) -> Column | None:
        """The first `size` elements, where they lie side by side."""


def _place(element: np.ndarray | None, capacity: int) -> _Place:
    return _AsTheyCome() if element is None else _SideBySide(element, capacity)


class _SideBySide(_Place):
    def __init__(self, element: np.ndarray, capacity: int) -> None:
        self._array = counted_memory((capacity, *element.shape), element.dtype)
        self.row: int = element.nbytes

    def accepts(self, column: Column) -> bool:
        found = _alike(column)
        return found is not None and found.shape == self._array.shape[1:] and found.dtype == self._array.dtype

    def put(self, start: int, column: Column) -> DenseColumn:
        place = self._array[start : start + len(column)]
        if isinstance(column, DenseColumn):
            place[...] = column.array
        else:
            for row, item in zip(place, column.values(), strict=True):
                row[...] = item
        return DenseColumn(place)

    def whole(self, size: int) -> DenseColumn:
        return DenseColumn(self._array[:size])


class _AsTheyCome(_Place):
    def accepts(self, column: Column) -> bool:
        return True

    def put(self, start: int, column: Column) -> Column:
        return column

    def whole(self, size: int) -> None:
        return None
