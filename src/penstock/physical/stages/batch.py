"""Batch and unbatch: elements stacked into one, and taken apart again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.block.arena import ARENA
from penstock.block.block import Block
from penstock.block.column import BytesColumn, Column, DenseColumn, ListColumn, shape_mismatch
from penstock.block.tensors import RaggedTensor, SparseTensor
from penstock.errors import Context, InvalidArgumentError, InvalidTypeError, PenstockError, annotate
from penstock.physical.stage import Cursor, Stage, State


def stack_column(column: Column, path: str) -> Column:
    """All elements of a column as the single element of another."""
    batched = column.batched(len(column))
    if batched is not None:
        return batched
    assert isinstance(column, ListColumn)
    items = column.items
    first = items[0]
    if isinstance(first, (SparseTensor, RaggedTensor)):
        return ListColumn([type(first).stack(items)])
    if not isinstance(first, np.ndarray):
        message = f"Elements of type {type(first).__name__} cannot be batched."
        raise InvalidTypeError(message, hint="Flatten nested data sets first, with flat_map.")
    for row, item in enumerate(items):
        if item.shape != first.shape:
            raise shape_mismatch(row, item.shape, first.shape, path)
    if first.dtype == object:
        return BytesColumn.from_values(
            [s for item in items for s in item.reshape(-1).tolist()], (len(items), *first.shape)
        )
    out = ARENA.empty((1, len(items), *first.shape), first.dtype)
    for row, item in enumerate(items):
        out[0, row] = item
    return DenseColumn(out)


def stack_block(block: Block) -> Block:
    """All elements of a Block as one."""
    paths = block.structure.paths()
    try:
        columns = [stack_column(column, path) for column, path in zip(block.columns, paths, strict=True)]
    except PenstockError as error:
        row, error.context = error.context.element, Context()
        if row is not None and block.origin is not None:
            error.context = Context(None, None, None, *block.origin.at(row))
        raise
    return Block(block.structure, columns, 1, None if block.origin is None else block.origin.batched(block.size))


class Batch(Stage):
    """`size` neighbours as one element. Dense columns become batches without a copy, many batches in one Block."""

    def __init__(self, upstream: Stage, size: int, label: str, where: str | None, *, drop_remainder: bool) -> None:
        super().__init__(label, (upstream,), where)
        self._cursor = Cursor(upstream)
        self._size = size
        self._drop_remainder = drop_remainder
        self._count = 0

    def next(self, want: int) -> Block | None:
        first: Exception | None = None
        try:
            more = self._cursor.fill(want * self._size)
        except Exception as error:
            more, first = True, error
        if not more:
            return None
        whole = min(want, self._cursor.available() // self._size)
        found = self._whole(whole) if whole and first is None else self._next_one(want, first)
        if isinstance(found, Block):
            self._count += found.size
            return found
        if found is None:
            return None
        annotate(found, Context(stage=self.label, where=self.where, element=self._count))
        self._count += 1
        raise found

    def _whole(self, count: int) -> Block:
        """Several batches at once, where the elements are at hand in one Block of dense columns."""
        if any(isinstance(column, ListColumn) for column in self._cursor.peek().columns):
            return self._stack(self._cursor.take_available(self._size))  # one that fails takes no other with it
        block = self._cursor.take_available(count * self._size)
        known = [column for column in (c.batched(self._size) for c in block.columns) if column is not None]
        origin = None if block.origin is None else block.origin.batched(self._size)
        return Block(block.structure, known, count, origin)

    def _next_one(self, want: int, first: Exception | None) -> Block | Exception | None:
        """The next batch from several Blocks; one with a failure in it (perhaps its `first` position) is a failure."""
        group = self._cursor.take(self._size - (first is not None), want * self._size)
        size = (first is not None) + (0 if group is None else group.size)
        if size < self._size and self._drop_remainder:
            return None
        if first is not None or group is None or group.block is None or group.failures:
            return first or (None if group is None else group.error)
        return self._stack(group.block)

    def _stack(self, block: Block) -> Block:
        try:
            return stack_block(block)
        except PenstockError as error:
            annotate(error, Context(stage=self.label, where=self.where, element=self._count))
            self._count += 1
            raise

    def state(self) -> State:
        return [self._cursor.state(), self._count]

    def restore(self, state: State) -> None:
        below, self._count = state
        self._cursor.restore(below)

    def close(self) -> None:
        self._cursor.close()


class Unbatch(Stage):
    """Every slice along the first axis as an element of its own."""

    def __init__(self, upstream: Stage, label: str, where: str | None) -> None:
        super().__init__(label, (upstream,), where)
        self._cursor = Cursor(upstream)

    def next(self, want: int) -> Block | None:
        while self._cursor.fill(max(want // 64, 1)):
            block = self._cursor.peek()
            try:
                lengths = _first_extents(block)
            except PenstockError as error:
                block = block.slice(0, 1)
                try:
                    lengths = _first_extents(block)  # the first alone may be sound
                except PenstockError:
                    self._cursor.take_available(1)
                    annotate(error, Context(stage=self.label, where=self.where))
                    raise error from None
            self._cursor.take_available(block.size)
            if sum(lengths):
                return _unbatched(block, lengths)
        return None

    def state(self) -> State:
        return self._cursor.state()

    def restore(self, state: State) -> None:
        self._cursor.restore(state)

    def close(self) -> None:
        self._cursor.close()


def _unbatched(block: Block, lengths: Sequence[int]) -> Block:
    kept = block if all(lengths) else block.take(np.flatnonzero(lengths))
    lengths = [n for n in lengths if n]
    columns = [column.unbatched(lengths) for column in kept.columns]
    origin = kept.origin.unbatched() if kept.origin is not None and len(set(lengths)) == 1 else None
    if origin is not None and len(origin) != sum(lengths):
        origin = None
    return Block(kept.structure, columns, sum(lengths), origin)


def _first_extents(block: Block) -> Sequence[int]:
    """Each element's extent along its first axis, which all components share."""
    found: list[int] | None = None
    for column, path in zip(block.columns, block.structure.paths(), strict=True):
        if isinstance(column, ListColumn):
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
