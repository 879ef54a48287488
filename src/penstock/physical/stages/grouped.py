"""`GroupedStage` joins neighbours to one element with a function on Blocks, such as for batches.

`RebatchStage` joins the rows of batches to batches of other sizes. `BucketStage` joins similar lengths.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from penstock.block.block import Block
from penstock.block.column import Column, DenseColumn, ListColumn
from penstock.block.origin import concat_origins
from penstock.block.tensors import RaggedTensor
from penstock.errors import Context, PenstockError, annotate
from penstock.physical.chained import Chained, place_of
from penstock.physical.memory import UNCOUNTED, Collector, Memory
from penstock.physical.stacking import stack_each
from penstock.physical.stage import Cursor, CursorStage, Stage, State
from penstock.physical.stages.batch import UnbatchStage, stack_column
from penstock.physical.stages.keyed_windows import KeyedWindows
from penstock.plan.grouping import BucketBySequenceLength
from penstock.plan.node import NamedStep

Stack = Callable[[Block, int], Block]  # stacks every `size` elements of a Block

_BYTES = 1 << 16  # bytes of elements of different shapes (by the first one) that are joined to groups at once


class GroupedStage(Stage):
    """Joins `size` neighbours to one element with `stack`; many groups at once if their elements are available."""

    def __init__(
        self,
        upstream: Stage,
        size: int,
        stack: Stack,
        step: NamedStep,
        *,
        drop_remainder: bool,
        memory: Memory = UNCOUNTED,
    ) -> None:
        super().__init__(step.label, (upstream,), step.where)
        self._cursor = Cursor(upstream)
        self._collector = Collector(self._cursor, memory.account("batch", step.label, step.where))
        self._size = size
        self._stack = stack
        self._drop_remainder = drop_remainder
        self._count = 0

    def next(self, want: int) -> Block | None:
        self._collector.ready(want * self._size)
        return self._groups(want)

    def _groups(self, want: int) -> Block | None:
        found = self._several(want)
        if found is None:
            found = self._one(want)
        if found is not None:
            self._count += found.size
        return found

    def _several(self, want: int) -> Block | None:
        """Return as many groups as are available, or None if one of them fails.

        The failing group is then computed alone.
        """
        count = min(want, self._cursor.available() // self._size)
        if not count:
            return None
        block = self._cursor.peek()
        for column in block.columns:
            if isinstance(column, ListColumn):
                (first,) = column.slice(0, 1).items
                count = min(count, max(_BYTES // (self._size * getattr(first, "nbytes", _BYTES) + 1), 1))
        try:
            found = self._stack(block.slice(0, count * self._size), self._size)
        except PenstockError:
            return None
        self._cursor.take_available(count * self._size)
        return found

    def _one(self, want: int) -> Block | None:
        group = self._collector.take(self._size, want * self._size)
        if group is None:
            return None
        if group.size < self._size and self._drop_remainder and group.error is None:  # a failure is raised in any case
            return None
        try:
            if group.error is not None:
                raise group.error
            assert group.block is not None
            return self._stack(group.block, group.size)
        except Exception as error:
            annotate(error, Context(stage=self.label, where=self.where, element=self._count))
            self._count += 1
            raise

    def can_skip(self) -> bool:
        return self._cursor.stage.can_skip()

    def skip(self, count: int) -> int:
        passed = self._cursor.skip(count * self._size)
        groups = passed // self._size if self._drop_remainder else -(-passed // self._size)
        self._count += groups
        return groups

    def state(self) -> State:
        below, offset = self._cursor.state()
        return Chained(below, offset, self._count * self._size, (self._size,), 0)

    def restore(self, state: State) -> None:
        place = place_of(state, (self._size,))
        self._count = (place.count or 0) // self._size
        self._cursor.restore([place.below, place.first])

    def close(self) -> None:
        self._collector.close()


class RebatchStage(GroupedStage):
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
        self._batches = _BatchesStage(upstream, step)
        rows = UnbatchStage(self._batches, step, most)
        super().__init__(rows, sizes[0], self._joined, step, drop_remainder=drop_remainder, memory=memory)
        self.inputs, self._reader = (upstream,), self._cursor
        self._sizes = sizes if len(set(sizes)) > 1 else sizes[:1]

    def next(self, want: int) -> Block | None:
        self._size = self._size_of(self._count)
        self._batches.ask = want * self._size // self._batches.rows
        return self._groups(want)

    def _size_of(self, number: int) -> int:
        return self._sizes[number % len(self._sizes)]

    def _several(self, want: int) -> Block | None:
        """Return as many batches as can be cut from the available rows, as views."""
        available = self._cursor.available()
        if available < self._size:
            return None
        block = self._cursor.peek()
        if self._batches.ragged or any(isinstance(column, ListColumn) for column in block.columns):
            return None
        if len(self._sizes) == 1:
            count = min(want, available // self._size)
            return _cut(self._cursor.take_available(count * self._size), self._size)
        ends = np.cumsum([self._size_of(self._count + i) for i in range(min(want, available))])
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

    def _joined(self, rows: Block, size: int) -> Block:
        def stack(_: int, column: Column, path: str) -> Column:
            dtype = self._batches.ragged.get(path)
            if dtype is None:
                return stack_column(column, path)
            return ListColumn([RaggedTensor.stack(column.values(), dtype)])

        return stack_each(rows, size, stack)

    def state(self) -> State:
        return self.place()

    def restore(self, state: State) -> None:
        self.go_to(state)


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


class BucketStage(Stage):
    """Joins each window to one element with the function of its key. Keys are the indices of the buckets."""

    def __init__(
        self, upstream: Stage, windows: KeyedWindows, node: BucketBySequenceLength, stacks: Sequence[Stack]
    ) -> None:
        super().__init__(node.label, (upstream,), node.where)
        self._windows = windows
        self._sizes = node.bucket_batch_sizes
        self._stacks = stacks
        self._drop_remainder = node.drop_remainder

    def next(self, want: int) -> Block | None:
        self._windows.singly = self.acts
        while (window := self._windows.next(want)) is not None:
            size = window.elements.size
            if size < self._sizes[window.key] and self._drop_remainder:
                continue
            try:
                return self._stacks[window.key](window.elements, size)
            except PenstockError as error:
                annotate(error, Context(stage=self.label, where=self.where, element=window.number))
                raise
        return None

    def state(self) -> State:
        return self._windows.state()

    def restore(self, state: State) -> None:
        self._windows.restore(state)

    def close(self) -> None:
        self._windows.close()
