"""Stages of steps with state, and of steps that store elements in files."""

from __future__ import annotations

from penstock.errors import Context, annotate
from penstock.keys import fold
from penstock.physical.builders.core import key_function, wanted_only
from penstock.physical.lower import Lowering, lower, register
from penstock.physical.stage import Stage
from penstock.physical.stages.apply import StatefulMapStage
from penstock.physical.stages.cached import SnapshotStage
from penstock.physical.stages.cardinality import AssertCardinalityStage
from penstock.physical.stages.cut import TakeWhileStage, UniqueStage
from penstock.physical.stages.ignore_errors import IgnoreErrorsStage
from penstock.physical.stages.scan import FollowedStage, ScanStage
from penstock.physical.storage import Storage
from penstock.plan import stateful, storing
from penstock.sources.arrays import RandomSource
from penstock.store.entry import StoredEntry

# the letters of "random": separates these random numbers from those of a shuffle with the same seed
_RANDOM = 0x72616E646F6D


@register(stateful.StatefulMap)
def _stateful_map(node: stateful.StatefulMap, lowering: Lowering) -> Stage:
    return StatefulMapStage(wanted_only(node, lowering), node)


@register(stateful.TakeWhile)
def _take_while(node: stateful.TakeWhile, lowering: Lowering) -> Stage:
    vectorise = bool(lowering.options.experimental_optimization.map_vectorization)
    return TakeWhileStage(wanted_only(node, lowering), node, vectorise=vectorise)


@register(stateful.Unique)
def _unique(node: stateful.Unique, lowering: Lowering) -> Stage:
    return UniqueStage(lower(node.input, lowering), node, memory=lowering.memory)


@register(stateful.AssertCardinality)
def _assert_cardinality(node: stateful.AssertCardinality, lowering: Lowering) -> Stage:
    return AssertCardinalityStage(lower(node.input, lowering), node)


@register(stateful.IgnoreErrors)
def _ignore_errors(node: stateful.IgnoreErrors, lowering: Lowering) -> Stage:
    return IgnoreErrorsStage(lower(node.input, lowering), node)


@register(stateful.Random)
def _random(node: stateful.Random, lowering: Lowering) -> Stage:
    key = fold(lowering.options.seed if node.seed is None else node.seed, _RANDOM)
    if node.rerandomize:
        key = fold(key, lowering.epoch)
    return ScanStage(RandomSource(key), node)


@register(storing.Snapshot)
@register(storing.DiskCache)
def _snapshot(node: storing.Snapshot, lowering: Lowering) -> Stage:
    shard_func = None if node.shard_func is None else key_function(node, "shard_func", lowering)
    try:
        return SnapshotStage(Storage(node, lowering), shard_func, memory=lowering.memory)
    except Exception as error:  # an error in the files of the folder
        annotate(error, Context(node.label, node.where))
        raise


@register(storing.Followed)
def _followed(node: storing.Followed, lowering: Lowering) -> Stage:
    return FollowedStage(StoredEntry(node.folder), lowering.pause, node)
