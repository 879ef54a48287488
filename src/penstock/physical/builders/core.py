"""Stages of sources, most steps with one input, joined streams, the memory cache, and nodes that rewrites create."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from penstock.physical.access import FetchTransform
from penstock.physical.chained import Portioned, Stint
from penstock.physical.executor import BatchTask, SegmentSettings
from penstock.physical.inner_plans import Opening
from penstock.physical.key_function import KeyFunction
from penstock.physical.lower import Lowering, Service, lower, register, transforms_of
from penstock.physical.stage import Stage
from penstock.physical.stages import shuffle as stages
from penstock.physical.stages.apply import ApplyStage
from penstock.physical.stages.batch import UnbatchStage
from penstock.physical.stages.cached import CachedStage
from penstock.physical.stages.combine import AgreedStage, EnumerateStage, Rounds, SequenceStage, ZipStage
from penstock.physical.stages.cut import ShardStage, SkipStage, TakeStage
from penstock.physical.stages.grouped import GroupedStage
from penstock.physical.stages.interleave import InterleaveStage
from penstock.physical.stages.located import LocatedStage, NumbersStage, ProvenanceStage
from penstock.physical.stages.mix import Chooser, MixStage
from penstock.physical.stages.padded import stack_of
from penstock.physical.stages.scan import ScanStage
from penstock.physical.stages.shuffle import ShuffleStage
from penstock.physical.stages.windowed import WindowedStage
from penstock.physical.storage import settled
from penstock.plan import batching, counted, fused, inputs, ops
from penstock.plan.distribution import Distribute, InTurn, Remote, parted, taken_in_turn
from penstock.plan.indexing import GlobalShuffle, Split, WithProvenance
from penstock.plan.node import Node, UnaryNode
from penstock.plan.storing import Cache
from penstock.plan.visible import acts, is_called_ahead
from penstock.plan.windows import WindowedFlatMap
from penstock.store.memory import MemoryStore


@register(inputs.Scan)
def _scan(node: inputs.Scan, lowering: Lowering) -> Stage:
    stage = ScanStage(node.source, node)
    return LocatedStage(stage, node.source) if lowering.provenance else stage


def _apply(node: UnaryNode, steps: tuple[Any, ...], lowering: Lowering, batch: ops.Batch | None = None) -> Stage:
    transforms = lowering.transforms(node, steps)
    parallel = getattr(steps[0], "num_parallel_calls", None)
    executor = getattr(node, "executor", "auto")
    seeds = any(transform.generators for transform in transforms)
    apart = parallel is not None or lowering.depth > 0 or lowering.options.element_timeout is not None
    if executor == "auto" and apart and seeds:
        executor = "process"
    if parallel is None:
        run = (lowering.executor_of(node) if seeds else lowering.executor).run_all(transforms, executor)
        stint = Stint() if is_called_ahead(node) else None
        return ApplyStage(wanted_only(node, lowering, ahead=stint is not None), transforms, run, lowering.epoch, stint)
    upstream = wanted_only(node, lowering.deeper())
    ordered = lowering.ordered(steps[0].deterministic)
    settings = SegmentSettings(parallel, ordered, lowering.depth, _task_of(batch), executor, lowering.epoch)
    return lowering.executor_of(node).segment(upstream, transforms, settings)


def wanted_only(node: UnaryNode, lowering: Lowering, *, ahead: bool = False) -> Stage:
    """Return the input of a step, in Blocks of the requested size at most, if its function has side effects.

    The same applies to functions that are called `ahead` of the consumer, because they may be slow.
    """
    upstream = lower(node.input, lowering)
    return Portioned(upstream) if ahead or acts(node) else upstream


@register(ops.Map)
@register(ops.Filter)
def _single(node: Any, lowering: Lowering) -> Stage:
    return _apply(node, (node,), lowering)


@register(fused.FusedMap)
def _fused(node: fused.FusedMap, lowering: Lowering) -> Stage:
    return _apply(node, node.steps, lowering)


@register(fused.MapAndBatch)
def _map_and_batch(node: fused.MapAndBatch, lowering: Lowering) -> Stage:
    return _apply(node, node.steps, lowering, node.batch)


def _task_of(node: ops.Batch | None) -> BatchTask | None:
    return None if node is None else BatchTask(node.batch_size, node.drop_remainder, node.label, node.where)


@register(ops.Batch)
def _batch(node: ops.Batch, lowering: Lowering) -> Stage:
    parallel = node.num_parallel_calls
    if parallel is None:
        return _grouped(node, lowering)
    upstream = lower(node.input, lowering.deeper())
    ordered = lowering.ordered(node.deterministic)
    settings = SegmentSettings(parallel, ordered, lowering.depth, _task_of(node))
    return lowering.executor_of(node).segment(upstream, (), settings)


@register(batching.PaddedBatch)
@register(batching.RaggedBatch)
@register(batching.BatchOfSlices)
@register(batching.SparseBatch)
def _grouped(node: ops.BatchNode, lowering: Lowering) -> Stage:
    """Return the stage of a step that joins neighbours in the consumer's thread."""
    upstream, size, stack = lower(node.input, lowering), node.batch_size, stack_of(node)
    return GroupedStage(upstream, size, stack, node, drop_remainder=node.drop_remainder, memory=lowering.memory)


@register(counted.Unbatch)
def _unbatch(node: counted.Unbatch, lowering: Lowering) -> Stage:
    return UnbatchStage(lower(node.input, lowering), node, rows_of_batches(node.input))


def rows_of_batches(node: Node) -> int | None:
    """Return the largest number of rows per element of a step that creates batches, or None."""
    found: int | None = getattr(node.batch if isinstance(node, fused.MapAndBatch) else node, "batch_size", None)
    return found


@register(ops.Shuffle)
def _shuffle(node: ops.Shuffle, lowering: Lowering) -> Stage:
    upstream, key, count = lower(node.input, lowering), lowering.order_key(node), node.input.cardinality
    return ShuffleStage(upstream, node.buffer_size, key, node, memory=lowering.memory, cardinality=count)


@register(ops.Repeat)
def _repeat(node: ops.Repeat, lowering: Lowering) -> Stage:
    def build(index: int) -> Stage:
        return lower(node.input, lowering.turn(node.count, index))

    may_grow = _may_grow(node.input, lowering)
    return SequenceStage(build, node.count, node, alike=True, may_grow=may_grow)


def _may_grow(plan: Node, lowering: Lowering) -> bool:
    """Return `Stage.may_grow` for a stage that is built later."""
    return plan.may_be_unordered or not lowering.options.deterministic


@register(inputs.Concatenate)
def _concatenate(node: inputs.Concatenate, lowering: Lowering) -> Stage:
    streams = _streams(node, lowering)
    return streams if node.spec is not None else AgreedStage(streams, node, any_rank=node.any_rank)


def _streams(node: inputs.Concatenate, lowering: Lowering) -> SequenceStage:
    """Return the concatenated streams.

    Nested concatenations share their first element, so one check of its kind is enough.
    """

    def built(index: int) -> Stage:
        part = node.parts[index]
        if index == 0 and type(part) is inputs.Concatenate and part.any_rank == node.any_rank:
            return lower(part, lowering, _streams)
        return lower(part, lowering)

    may_grow = any(_may_grow(part, lowering) for part in node.parts)
    return SequenceStage(built, len(node.parts), node, may_grow=may_grow)


@register(inputs.Zip)
def _zip(node: inputs.Zip, lowering: Lowering) -> Stage:
    return ZipStage(tuple(lower(part, lowering) for part in node.parts), node.structure, node)


@register(ops.Take)
def _take(node: ops.Take, lowering: Lowering) -> Stage:
    upstream = lower(node.input, lowering)
    return upstream if node.count < 0 else TakeStage(upstream, node.count, node)


@register(ops.Skip)
def _skip(node: ops.Skip, lowering: Lowering) -> Stage:
    return SkipStage(lower(node.input, lowering), node.count, node)


@register(ops.Shard)
def _shard(node: ops.Shard, lowering: Lowering) -> Stage:
    return ShardStage(lower(node.input, lowering), node.num_shards, node.index, node)


@register(ops.Enumerate)
def _enumerate(node: ops.Enumerate, lowering: Lowering) -> Stage:
    return EnumerateStage(lower(node.input, lowering), node.start, node)


@register(ops.Prefetch)
def _prefetch(node: ops.Prefetch, lowering: Lowering) -> Stage:
    if node.buffer_size == 0:
        return lower(node.input, lowering)
    return lowering.executor_of(node).ahead(
        lower(node.input, lowering.deeper()),
        max_elements=node.buffer_size,
        label=node.label,
        where=node.where,
        depth=lowering.depth,
    )


@register(Cache)
def _cache(node: Cache, lowering: Lowering) -> Stage:
    # one stored iteration serves all epochs, so it always has the random numbers of epoch 0
    upstream, known = lower(node.input, replace(lowering, epoch=0)), settled(node.input, lowering)
    return CachedStage(upstream, node.store, node, memory=lowering.memory, cardinality=node.cardinality, settled=known)


@register(WindowedFlatMap)
def _windowed_flat_map(node: WindowedFlatMap, lowering: Lowering) -> Stage:
    written = node.as_written
    transforms = transforms_of(node.maps[0], node.maps, lowering.options, alike=True) if node.maps else []
    return WindowedStage(lower(node.input, lowering), node, transforms, lambda: _interleave(written, lowering))


@register(ops.FlatMap)
@register(ops.Interleave)
def _interleave(node: ops.FlatMap | ops.Interleave, lowering: Lowering) -> Stage:
    outer, inner, reader = lowering, lowering, None
    if isinstance(node, ops.Interleave):
        outer = lowering.deeper()
        if node.num_parallel_calls is not None:
            inner = outer
            reader = lowering.executor_of(node).reader(
                at_once=node.num_parallel_calls,
                cycle_length=node.cycle_length,
                label=f"{node.label} input",
                where=node.where,
                depth=lowering.depth,
            )
    opening = Opening(node, inner)
    return InterleaveStage(node, lambda: lower(node.input, outer), opening, reader, memory=lowering.memory)


@register(fused.ShuffleAndRepeat)
def _shuffle_and_repeat(node: fused.ShuffleAndRepeat, lowering: Lowering) -> Stage:
    shuffle = replace(node.shuffle, input=fused.Held(input=node.input))

    def build(index: int) -> Stage:
        return lower(shuffle, lowering.turn(node.repeat.count, index))

    count, may_grow = node.repeat.count, _may_grow(node.input, lowering)
    return stages.ShuffleAndRepeatStage(build, count, shuffle.buffer_size, node, may_grow=may_grow)


@register(fused.Held)
def _held(node: fused.Held, lowering: Lowering) -> Stage:
    return stages.HeldStage(lower(node.input, lowering), memory=lowering.memory)


@register(Distribute)
def _distribute(node: Distribute, lowering: Lowering) -> Stage:
    def optimise(plan: Node) -> Node:
        return lowering.optimise(plan, lowering.options)

    if node.parts is not None:
        return lower(taken_in_turn(node, optimise), lowering)
    plan, _ = parted(node)
    return lower(optimise(plan), lowering)


@register(InTurn)
def _in_turn(node: InTurn, lowering: Lowering) -> Stage:
    count = len(node.parts)
    stages = [lower(part, lowering.turn(count, index)) for index, part in enumerate(node.parts)]
    return mixed(node, lowering, stages, Rounds(count), "continue")


def mixed(node: Node, lowering: Lowering, stages: Sequence[Stage], chooser: Chooser, on_empty: str) -> Stage:
    """Return the stage of a step that takes each element from the stream that `chooser` selects."""
    known, any_rank = node.spec is not None, node.any_rank
    return MixStage(tuple(stages), chooser, on_empty, node, same_kind=known, any_rank=any_rank, memory=lowering.memory)


def key_function(node: Node, name: str, lowering: Lowering) -> KeyFunction:
    """Return the user's function that is parameter `name` of a step."""
    vectorise = lowering.options.experimental_optimization.map_vectorization.enabled
    return KeyFunction(getattr(node, name), name, node, vectorise=vectorise)


@register(Remote)
def _remote(node: Remote, lowering: Lowering) -> Stage:
    service: Service = node.service
    return service.stage(node, lowering)


_GATHERING = 0.1  # seconds to collect elements that are read by index: many elements cost little more than a few


@register(Split)
@register(GlobalShuffle)
def _global_shuffle(node: GlobalShuffle, lowering: Lowering) -> Stage:
    fetch = FetchTransform(node, lowering)
    fill: list[Callable[[], Stage]] = [
        partial(lower, cache, lowering.deeper())
        for cache in _caches(node.input)
        if isinstance(cache.store, MemoryStore) and cache.store.blocks() is None
    ]
    numbers = NumbersStage(lambda: fetch.size, fill, node)
    parallel = node.num_parallel_calls
    if parallel is None:
        return Portioned(ApplyStage(numbers, [fetch]), _GATHERING)
    settings = SegmentSettings(parallel, lowering.ordered(None), lowering.depth)
    return lowering.executor_of(node).segment(numbers, [fetch], settings)


def _caches(node: Node) -> Iterator[Cache]:
    """Yield the caches nearest to the consumer."""
    if isinstance(node, Cache):
        yield node
        return
    for below in node.inputs:
        yield from _caches(below)


@register(WithProvenance)
def _with_provenance(node: WithProvenance, lowering: Lowering) -> Stage:
    return ProvenanceStage(lower(node.input, replace(lowering, provenance=True)), node)
