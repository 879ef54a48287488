"""Elements of a Block stacked into one, component by component."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from penstock.block.block import Block
from penstock.block.column import BytesColumn, Column, DenseColumn, ListColumn
from penstock.errors import Context, PenstockError


def stack_each(block: Block, size: int, stack: Callable[[int, Column, str], Column]) -> Block:
    """Every `size` elements as one, each component by `stack(number, column, path)`.

    An error of one element, its row in `context.element`, names the file and the byte where the element was read.
    """
    count = block.size // size
    origin = None if block.origin is None else block.origin.batched(size)
    paths = block.structure.paths()
    try:
        columns: Sequence[Column] = [
            stack(i, column, path) for i, (column, path) in enumerate(zip(block.columns, paths, strict=True))
        ]
    except PenstockError as error:
        row, error.context = error.context.element, Context()
        if row is not None and block.origin is not None:
            error.context = Context(None, None, None, *block.origin.at(row))
        raise
    return Block(block.structure, columns, count, origin)


def shapes_of(items: Sequence[np.ndarray], ndim: int) -> np.ndarray:
    """The shapes of arrays, one row each."""
    if ndim == 1:
        return np.fromiter(map(len, items), np.int64, len(items)).reshape(-1, 1)
    return np.array([item.shape for item in items], np.int64).reshape(-1, ndim)


def flat_values(column: Column) -> tuple[np.ndarray, np.ndarray]:
    """All values in their order, and the elements' shapes, one row each."""
    if isinstance(column, DenseColumn):
        shape = np.array(column.array.shape[1:], np.int64)
        return column.array.reshape(-1), np.tile(shape, (len(column), 1))
    items: list[np.ndarray] = column.values()
    return np.concatenate([item.reshape(-1) for item in items]), shapes_of(items, items[0].ndim)


def rank_of(column: Column) -> int:
    """Dimensions of the elements; 0 for what is no array and stays as it is."""
    if isinstance(column, DenseColumn):
        return column.array.ndim - 1
    if isinstance(column, BytesColumn):
        return column.starts.ndim - 1
    assert isinstance(column, ListColumn)
    return column.items[0].ndim if isinstance(column.items[0], np.ndarray) else 0
