"""Sparse batches: elements of differing shape as the rows of a sparse tensor."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from penstock.block.block import Block
from penstock.block.column import Column, DenseColumn, ListColumn
from penstock.block.spec import LeafSpec, Shape
from penstock.block.structure import Structure
from penstock.block.tensors import SparseTensor
from penstock.errors import Context, DataLossError
from penstock.physical.stacking import flat_values, rank_of, stack_each
from penstock.plan.batching import wrong_rank


class Sparser:
    """`sparse_block` for Blocks of one stream, whose kind `check` looks at in the first Block."""

    def __init__(self, row_shape: Shape, check: Callable[[Structure, list[LeafSpec]], None]) -> None:
        self._row_shape = row_shape
        self._check = check
        self._checked = False

    def __call__(self, block: Block, size: int) -> Block:
        if not self._checked:
            self._check(block.structure, [column.slice(0, 1).spec() for column in block.columns])
            self._checked = True
        return sparse_block(block, size, self._row_shape)


def sparse_block(block: Block, size: int, row_shape: Shape) -> Block:
    """Every `size` arrays as one sparse tensor, in which all their values are given, zeros as well.

    `row_shape` is the shape of a row; None stands for the longest. Raises DataLossError for a larger element.
    """

    def stack(_: int, column: Column, path: str) -> Column:
        parts = [column.slice(at, at + size) for at in range(0, len(column), size)]
        return ListColumn([_sparse(part, row_shape) for part in parts])

    return stack_each(block, size, stack)


def _sparse(column: Column, row_shape: Shape) -> SparseTensor:
    rank = rank_of(column)
    if rank:
        values, shapes = flat_values(column)
    else:
        values, shapes = _scalars(column), np.empty((len(column), 0), np.int64)
    if len(row_shape) != shapes.shape[1]:  # another rank than that of the first batch
        raise wrong_rank(row_shape, shapes.shape[1])
    longest = shapes.max(axis=0).tolist()
    shape = [most if dim is None else dim for most, dim in zip(longest, row_shape, strict=True)]
    if any(most > dim for most, dim in zip(longest, shape, strict=True)):
        row = int(np.flatnonzero((shapes > np.array(shape)).any(axis=1))[0])
        message = f"Element {row} of the batch has shape {tuple(shapes[row].tolist())}, larger than row_shape "
        message += f"{row_shape}."
        hint = "Give a larger size, or None for as long as the longest."
        raise DataLossError(message, hint=hint, context=Context(element=row))
    return SparseTensor(_positions(shapes), values, np.array([len(shapes), *shape], np.int64))


def _scalars(column: Column) -> np.ndarray:
    if isinstance(column, DenseColumn):
        return column.array
    found = np.empty(len(column), object)
    found[:] = column.values()
    return found


def _positions(shapes: np.ndarray) -> np.ndarray:
    """(row, position in the row) of every value of arrays of the given shapes, in C order."""
    sizes = np.prod(shapes, axis=1, dtype=np.int64)
    found = np.empty((int(sizes.sum()), 1 + shapes.shape[1]), np.int64)
    found[:, 0] = np.repeat(np.arange(len(sizes)), sizes)
    rank = shapes.shape[1]
    if not rank:
        return found
    left = np.arange(len(found)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    for axis in range(rank - 1, 0, -1):
        left, found[:, 1 + axis] = np.divmod(left, np.repeat(shapes[:, axis], sizes))
    found[:, 1] = left
    return found
