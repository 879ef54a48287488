"""By number: batches, each of neighbours."""

from __future__ import annotations

from functools import partial

import numpy as np

from penstock.block.block import Block
from penstock.block.column import ListColumn
from penstock.errors import Context, PenstockError, annotate
from penstock.physical.access import Access, access, accessible
from penstock.physical.accesses.single import mapped
from penstock.physical.lower import Lowering
from penstock.physical.stages.batch import stack_block
from penstock.physical.stages.grouped import Stack
from penstock.physical.stages.padded import Padder
from penstock.physical.stages.ragged import ragged_block
from penstock.physical.stages.sparse import Sparser
from penstock.physical.stretch import Stretch, failure, join
from penstock.plan import batching, ops
from penstock.plan.node import INFINITE_CARDINALITY


class _Groups(Access):
    """Every `size` neighbours as one, as `stack` makes it; a group in which an element failed has failed."""

    def __init__(self, elements: Access, node: ops.Batch | batching.BatchNode, stack: Stack) -> None:
        self._elements = elements
        self._batch_size = node.batch_size
        self._drop_remainder = node.drop_remainder
        self._context = Context(stage=node.label, where=node.where)
        self._stack = stack

    @property
    def size(self) -> int:
        count = self._elements.size
        if count == INFINITE_CARDINALITY:
            return count
        return count // self._batch_size if self._drop_remainder else -(-count // self._batch_size)

    def rows(self, numbers: np.ndarray) -> Stretch:
        size = self._batch_size
        wanted = (numbers[:, None] * size + np.arange(size)).reshape(-1)
        count = self._elements.size
        whole = count == INFINITE_CARDINALITY or int(numbers.max()) < count // size
        found = self._elements.rows(wanted if whole else wanted[wanted < count])
        if whole and not found.failures and found.block is not None:
            together = self._together(found.block)
            if together is not None:
                return together
        groups, at = [], 0
        for number in numbers.tolist():
            stop = at + (size if count == INFINITE_CARDINALITY else min(size, count - number * size))
            groups.append(self._group(number, found.slice(at, stop)))
            at = stop
        return join(groups)

    def _together(self, block: Block) -> Stretch | None:
        """All groups at once; None where one of them fails, which then fails alone."""
        if any(isinstance(column, ListColumn) for column in block.columns):
            return None
        try:
            return Stretch(self._stack(block, self._batch_size))
        except PenstockError:
            return None

    def _group(self, number: int, part: Stretch) -> Stretch:
        try:
            if part.error is not None:
                raise part.error
            assert part.block is not None
            return Stretch(self._stack(part.block, part.block.size))
        except Exception as error:
            annotate(error, Context(self._context.stage, self._context.where, number))
            return failure(error)


@accessible(ops.Batch)
def _batch(node: ops.Batch, lowering: Lowering) -> Access:
    return _Groups(access(node.input, lowering), node, stack_block)


@accessible(ops.MapAndBatch)
def _map_and_batch(node: ops.MapAndBatch, lowering: Lowering) -> Access:
    return _Groups(mapped(access(node.input, lowering), node.steps, lowering), node.batch, stack_block)


@accessible(batching.PaddedBatch)
def _padded_batch(node: batching.PaddedBatch, lowering: Lowering) -> Access:
    return _Groups(access(node.input, lowering), node, Padder(node.paddings))


@accessible(batching.RaggedBatch)
def _ragged_batch(node: batching.RaggedBatch, lowering: Lowering) -> Access:
    stack = partial(ragged_block, dims=node.ragged_dims(), row_splits_dtype=node.row_splits_dtype)
    return _Groups(access(node.input, lowering), node, stack)


@accessible(batching.SparseBatch)
def _sparse_batch(node: batching.SparseBatch, lowering: Lowering) -> Access:
    return _Groups(access(node.input, lowering), node, Sparser(node.row_shape, node.check))
