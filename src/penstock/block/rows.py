"""`ElementRows` are elements stored by slot number, written and read one Block at a time.

A shuffle buffer consists of them. `ColumnRows` are the slots of one component, `OriginRows` the slots of the origins.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from penstock.block.block import Block, in_order
from penstock.block.column import BytesColumn, Column, DenseColumn, ListColumn
from penstock.block.footprint import Footprints
from penstock.block.indexed_column import IndexedColumn, by_reference, is_large, joined, moved, side_by_side
from penstock.block.origin import Origin, common_shape, concat_origins, numbered
from penstock.block.structure import Structure

_STRING = 20  # bytes per string in addition to its content


def grown(array: np.ndarray, count: int) -> np.ndarray:
    """Return the same slots followed by empty ones, `count` in total."""
    larger = np.zeros((count, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


class ColumnRows(ABC):
    slot_bytes: int | None = None

    @abstractmethod
    def nbytes(self, count: int) -> int:
        """Return the bytes that the slots below `count` keep alive."""

    @abstractmethod
    def accepts(self, column: Column) -> bool:
        """Return True if the column has this layout. Otherwise the caller switches to a wider layout."""

    @abstractmethod
    def reserve(self, count: int) -> None:
        """Allocate slots below `count`."""

    @abstractmethod
    def put(self, slots: np.ndarray, column: Column) -> None: ...

    @abstractmethod
    def get(self, slots: np.ndarray) -> Column: ...

    @abstractmethod
    def wider(self) -> ColumnRows:
        """Return the same elements in a layout that accepts other columns, too."""


def rows_for(column: Column) -> ColumnRows:
    """Return empty slots for elements like those of this column, which `by_reference` returned."""
    if isinstance(column, IndexedColumn):
        return PickedRows(column)
    if isinstance(column, DenseColumn) and not is_large(column):
        return DenseRows(column)
    if isinstance(column, BytesColumn):
        return BytesRows(column)
    return ListRows([])


class DenseRows(ColumnRows):
    def __init__(self, column: DenseColumn) -> None:
        self._array = np.empty((0, *column.array.shape[1:]), column.array.dtype)
        self.slot_bytes: int = column.array.nbytes // len(column)

    def nbytes(self, count: int) -> int:
        return count * self.slot_bytes

    def reserve(self, count: int) -> None:
        self._array = grown(self._array, count)

    def accepts(self, column: Column) -> bool:
        return (
            isinstance(column, DenseColumn)
            and column.array.dtype == self._array.dtype
            and column.array.shape[1:] == self._array.shape[1:]
        )

    def put(self, slots: np.ndarray, column: Column) -> None:
        assert isinstance(column, DenseColumn)
        self._array[slots] = column.array

    def get(self, slots: np.ndarray) -> Column:
        return DenseColumn(self._array.take(slots, axis=0))

    def wider(self) -> ColumnRows:
        return ListRows(list(self._array))


class BytesRows(ColumnRows):
    def __init__(self, column: BytesColumn) -> None:
        shape = (0, *column.starts.shape[1:])
        self._starts = np.zeros(shape, np.int64)
        self._lengths = np.zeros(shape, np.int64)
        self._which = np.zeros(shape, np.int32)
        self._buffers: list[np.ndarray] = []
        self._ids: dict[int, int] = {}
        self._alive = Footprints()

    def nbytes(self, count: int) -> int:
        return self._alive.nbytes + count * _STRING * (self._starts[:1].size or 1)

    def reserve(self, count: int) -> None:
        self._starts = grown(self._starts, count)
        self._lengths = grown(self._lengths, count)
        self._which = grown(self._which, count)

    def accepts(self, column: Column) -> bool:
        return isinstance(column, BytesColumn) and column.starts.shape[1:] == self._starts.shape[1:]

    def put(self, slots: np.ndarray, column: Column) -> None:
        assert isinstance(column, BytesColumn)
        local = np.zeros(max(len(column.buffers), 1), np.int32)
        for i, buffer in enumerate(column.buffers):
            if id(buffer) not in self._ids:
                self._ids[id(buffer)] = len(self._buffers)
                self._buffers.append(buffer)
                self._alive.add(buffer)
            local[i] = self._ids[id(buffer)]
        self._starts[slots] = column.starts
        self._lengths[slots] = column.lengths
        self._which[slots] = local[0] if column.which is None else local[column.which]
        if len(self._buffers) > 2 * max(self._which.size, 64):
            self._forget_unused()

    def _forget_unused(self) -> None:
        used, which = np.unique(self._which, return_inverse=True)
        self._buffers = [self._buffers[i] for i in used]
        self._which = which.reshape(self._which.shape).astype(np.int32)
        self._ids = {id(buffer): i for i, buffer in enumerate(self._buffers)}
        self._alive = Footprints()
        for buffer in self._buffers:
            self._alive.add(buffer)

    def get(self, slots: np.ndarray) -> Column:
        which = self._which[slots] if len(self._buffers) > 1 else None
        return BytesColumn(tuple(self._buffers), self._starts[slots], self._lengths[slots], which).compacted()

    def wider(self) -> ColumnRows:
        column = BytesColumn(tuple(self._buffers), self._starts, self._lengths, self._which)
        return ListRows(column.values())


class PickedRows(ColumnRows):
    """Elements of one array by index: only the indices are written and read."""

    def __init__(self, column: IndexedColumn) -> None:
        self._whole = column.whole
        self._at = np.empty(0, np.int64)
        self._filled = np.empty(0, bool)
        alive = Footprints()
        alive.add(column.whole)
        self._alive = alive.nbytes
        self.slot_bytes = None if self._alive else 0

    def nbytes(self, count: int) -> int:
        return self._alive

    def reserve(self, count: int) -> None:
        self._at, self._filled = grown(self._at, count), grown(self._filled, count)

    def accepts(self, column: Column) -> bool:
        return isinstance(column, IndexedColumn) and column.whole is self._whole

    def put(self, slots: np.ndarray, column: Column) -> None:
        assert isinstance(column, IndexedColumn)
        self._at[slots], self._filled[slots] = column.rows, True

    def get(self, slots: np.ndarray) -> Column:
        return IndexedColumn(self._whole, self._at[slots])

    def wider(self) -> ColumnRows:
        slots = np.flatnonzero(self._filled)
        kept = side_by_side(IndexedColumn(self._whole, self._at[slots]))
        found = DenseRows(kept) if isinstance(kept, DenseColumn) else ListRows([])
        found.reserve(len(self._at))
        found.put(slots, kept)
        return found


class ListRows(ColumnRows):
    def __init__(self, items: list[Any]) -> None:
        self._items = items
        self._alive = Footprints()
        for item in items:
            self._alive.add(item)

    def nbytes(self, count: int) -> int:
        return self._alive.nbytes

    def reserve(self, count: int) -> None:
        self._items.extend([None] * (count - len(self._items)))

    def accepts(self, column: Column) -> bool:
        return True

    def put(self, slots: np.ndarray, column: Column) -> None:
        for slot, value in zip(slots.tolist(), column.values(), strict=True):
            before, self._items[slot] = self._items[slot], value
            self._alive.add(value)
            if before is not None:
                self._alive.remove(before)

    def get(self, slots: np.ndarray) -> Column:
        return ListColumn([self._items[slot] for slot in slots.tolist()])

    def wider(self) -> ColumnRows:
        return self


class OriginRows:
    def __init__(self) -> None:
        self._names: dict[str, int] = {}
        self._files: tuple[str, ...] = ()  # the same names as a tuple
        self._file: np.ndarray | None = None
        self._offset = np.empty(0, np.int64)
        self._position: np.ndarray | None = None
        self._reserved = 0

    slot_bytes = 16

    def nbytes(self, count: int) -> int:
        return 0 if self._file is None else count * self.slot_bytes

    def reserve(self, count: int) -> None:
        self._reserved = count
        if self._file is not None:
            self._file, self._offset = grown(self._file, count), grown(self._offset, count)
        if self._position is not None:
            self._position = grown(self._position, count)

    def put(self, slots: np.ndarray, origin: Origin | None) -> OriginRows | None:
        """Write origins. Return self, or None if the elements have no origin."""
        if origin is None:
            return None
        if self._file is None:
            shape = (self._reserved, *origin.file.shape[1:])
            self._file, self._offset = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
            self._position = None if origin.position is None else np.zeros(shape, np.int64)
        if origin.file.ndim != self._file.ndim:
            return None
        if origin.file.shape[1:] != self._file.shape[1:]:
            kept = Origin((), self._file, self._offset, self._position)
            shape = common_shape([kept, origin])
            kept, origin = kept.widened(shape), origin.widened(shape)
            self._file, self._offset, self._position = kept.file, kept.offset, kept.position
        self._file[slots] = self._numbers(origin)
        self._offset[slots] = origin.offset
        if self._position is not None and origin.position is not None:
            self._position[slots] = origin.position
        else:
            self._position = None
        return self

    def _numbers(self, origin: Origin) -> np.ndarray:
        if origin.files == self._files:
            return origin.file
        found = numbered(origin, self._names)
        if len(self._names) > len(self._files):
            self._files = tuple(self._names)
        return found

    def get(self, slots: np.ndarray) -> Origin:
        assert self._file is not None
        position = None if self._position is None else self._position[slots]
        return Origin(self._files, self._file[slots], self._offset[slots], position)


class ElementRows:
    """`capacity` slots for whole elements.

    `put(slots, block)` writes the elements of a Block into slots. `gather(source, block)` reads elements: a source
    number below `capacity` is a slot, `capacity + i` is element i of `block`.

    Memory is allocated up to the highest slot used. Elements below 64 KiB are copied. Larger ones keep their Block
    alive. For elements of a memory cache, only the index is stored.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._reserved = 0
        self._used = 0  # number of slots from the start that contain all elements
        self._structure: Structure | None = None
        self._columns: list[ColumnRows] = []
        self._origin: OriginRows | None = None
        self._slot_bytes: int | None = None  # bytes per slot without the origin, see `slot_bytes`

    @property
    def structure(self) -> Structure | None:
        """Nest of all elements that `gather` returns: that of the first Block."""
        return self._structure

    def put(self, slots: np.ndarray, block: Block, rows: np.ndarray | None = None) -> None:
        """Write the elements `rows` of the Block (default: all) into `slots`."""
        if self._structure is None:
            self._structure = block.structure
            self._columns = [rows_for(column) for column in by_reference(block).columns]
            self._origin = None if block.origin is None else OriginRows()
            self._count_slot()
        self._used = max(self._used, int(slots.max()) + 1)
        self._reserve(self._used)
        chosen = by_reference(in_order(block, self._structure))
        if rows is not None:
            chosen = chosen.take(rows)
        for i, column in enumerate(chosen.columns):
            if not self._columns[i].accepts(column):
                column = side_by_side(column)
                while not self._columns[i].accepts(column):
                    self._columns[i] = self._columns[i].wider()
                    self._count_slot()
            self._columns[i].put(slots, column)
        if self._origin is not None:
            self._origin = self._origin.put(slots, chosen.origin)

    @property
    def nbytes(self) -> int:
        """Bytes that the used slots keep alive, including memory of larger arrays that elements are views of."""
        each = self._slot_bytes
        found = sum(rows.nbytes(self._used) for rows in self._columns) if each is None else self._used * each
        return found if self._origin is None else found + self._origin.nbytes(self._used)

    @property
    def slot_bytes(self) -> int | None:
        """Bytes of one slot if all slots have the same size, or None."""
        if self._slot_bytes is None or self._origin is None:
            return self._slot_bytes
        return self._slot_bytes + self._origin.slot_bytes

    def _count_slot(self) -> None:
        sizes = [rows.slot_bytes for rows in self._columns]
        known = [size for size in sizes if size is not None]
        self._slot_bytes = sum(known) if sizes and len(known) == len(sizes) else None

    def _reserve(self, count: int) -> None:
        if count <= self._reserved:
            return
        self._reserved = min(self.capacity, max(count, 2 * self._reserved))
        for rows in self._columns:
            rows.reserve(self._reserved)
        if self._origin is not None:
            self._origin.reserve(self._reserved)

    def gather(self, source: np.ndarray, block: Block | None = None) -> Block:
        return moved(self._gathered(source, block))

    def _gathered(self, source: np.ndarray, block: Block | None) -> Block:
        assert self._structure is not None
        inside = source < self.capacity
        if block is None or inside.all():
            return self._read(source)
        places = np.flatnonzero(~inside)
        outside = source[places] - self.capacity
        block = by_reference(in_order(block, self._structure))
        if len(places) == len(source):
            return block.take(outside)
        kept, order = source[inside], np.empty(len(source), np.int64)
        order[np.flatnonzero(inside)] = np.arange(len(kept))
        order[places] = np.arange(len(kept), len(source))
        made = [
            joined(rows.get(kept), given.take(outside)).take(order)
            for rows, given in zip(self._columns, block.columns, strict=True)
        ]
        origin = None
        if self._origin is not None and block.origin is not None:
            both = concat_origins([self._origin.get(kept), block.origin.take(outside)])
            origin = None if both is None else both.take(order)
        return Block(self._structure, made, len(source), origin)

    def _read(self, slots: np.ndarray) -> Block:
        assert self._structure is not None
        origin = None if self._origin is None else self._origin.get(slots)
        return Block(self._structure, [rows.get(slots) for rows in self._columns], len(slots), origin)
