"""`BlockRecorder` copies the Blocks of an iteration into few large Blocks, so that batches of them are views."""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod

import numpy as np

from penstock.block.block import Block, concat_blocks
from penstock.block.column import Column, DenseColumn, ListColumn
from penstock.block.footprint import Footprints, counted_memory
from penstock.errors import InvalidTypeError

_FIRST = 1 << 22  # bytes that are reserved first if the number of elements is unknown
# bytes that are reserved next; the third reservation has room for all elements, and only used pages cost memory
_SECOND = 1 << 26
_LOOSE = 1 << 26  # bytes of elements without one shape that are joined


class BlockRecorder:
    """Joins the Blocks of an iteration: `add` takes them in order, and `finish` returns few large Blocks.

    Components with one shape are copied into one array. If the number of elements is unknown, the recorder reserves
    memory three times, and the first 68 MiB move into the third reservation. Reserved pages that are not written cost
    no memory. Components of differing shapes are stored as they are.
    """

    def __init__(self, count: int = -1) -> None:
        self._count = count  # expected number of elements; negative: unknown
        self._done: list[Block] = []
        self._parts: list[Block] = []  # the Blocks that will be joined next
        self._columns: list[_Place] = []
        self._loose: set[int] = set()  # components without one shape
        self._capacity = 0
        self._before = 0  # number of elements in the finished Block that will move into the next Block
        self._size = 0
        self._laid = 0  # bytes that were copied
        self._alive = Footprints()
        self._alive_before = 0  # the bytes when the next Block began
        self.elements = 0

    @property
    def nbytes(self) -> int:
        """Number of bytes that are stored so far."""
        return self._laid + self._alive.nbytes

    @property
    def full(self) -> int | None:
        """Number of bytes of all elements, or None if the number is not certain."""
        rows = [place.row for place in self._columns]
        if self._count < 0 or self._loose or not rows or None in rows:
            return None
        return self._count * sum(row for row in rows if row)

    def add(self, block: Block) -> Block:
        """Store a Block, and return the stored elements as a read-only Block."""
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
        """Return all elements as few Blocks."""
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
        if wanted < block.size:  # the number of elements is unknown, or was wrong
            room = _FIRST if not self.elements else _SECOND if self.nbytes < _SECOND else _all_room()
            wanted = room // max(row, 1)
        self._capacity = max(wanted, block.size) if row else 1 << 62
        self._before = self.elements if self._continues(block) else 0
        self._size = 0
        self._alive_before = self._alive.nbytes
        try:
            self._columns = [_place(found, self._before + self._capacity) for found in alike]
        except (MemoryError, ValueError):  # more than the machine can reserve: reserve in small steps
            self._before, self._capacity = 0, max(_FIRST // max(row, 1), block.size)
            self._columns = [_place(found, self._capacity) for found in alike]

    def _continues(self, block: Block) -> bool:
        """Return True if the elements of this Block can join all elements so far.

        The elements so far must be few, in one Block, and of the same structure and shapes.
        """
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
        except InvalidTypeError:  # elements of several types: a later step reports them
            self._done += parts
            return
        columns = iter(joined.columns)
        whole = [place.whole(size) or next(columns) for place in self._columns]
        self._done.append(Block(parts[0].structure, whole, size, joined.origin).freeze())


def _all_room() -> int:
    """Return the number of bytes that hold every cache that fits the machine."""
    if sys.platform != "linux":  # other systems may back reserved memory at once
        return _SECOND << 4
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def _only(block: Block, columns: list[int]) -> Block:
    """Return a Block of some components.

    The Block has the structure of all components, because no caller reads the structure.
    """
    return Block(block.structure, [block.columns[i] for i in columns], block.size, block.origin)


def _alike(column: Column) -> np.ndarray | None:
    """Return the first element if all elements of a column have one shape, else None.

    Read-only arrays also give None. A source or another cache owns their memory, and neighbouring views of it are
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
    """Storage of one component. `row` is the number of bytes per element if all elements have the same size."""

    row: int | None = None

    @abstractmethod
    def accepts(self, column: Column) -> bool: ...

    @abstractmethod
    def put(self, start: int, column: Column) -> Column:
        """Store a column from element `start` on, and return the stored column."""

    @abstractmethod
    def whole(self, size: int) -> Column | None:
        """Return the first `size` elements if they are in one array, else None."""


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
