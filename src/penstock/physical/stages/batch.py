"""Batches of stacked elements; `UnbatchStage`, which splits them again; and batches of other sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.block.arena import ARENA
from penstock.block.block import Block
from penstock.block.column import BytesColumn, Column, DenseColumn, ListColumn, column_of, shape_mismatch
from penstock.block.indexed_column import IndexedColumn
from penstock.block.origin import concat_origins
from penstock.block.tensors import RaggedTensor, SparseTensor
from penstock.errors import Context, InvalidArgumentError, InvalidTypeError, PenstockError, annotate
from penstock.physical.kernels.run import gather
from penstock.physical.memory import UNCOUNTED, Collector, Memory
from penstock.physical.stacking import stack_each
from penstock.physical.stage import Cursor, CursorStage, Stage, UnaryStage
from penstock.plan.node import NamedStep


def stack_column(column: Column, path: str) -> Column:
    """Stack all elements of a column to a column with one element."""
    batched = column.batched(len(column))
    if batched is not None:
        return batched
    if isinstance(column, IndexedColumn):
        out = ARENA.empty((1, len(column), *column.whole.shape[1:]), column.whole.dtype)
        gather(column.whole, column.rows, out[0])
        return DenseColumn(out)
    assert isinstance(column, ListColumn)
    items = column.items
    first = items[0]
    if isinstance(first, (SparseTensor, RaggedTensor)):
        return ListColumn([type(first).stack(items)])
    if not isinstance(first, (np.ndarray, np.generic, bytes)):
        message = f"Elements of type {type(first).__name__} cannot be batched."
        raise InvalidTypeError(message, hint="Flatten nested data sets first, with flat_map.")
    shape = getattr(first, "shape", ())
    for row, item in enumerate(items):
        if getattr(item, "shape", ()) != shape:
            raise shape_mismatch(row, getattr(item, "shape", ()), shape, path)
    if not isinstance(first, np.ndarray):  # an element of a column with different ranks
        numbers = column_of(items).batched(len(items))
        assert numbers is not None
        return numbers
    if first.dtype == object:
        return BytesColumn.from_values(
            [s for item in items for s in item.reshape(-1).tolist()], (len(items), *first.shape), 1
        )
    out = ARENA.empty((1, len(items), *first.shape), first.dtype)
    for row, item in enumerate(items):
        out[0, row] = item
    return DenseColumn(out)


def stack_block(block: Block, size: int = 0) -> Block:
    """Stack all elements of a Block to one, or every `size` of them. Dense columns become batches without a copy."""
    return stack_each(block, size or block.size, lambda _, column, path: _stacked(column, size or len(column), path))


def _stacked(column: Column, size: int, path: str) -> Column:
    batched = column.batched(size)
    if batched is not None:
        return batched
    parts = [stack_column(column.slice(at, at + size), path) for at in range(0, len(column), size)]
    return parts[0] if len(parts) == 1 else ListColumn([part.values()[0] for part in parts])


class UnbatchStage(CursorStage):
    """Yields every slice along the first axis as an element. `most` is the largest number of slices per element."""

    def __init__(self, upstream: Stage, step: NamedStep, most: int | None = None) -> None:
        super().__init__(upstream, step)
        self._most = most
        self._rows = 64  # number of slices of the last elements

    def next(self, want: int) -> Block | None:
        # The next elements may have more slices than the last. This matters if computing them is observable.
        each = (self._most or want) if self._cursor.stage.seen else self._rows
        while self._cursor.fill(max(want // each, 1)):
            block = self._cursor.peek()
            try:
                rows = taken_apart(block)
            except PenstockError:
                block = block.slice(0, 1)
                try:
                    rows = taken_apart(block)  # the first element alone may be valid
                except PenstockError as error:
                    self._cursor.take_available(1)
                    annotate(error, Context(stage=self.label, where=self.where))
                    raise error from None
            self._cursor.take_available(block.size)
            if rows is not None:
                self._rows = max(rows.size // block.size, 1)
                return rows
        return None


def taken_apart(block: Block) -> Block | None:
    """Return the slices of all elements, or None if there are none."""
    lengths = first_extents(block)
    if not sum(lengths):
        return None
    kept = block if all(lengths) else block.take(np.flatnonzero(lengths))
    lengths = [n for n in lengths if n]
    columns = [column.unbatched(lengths) for column in kept.columns]
    origin = None if kept.origin is None else kept.origin.unbatched(lengths)
    return Block(kept.structure, columns, sum(lengths), origin)


def first_extents(block: Block) -> Sequence[int]:
    """Return the length of each element's first axis, which all components share."""
    found: list[int] | None = None
    for column, path in zip(block.columns, block.structure.paths(), strict=True):
        if isinstance(column, ListColumn):
            if not isinstance(column.items[0], (np.ndarray, RaggedTensor, SparseTensor)):
                message = f"unbatch cuts tensors; component {path or 'value'} is a {type(column.items[0]).__name__}."
                raise InvalidTypeError(message, hint="Take the elements out of inner data sets with flat_map.")
            extents = [len(item) if getattr(item, "ndim", 1) else -1 for item in column.items]
        else:
            assert isinstance(column, (DenseColumn, BytesColumn))
            shape = column.array.shape if isinstance(column, DenseColumn) else column.starts.shape
            extents = [shape[1] if len(shape) > 1 else -1] * len(column)
        if -1 in extents:
            message = f"unbatch cuts along the first axis; component {path or 'value'} is a scalar."
            raise InvalidArgumentError(message, hint="Only elements made by batch, or arrays, can be unbatched.")
        if found is not None and extents != found:
            row = next(i for i, (a, b) in enumerate(zip(found, extents, strict=True)) if a != b)
            message = (
                f"Components of one element differ along the first axis: {found[row]} and {extents[row]} ({path})."
            )
            raise InvalidArgumentError(message)
        found = extents
    if found is None:
        message = "unbatch needs at least one component."
        raise InvalidArgumentError(message)
    return found


class RebatchStage(UnaryStage):
    """Runs `unbatch` and `batch` with `sizes` in turn.

    Batches are views of the input batches if these are large enough.

    `most` is the number of rows of the input batches, if it is known.
    """

    moving = ("_count",)

    def __init__(
        self,
        upstream: Stage,
        sizes: tuple[int, ...],
        step: NamedStep,
        *,
        drop_remainder: bool,
        most: int | None = None,
        memory: Memory = UNCOUNTED,
    ) -> None:
        super().__init__(upstream, step)
        self._batches = _BatchesStage(upstream, step)
        self._cursor = self._reader = Cursor(UnbatchStage(self._batches, step, most))
        self._collector = Collector(self._cursor, memory.account("batch", step.label, step.where))
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
        """Return as many batches as can be cut from the available rows, as views."""
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
        if rows is None or (rows.size < size and self._drop_remainder and rows.error is None):
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

    def close(self) -> None:
        self._collector.close()


def _cut(rows: Block, size: int) -> Block:
    """Return every `size` rows as one batch, without a copy."""
    columns = [column for column in (c.batched(size) for c in rows.columns) if column is not None]
    origin = None if rows.origin is None else rows.origin.batched(size)
    return Block(rows.structure, columns, rows.size // size, origin)


class _BatchesStage(CursorStage):
    """Yields the input batches in Blocks that `UnbatchStage` splits without a copy.

    `ragged` contains the paths of ragged components, whose rows are arrays, and the dtypes of their splits.
    """

    def __init__(self, upstream: Stage, step: NamedStep) -> None:
        super().__init__(upstream, step)
        self.ragged: dict[str, Any] = {}
        self.rows = 64  # rows per batch of the last batches
        self.ask = 1  # batches to request, if computing them is not observable

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


def _extent(block: Block) -> int:
    """Return the number of rows of the first batch."""
    for column in block.columns:
        shape = getattr(column.slice(0, 1).spec(), "shape", ())
        if shape and shape[0] is not None:
            return int(shape[0])
    return 1


def _divisible(column: Column) -> Column:
    """Return a column of one element in a form whose rows are views."""
    if not isinstance(column, ListColumn):
        return column
    (item,) = column.items
    if isinstance(item, np.ndarray) and item.dtype != object:
        return DenseColumn(item[None])
    return column
