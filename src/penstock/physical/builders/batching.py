"""How padded, ragged and sparse batches, rebatch and padding to a number of elements run."""

from __future__ import annotations

from functools import partial

from penstock.block.spec import TensorSpec
from penstock.block.structure import flatten
from penstock.physical.builders.core import rows_of_batches
from penstock.physical.lower import Lowering, lower, register
from penstock.physical.stage import Stage
from penstock.physical.stages.grouped import Grouped, Stack
from penstock.physical.stages.pad_to_cardinality import PadToCardinality
from penstock.physical.stages.padded import Padder
from penstock.physical.stages.ragged import ragged_block
from penstock.physical.stages.rebatch import Rebatch
from penstock.physical.stages.sparse import Sparser
from penstock.plan import batching
from penstock.plan.pad_to_cardinality import PadToCardinality as PadToCardinalityNode


def _grouped(node: batching.BatchNode, lowering: Lowering, stack: Stack) -> Stage:
    upstream = lower(node.input, lowering)
    return Grouped(
        upstream,
        node.batch_size,
        stack,
        node.label,
        node.where,
        drop_remainder=node.drop_remainder,
        memory=lowering.memory,
    )


@register(batching.PaddedBatch)
def _padded_batch(node: batching.PaddedBatch, lowering: Lowering) -> Stage:
    return _grouped(node, lowering, Padder(node.paddings))


@register(batching.RaggedBatch)
def _ragged_batch(node: batching.RaggedBatch, lowering: Lowering) -> Stage:
    stack = partial(ragged_block, dims=node.ragged_dims(), row_splits_dtype=node.row_splits_dtype)
    return _grouped(node, lowering, stack)


@register(batching.SparseBatch)
def _sparse_batch(node: batching.SparseBatch, lowering: Lowering) -> Stage:
    return _grouped(node, lowering, Sparser(node.row_shape, node.check))


@register(batching.Rebatch)
def _rebatch(node: batching.Rebatch, lowering: Lowering) -> Stage:
    upstream = lower(node.input, lowering)
    return Rebatch(
        upstream,
        node.sizes,
        node.label,
        node.where,
        drop_remainder=node.drop_remainder,
        most=rows_of_batches(node.input),
        memory=lowering.memory,
    )


@register(PadToCardinalityNode)
def _pad_to_cardinality(node: PadToCardinalityNode, lowering: Lowering) -> Stage:
    leaves, structure = flatten(node.element)
    specs = [leaf for leaf in leaves if isinstance(leaf, TensorSpec)]
    upstream = lower(node.input, lowering)
    return PadToCardinality(upstream, node.count, node.mask_key, structure, specs, node.label, node.where)
