"""Rows: elements kept by slot number, written and read a Block at a time; what a shuffle buffer is made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from penstock.block.block import Block
from penstock.block.column import BytesColumn, Column, DenseColumn, ListColumn, concat
from penstock.block.footprint import Footprints
from penstock.block.origin import Origin, common_shape, concat_origins, numbered
from penstock.block.structure import Structure

_STRING = 20  # bytes beside its content
_BY_REFERENCE = 1 << 16  # bytes of one element from which a view of its Block is kept instead of a copy


class Rows:
    """`capacity` slots for whole elements.

    `put(slots, block)` writes a Block's elements into slots; `gather(source, block)` reads: a source number below
    `capacity` is a slot, `capacity + i` is element i of `block`. Memory follows the highest slot used: elements below
    64 KiB are copied in, larger ones keep the Block they came in alive.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._reserved = 0
        self._used = 0  # slots below which all that is held lies
        self._structure: Structure | None = None
        self._columns: list[_ColumnRows] = []
        self._origin: _OriginRows | None = None

    def put(self, slots: np.ndarray, block: Block, rows: np.ndarray | None = None) -> None:
        """Write elements `rows` of the Block (all of them by default) into `slots`."""
        if self._structure is None:
            self._structure = block.structure
            self._columns = [_rows_for(column) for column in block.columns]
            self._origin = None if block.origin is None else _OriginRows()
        self._used = max(self._used, int(slots.max()) + 1)
        self._reserve(self._used)
        chosen = block if rows is None else _viewed(block).take(rows)
        for i, column in enumerate(chosen.columns):
            if not self._columns[i].accepts(column):
                self._columns[i] = self._columns[i].as_list()
            self._columns[i].put(slots, column)
        if self._origin is not None:
            self._origin = self._origin.put(slots, chosen.origin)

    @property
    def nbytes(self) -> int:
        """Bytes kept alive for the slots used, also by elements that are views of larger arrays."""
        found = sum(rows.nbytes(self._used) for rows in self._columns)
        return found if self._origin is None else found + self._origin.nbytes(self._used)

    @property
    def slot_bytes(self) -> int | None:
        """Bytes that every slot takes, where they are the same for all."""
        sizes = [rows.slot_bytes for rows in self._columns]
        if not sizes or None in sizes:
            return None
        return sum(size for size in sizes if size) + (0 if self._origin is None else self._origin.slot_bytes)

    def _reserve(self, count: int) -> None:
        if count <= self._reserved:
            return
        self._reserved = min(self.capacity, max(count, 2 * self._reserved))
        for rows in self._columns:
            rows.reserve(self._reserved)
        if self._origin is not None:
            self._origin.reserve(self._reserved)

    def gather(self, source: np.ndarray, block: Block | None = None) -> Block:
        assert self._structure is not None
        inside = source < self.capacity
        if block is None or inside.all():
            return self._read(source)
        outside = source[~inside] - self.capacity
        block = _viewed(block)
        if not inside.any():
            return block.take(outside)
        kept, fresh = self._read(source[inside]), block.take(outside)
        order = np.empty(len(source), np.int64)
        order[np.flatnonzero(inside)] = np.arange(kept.size)
        order[np.flatnonzero(~inside)] = np.arange(kept.size, len(source))
        columns = [concat([a, b]).take(order) for a, b in zip(kept.columns, fresh.columns, strict=True)]
        origin = None
        if kept.origin is not None and fresh.origin is not None:
            joined = concat_origins([kept.origin, fresh.origin])
            origin = None if joined is None else joined.take(order)
        return Block(self._structure, columns, len(source), origin)

    def _read(self, slots: np.ndarray) -> Block:
        assert self._structure is not None
        origin = None if self._origin is None else self._origin.get(slots)
        return Block(self._structure, [rows.get(slots) for rows in self._columns], len(slots), origin)


def _viewed(block: Block) -> Block:
    """The Block with large elements that are kept anyway as views of it, so that taking some of them copies none."""
    if not any(_is_kept(column) for column in block.columns):
        return block
    columns = [ListColumn(column.values()) if _is_kept(column) else column for column in block.columns]
    return block.with_columns(block.structure, columns)


def _is_kept(column: Column) -> bool:
    return isinstance(column, DenseColumn) and _is_large(column) and not column.array.flags.writeable


def _is_large(column: DenseColumn) -> bool:
    return column.nbytes >= _BY_REFERENCE * len(column)


class _ColumnRows(ABC):
    slot_bytes: int | None = None

    @abstractmethod
    def nbytes(self, count: int) -> int:
        """Bytes kept alive for the slots below `count`."""

    @abstractmethod
    def accepts(self, column: Column) -> bool:
        """Whether the column has this layout; otherwise all becomes a list."""

    @abstractmethod
    def reserve(self, count: int) -> None:
        """Have room for slots below `count`."""

    @abstractmethod
    def put(self, slots: np.ndarray, column: Column) -> None: ...

    @abstractmethod
    def get(self, slots: np.ndarray) -> Column: ...

    @abstractmethod
    def as_list(self) -> _ListRows: ...


def _rows_for(column: Column) -> _ColumnRows:
    if isinstance(column, DenseColumn) and not _is_large(column):
        return _DenseRows(column)
    if isinstance(column, BytesColumn):
        return _BytesRows(column)
    return _ListRows([])


def _grown(array: np.ndarray, count: int) -> np.ndarray:
    larger = np.zeros((count, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


class _DenseRows(_ColumnRows):
    def __init__(self, column: DenseColumn) -> None:
        self._array = np.empty((0, *column.array.shape[1:]), column.array.dtype)
        self.slot_bytes: int = column.array.nbytes // len(column)

    def nbytes(self, count: int) -> int:
        return count * self.slot_bytes

    def reserve(self, count: int) -> None:
        self._array = _grown(self._array, count)

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

    def as_list(self) -> _ListRows:
        return _ListRows(list(self._array))


class _BytesRows(_ColumnRows):
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
        self._starts = _grown(self._starts, count)
        self._lengths = _grown(self._lengths, count)
        self._which = _grown(self._which, count)

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

    def as_list(self) -> _ListRows:
        column = BytesColumn(tuple(self._buffers), self._starts, self._lengths, self._which)
        return _ListRows(column.values())


class _ListRows(_ColumnRows):
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

    def as_list(self) -> _ListRows:
        return self


class _OriginRows:
    def __init__(self) -> None:
        self._names: dict[str, int] = {}
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
            self._file, self._offset = _grown(self._file, count), _grown(self._offset, count)
        if self._position is not None:
            self._position = _grown(self._position, count)

    def put(self, slots: np.ndarray, origin: Origin | None) -> _OriginRows | None:
        """Self, or None from the moment elements without an origin come."""
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
        self._file[slots] = numbered(origin, self._names)
        self._offset[slots] = origin.offset
        if self._position is not None and origin.position is not None:
            self._position[slots] = origin.position
        else:
            self._position = None
        return self

    def get(self, slots: np.ndarray) -> Origin:
        assert self._file is not None
        position = None if self._position is None else self._position[slots]
        return Origin(tuple(self._names), self._file[slots], self._offset[slots], position)
