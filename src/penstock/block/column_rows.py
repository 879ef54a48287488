"""ColumnRows: the slots of one component, in the layout that its elements have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from penstock.block.by_reference import is_large, side_by_side
from penstock.block.column import BytesColumn, Column, DenseColumn, ListColumn
from penstock.block.footprint import Footprints
from penstock.block.indexed_column import IndexedColumn

_STRING = 20  # bytes beside its content


def grown(array: np.ndarray, count: int) -> np.ndarray:
    """The same slots and empty ones, `count` in all."""
    larger = np.zeros((count, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


class ColumnRows(ABC):
    slot_bytes: int | None = None

    @abstractmethod
    def nbytes(self, count: int) -> int:
        """Bytes kept alive for the slots below `count`."""

    @abstractmethod
    def accepts(self, column: Column) -> bool:
        """Whether the column has this layout; otherwise all takes a wider one."""

    @abstractmethod
    def reserve(self, count: int) -> None:
        """Have room for slots below `count`."""

    @abstractmethod
    def put(self, slots: np.ndarray, column: Column) -> None: ...

    @abstractmethod
    def get(self, slots: np.ndarray) -> Column: ...

    def get_with(self, slots: np.ndarray, places: np.ndarray, column: Column, rows: np.ndarray) -> Column | None:
        """What is in the slots, but elements `rows` of a column in some places; None where that is not put together."""
        return None

    @abstractmethod
    def wider(self) -> ColumnRows:
        """The same elements in a layout that other columns have, too."""


def rows_for(column: Column) -> ColumnRows:
    """Empty slots for elements as in this column, which `by_reference` gave."""
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

    def get_with(self, slots: np.ndarray, places: np.ndarray, column: Column, rows: np.ndarray) -> Column | None:
        if not self.accepts(column):
            return None
        assert isinstance(column, DenseColumn)
        found = self._array.take(slots, axis=0)
        found[places] = column.array[rows]
        return DenseColumn(found)

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
    """Elements of one array by their numbers: nothing but these is written and read."""

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
