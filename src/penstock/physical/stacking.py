"""Stacking of the elements of a Block, component by component."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from penstock.block.block import Block
from penstock.block.column import BytesColumn, Column, DenseColumn, ListColumn, shape_mismatch
from penstock.errors import Context, PenstockError


def stack_each(block: Block, size: int, stack: Callable[[int, Column, str], Column]) -> Block:
    """Stack every `size` elements, each component with `stack(number, column, path)`.

    If one element has an error, with its row in `context.element`, the file and byte offset of the element are added.
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
    """Return the shapes of arrays, one row each."""
    if ndim == 1:
        return np.fromiter(map(len, items), np.int64, len(items)).reshape(-1, 1)
    return np.array([item.shape for item in items], np.int64).reshape(-1, ndim)


def flat_values(column: Column) -> tuple[np.ndarray, np.ndarray]:
    """Return all values in order, and the elements' shapes, one row each."""
    if isinstance(column, DenseColumn):
        shape = np.array(column.array.shape[1:], np.int64)
        return column.array.reshape(-1), np.tile(shape, (len(column), 1))
    items: list[np.ndarray] = column.values()
    return np.concatenate([item.reshape(-1) for item in items]), shapes_of(items, items[0].ndim)


def ranks_of(block: Block) -> list[int | None]:
    """Return the rank of the elements of each component, or None if it differs."""
    return [common_rank(column) for column in block.columns]


def common_rank(column: Column) -> int | None:
    """Return the rank of the elements, or None if it differs."""
    if not isinstance(column, ListColumn):
        return rank_of(column)
    found = {getattr(item, "ndim", 0) for item in column.items}
    return found.pop() if len(found) == 1 else None


def check_one_rank(items: Sequence[Any], path: str) -> None:
    """Raise InvalidArgumentError for values of different ranks, which cannot form a batch."""
    first = items[0]
    if not isinstance(first, (np.ndarray, np.generic, bytes)):
        return
    rank = getattr(first, "ndim", 0)
    for row, item in enumerate(items):
        if getattr(item, "ndim", 0) != rank:
            raise shape_mismatch(row, getattr(item, "shape", ()), getattr(first, "shape", ()), path)


def extents_of(column: Column) -> np.ndarray | None:
    """Return the first extents of the elements, or None if they are not arrays."""
    if not rank_of(column):
        return None
    if isinstance(column, ListColumn):
        return np.fromiter(map(len, column.items), np.int64, len(column))
    assert isinstance(column, (DenseColumn, BytesColumn))
    array = column.array if isinstance(column, DenseColumn) else column.starts
    return np.full(len(column), array.shape[1], np.int64)


def rank_of(column: Column) -> int:
    """Return the rank of the elements, which must be equal; 0 for objects that are not arrays."""
    if isinstance(column, DenseColumn):
        return column.array.ndim - 1
    if isinstance(column, BytesColumn):
        return column.starts.ndim - 1
    assert isinstance(column, ListColumn)
    check_one_rank(column.items, "")
    return column.items[0].ndim if isinstance(column.items[0], np.ndarray) else 0
