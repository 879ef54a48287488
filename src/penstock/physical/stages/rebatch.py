"""Rebatch: batches cut and joined into batches of other sizes, with at most one copy."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.block.block import Block
from penstock.block.column import Column, DenseColumn, ListColumn
from penstock.block.origin import concat_origins
from penstock.block.tensors import RaggedTensor
from penstock.errors import Context, annotate
from penstock.physical.memory import UNCOUNTED, Collector, Memory
from penstock.physical.stacking import stack_each
from penstock.physical.stage import Cursor, Stage, State
from penstock.physical.stages.batch import Unbatch, stack_column


class Rebatch(Stage):
    """`unbatch` and `batch`, with `sizes` taken in turn; slices of the batches below where they are large enough.

    These have `most` rows, where that is known.
    """

    def __init__(
        self,
        upstream: Stage,
        sizes: tuple[int, ...],
        label: str,
        where: str | None,
        *,
        drop_remainder: bool,
        most: int | None = None,
        memory: Memory = UNCOUNTED,
    ) -> None:
        super().__init__(label, (upstream,), where)
        self._batches = _Batches(upstream)
        self._cursor = Cursor(Unbatch(self._batches, label, where, most))
        self._collector = Collector(self._cursor, memory.account("batch", label, where))
        self._sizes = sizes if len(set(sizes)) > 1 else sizes[:1]
        self._drop_remainder = drop_remainder
        self._count = 0

    def next(self, want: int) -> Block | None:
        self._batches.ask = want * self._size(0) // self._batches.rows
        found = self._several(want)
        if found is None:
            found = self._one(want)
        if found is not None:
            self._count += found.size
        return found

    def _several(self, want: int) -> Block | None:
        """As many batches as can be cut from the rows at hand, as views."""
        available = self._cursor.available()
        if available < self._size(0):
            return None
        block = self._cursor.peek()
        if self._batches.ragged or any(isinstance(column, ListColumn) for column in block.columns):
            return None
        if len(self._sizes) == 1:
            count = min(want, available // self._sizes[0])
            return _cut(self._cursor.take_available(count * self._sizes[0]), self._sizes[0])
        ends = np.cumsum([self._size(i) for i in range(min(want, available))])
        ends = ends[ends <= available]
        rows = self._cursor.take_available(int(ends[-1]))
        starts = [0, *ends[:-1].tolist()]
        parts = list(zip(starts, ends.tolist(), strict=True))
        columns = []
        for column in _cut(rows, rows.size).columns:
            (values,) = column.values()
            columns.append(ListColumn([values[a:b] for a, b in parts]))
        origin = rows.origin
        if origin is not None:
            origin = concat_origins([origin.slice(a, b).batched(b - a) for a, b in parts])
        return Block(rows.structure, columns, len(ends), origin)

    def _one(self, want: int) -> Block | None:
        size = self._size(0)
        rows = self._collector.take(size, want * size)
        if rows is None or (rows.size < size and self._drop_remainder):
            return None
        try:
            if rows.error is not None:
                raise rows.error
            assert rows.block is not None
            return stack_each(rows.block, rows.size, self._stack)
        except Exception as error:
            annotate(error, Context(stage=self.label, where=self.where, element=self._count))
            self._count += 1
            raise

    def _size(self, ahead: int) -> int:
        return self._sizes[(self._count + ahead) % len(self._sizes)]

    def _stack(self, _: int, column: Column, path: str) -> Column:
        dtype = self._batches.ragged.get(path)
        if dtype is None:
            return stack_column(column, path)
        return ListColumn([RaggedTensor.stack(column.values(), dtype)])

    def state(self) -> State:
        return [self._cursor.state(), self._count]

    def restore(self, state: State) -> None:
        below, self._count = state
        self._cursor.restore(below)

    def close(self) -> None:
        self._collector.close()


def _cut(rows: Block, size: int) -> Block:
    """Every `size` rows as one batch, without a copy."""
    columns = [column for column in (c.batched(size) for c in rows.columns) if column is not None]
    origin = None if rows.origin is None else rows.origin.batched(size)
    return Block(rows.structure, columns, rows.size // size, origin)


class _Batches(Stage):
    """The batches below, in Blocks that `Unbatch` takes apart without a copy.

    `ragged` holds the paths of the components that are ragged tensors, whose rows are arrays, and their splits' dtype.
    """

    def __init__(self, upstream: Stage) -> None:
        super().__init__(upstream.label, (upstream,), upstream.where)
        self._cursor = Cursor(upstream)
        self.ragged: dict[str, Any] = {}
        self.rows = 64  # of a batch, as the last had them
        self.ask = 1  # batches to ask for, where nobody sees how many are made

    def next(self, want: int) -> Block | None:
        if not self._cursor.fill(want if self._cursor.stage.seen else max(self.ask, 1)):
            return None
        block = self._cursor.peek()
        self.rows = max(_extent(block), 1)
        if not any(isinstance(column, ListColumn) for column in block.columns):
            return self._cursor.take_available(block.size)
        one = self._cursor.take_available(1)
        for column, path in zip(one.columns, one.structure.paths(), strict=True):
            if isinstance(column, ListColumn) and isinstance(column.items[0], RaggedTensor):
                self.ragged[path] = column.items[0].row_splits.dtype
        return one.with_columns(one.structure, [_divisible(column) for column in one.columns])

    def state(self) -> State:
        return self._cursor.state()

    def restore(self, state: State) -> None:
        self._cursor.restore(state)

    def close(self) -> None:
        self._cursor.close()


def _extent(block: Block) -> int:
    """Rows of the first batch."""
    for column in block.columns:
        shape = getattr(column.slice(0, 1).spec(), "shape", ())
        if shape and shape[0] is not None:
            return int(shape[0])
    return 1


def _divisible(column: Column) -> Column:
    """A column of one element, such that its rows are views."""
    if not isinstance(column, ListColumn):
        return column
    (item,) = column.items
    if isinstance(item, np.ndarray) and item.dtype != object:
        return DenseColumn(item[None])
    return column
