"""Ragged batches: elements of differing shape as the rows of a ragged tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.block.block import Block
from penstock.block.column import Column, ListColumn, shape_mismatch
from penstock.block.tensors import RaggedTensor
from penstock.physical.stacking import flat_values, rank_of, stack_each
from penstock.physical.stages.batch import stack_column


def ragged_block(block: Block, size: int, dims: dict[str, int] | None, row_splits_dtype: Any) -> Block:
    """Every `size` elements as one, in which the first `dims[path]` dimensions of a component's rows are ragged.

    Without `dims` all dimensions are. Components without ragged dimensions are stacked as `batch` does.
    """

    def stack(_: int, column: Column, path: str) -> Column:
        rank = rank_of(column)
        depth = rank if dims is None else dims[path]
        parts = [column.slice(at, at + size) for at in range(0, len(column), size)] if depth else []
        if parts:
            return ListColumn([_ragged(part, depth, row_splits_dtype, path) for part in parts])
        batched = column.batched(size)
        return stack_column(column, path) if batched is None else batched

    return stack_each(block, size, stack)


def _ragged(column: Column, depth: int, row_splits_dtype: Any, path: str) -> RaggedTensor:
    flat, shapes = flat_values(column)
    trailing = shapes[:, depth:]
    if (trailing != trailing[0]).any():
        row = int(np.flatnonzero((trailing != trailing[0]).any(axis=1))[0])
        raise shape_mismatch(row, tuple(shapes[row].tolist()), tuple(shapes[0].tolist()), path)
    values: Any = flat.reshape(int(np.prod(shapes[:, :depth], axis=1).sum()), *trailing[0].tolist())
    for axis in reversed(range(depth)):
        lengths = np.repeat(shapes[:, axis], np.prod(shapes[:, :axis], axis=1, dtype=np.int64))
        values = RaggedTensor.from_row_lengths(values, lengths.astype(row_splits_dtype, copy=False))
    return values  # type: ignore[no-any-return]
