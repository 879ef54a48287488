"""Batches of stacked elements; `UnbatchStage`, which splits them again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.block.arena import ARENA
from penstock.block.block import Block
from penstock.block.column import BytesColumn, Column, DenseColumn, ListColumn, column_of, shape_mismatch
from penstock.block.indexed_column import IndexedColumn
from penstock.block.tensors import RaggedTensor, SparseTensor
from penstock.errors import Context, InvalidArgumentError, InvalidTypeError, PenstockError, annotate
from penstock.physical.kernels.run import gather
from penstock.physical.stacking import stack_each
from penstock.physical.stage import CursorStage, Stage
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
