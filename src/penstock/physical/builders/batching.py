"""Stages of batches, windows, groups, and sequences packed into rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from penstock.block.block import Block
from penstock.block.leaf import NESTED
from penstock.block.spec import LeafSpec, TensorSpec
from penstock.block.structure import Structure, flatten
from penstock.errors import Context, InvalidArgumentError, InvalidTypeError, raise_as_failure
from penstock.keys import fold
from penstock.physical.builders.core import key_function, rows_of_batches
from penstock.physical.key_function import whole_number
from penstock.physical.lower import Lowering, lower, register
from penstock.physical.stage import Stage
from penstock.physical.stages.batch import stack_block
from penstock.physical.stages.cardinality import PadToCardinalityStage
from penstock.physical.stages.grouped import BucketStage, RebatchStage, Stack
from penstock.physical.stages.groups import GroupByReducerStage, GroupByWindowStage
from penstock.physical.stages.keyed_windows import KeyedWindow, KeyedWindows
from penstock.physical.stages.pack import PackStage
from penstock.physical.stages.padded import Padder
from penstock.physical.stages.token_batches import SortedTokenBatchesStage, TokenBatchesStage
from penstock.physical.stages.window import WindowStage
from penstock.plan import batching, grouping, packing
from penstock.plan.batching import PadToCardinality
from penstock.plan.inputs import Scan
from penstock.plan.node import Node
from penstock.plan.padding import Padding
from penstock.sources.arrays import BlockSource, read_only


@register(batching.Rebatch)
def _rebatch(node: batching.Rebatch, lowering: Lowering) -> Stage:
    upstream = lower(node.input, lowering)
    drop, most = node.drop_remainder, rows_of_batches(node.input)
    return RebatchStage(upstream, node.sizes, node, drop_remainder=drop, most=most, memory=lowering.memory)


@register(PadToCardinality)
def _pad_to_cardinality(node: PadToCardinality, lowering: Lowering) -> Stage:
    leaves, structure = flatten(node.element)
    specs = [leaf for leaf in leaves if isinstance(leaf, TensorSpec)]
    upstream = lower(node.input, lowering)
    return PadToCardinalityStage(upstream, node.count, node.mask_key, structure, specs, node)


@register(packing.Pack)
def _pack(node: packing.Pack, lowering: Lowering) -> Stage:
    return PackStage(lower(node.input, lowering), node, memory=lowering.memory)


@register(packing.BatchByTokens)
def _batch_by_tokens(node: packing.BatchByTokens, lowering: Lowering) -> Stage:
    vectorise = lowering.options.experimental_optimization.map_vectorization.enabled
    upstream = lower(node.input, lowering)
    if node.sort_window is None:
        return TokenBatchesStage(upstream, node, vectorise=vectorise, memory=lowering.memory)
    chosen = lowering.order_key(node) if node.shuffle_batches else None
    return SortedTokenBatchesStage(upstream, node, chosen, vectorise=vectorise, memory=lowering.memory)


_EXPECTED_SIZE = 32  # expected size of a window if a function decides it


@register(grouping.Window)
def _window(node: grouping.Window, lowering: Lowering) -> Stage:
    return WindowStage(lower(node.input, lowering), node, lowering.dataset, lowering.memory)


@register(grouping.GroupByWindow)
def _group_by_window(node: grouping.GroupByWindow, lowering: Lowering) -> Stage:
    upstream = lower(node.input, lowering)
    keys, size, memory = key_function(node, "key_func", lowering), node.window_size, lowering.memory
    expected, least = size or _EXPECTED_SIZE, size or 1
    windows = KeyedWindows(upstream, keys, _size_of(node), expected, node, least_size=least, memory=memory)
    return GroupByWindowStage(upstream, windows, _window_opener(node, lowering), node)


@register(grouping.BucketBySequenceLength)
def _bucket_by_sequence_length(node: grouping.BucketBySequenceLength, lowering: Lowering) -> Stage:
    sizes = node.bucket_batch_sizes
    lengths = key_function(node, "element_length_func", lowering)

    def bucket_of(block: Block, first: int) -> tuple[np.ndarray, dict[int, Exception]]:
        found, errors = lengths(block, first)
        return np.searchsorted(node.bucket_boundaries, found, side="right"), errors

    upstream = lower(node.input, lowering)
    expected = sum(sizes) // len(sizes)
    windows = KeyedWindows(
        upstream, bucket_of, sizes.__getitem__, expected, node, least_size=min(sizes), memory=lowering.memory
    )
    return BucketStage(upstream, windows, node, [_stack(node, bucket) for bucket in range(len(sizes))])


def _stack(node: grouping.BucketBySequenceLength, bucket: int) -> Stack:
    """Return the function that stacks the elements of one bucket."""
    if node.no_padding:
        return stack_block
    if not node.pad_to_bucket_boundary:
        return Padder(node.paddings)
    if bucket == len(node.bucket_boundaries):
        last = node.bucket_boundaries[-1] if bucket else 0

        def refuse(block: Block, size: int) -> Block:
            message = f"With pad_to_bucket_boundary all lengths must be below the last boundary, {last}."
            raise InvalidArgumentError(message, hint="Give a further boundary, or filter longer elements out.")

        return refuse
    most = node.bucket_boundaries[bucket] - 1

    def bounded(structure: Structure, specs: Sequence[LeafSpec]) -> list[Padding]:
        return [
            Padding(tuple(most if dim is None else dim for dim in shape), value)
            for shape, value in node.paddings(structure, specs)
        ]

    return Padder(bounded)


def _size_of(node: grouping.GroupByWindow) -> Callable[[int], int]:
    function, constant = node.window_size_func, node.window_size
    if function is None:
        assert constant is not None
        return lambda key: constant

    def size_of(key: int) -> int:
        size = whole_number(function(np.int64(key)), "window_size_func")
        if size < 1:
            message = f"window_size_func must return at least 1, got {size} for key {key}."
            raise InvalidArgumentError(message, hint="A window holds at least one element.")
        return size

    return size_of


def _window_opener(node: grouping.GroupByWindow, lowering: Lowering) -> Callable[[KeyedWindow], Stage]:
    def open_window(window: KeyedWindow) -> Stage:
        source = BlockSource(read_only(window.elements), node.name)
        elements = lowering.dataset(Scan(source=source, where=node.where))
        try:
            dataset = node.reduce_func(np.int64(window.key), elements)
        except Exception as raised:
            raise_as_failure(raised, Context())
        plan = getattr(dataset, NESTED, None)
        if not isinstance(plan, Node):
            message = f"reduce_func must return a Dataset, got {type(dataset).__name__}."
            raise InvalidTypeError(message, hint="Return the window, or a data set derived from it: window.batch(4).")
        epoch = fold(lowering.epoch, window.number) if window.number else lowering.epoch
        return lower(lowering.optimise(plan, lowering.options), replace(lowering, epoch=epoch))

    return open_window


@register(grouping.GroupByReducer)
def _group_by_reducer(node: grouping.GroupByReducer, lowering: Lowering) -> Stage:
    upstream = lower(node.input, lowering)
    return GroupByReducerStage(upstream, key_function(node, "key_func", lowering), node)
