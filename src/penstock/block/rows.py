"""Rows: elements kept by slot number, written and read a Block at a time; what a shuffle buffer is made of."""

from __future__ import annotations

import numpy as np

from penstock.block.block import Block, in_order
from penstock.block.by_reference import by_reference, joined, moved, side_by_side
from penstock.block.column_rows import ColumnRows, rows_for
from penstock.block.origin import concat_origins
from penstock.block.origin_rows import OriginRows
from penstock.block.structure import Structure


class Rows:
    """`capacity` slots for whole elements.

    `put(slots, block)` writes a Block's elements into slots; `gather(source, block)` reads: a source number below
    `capacity` is a slot, `capacity + i` is element i of `block`. Memory follows the highest slot used: elements below
    64 KiB are copied in, larger ones keep the Block they came in alive. Of what a memory cache keeps there are numbers.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._reserved = 0
        self._used = 0  # slots below which all that is held lies
        self._structure: Structure | None = None
        self._columns: list[ColumnRows] = []
        self._origin: OriginRows | None = None
        self._slot_bytes: int | None = None  # as `slot_bytes`, beside the origin

    def put(self, slots: np.ndarray, block: Block, rows: np.ndarray | None = None) -> None:
        """Write elements `rows` of the Block (all of them by default) into `slots`."""
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
        """Bytes kept alive for the slots used, also by elements that are views of larger arrays."""
        each = self._slot_bytes
        found = sum(rows.nbytes(self._used) for rows in self._columns) if each is None else self._used * each
        return found if self._origin is None else found + self._origin.nbytes(self._used)

    @property
    def slot_bytes(self) -> int | None:
        """Bytes that every slot takes, where they are the same for all."""
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
        kept = source[inside]
        anywhere = np.where(inside, source, kept[0])
        order = np.empty(len(source), np.int64)
        order[np.flatnonzero(inside)] = np.arange(len(kept))
        order[places] = np.arange(len(kept), len(source))
        columns = [
            rows.get_with(anywhere, places, column, outside) or joined(rows.get(kept), column.take(outside)).take(order)
            for rows, column in zip(self._columns, block.columns, strict=True)
        ]
        origin = None
        if self._origin is not None and block.origin is not None:
            both = concat_origins([self._origin.get(kept), block.origin.take(outside)])
            origin = None if both is None else both.take(order)
        return Block(self._structure, columns, len(source), origin)

    def _read(self, slots: np.ndarray) -> Block:
        assert self._structure is not None
        origin = None if self._origin is None else self._origin.get(slots)
        return Block(self._structure, [rows.get(slots) for rows in self._columns], len(slots), origin)
