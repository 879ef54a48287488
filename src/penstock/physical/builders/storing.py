"""How the steps of plan/storing.py run, but for the memory cache."""

from __future__ import annotations

from penstock.cache.entry.entry import Entry
from penstock.errors import Context, annotate
from penstock.physical.key_function import KeyFunction
from penstock.physical.lower import Lowering, register
from penstock.physical.stage import Stage
from penstock.physical.stages.followed import Followed
from penstock.physical.stages.snapshot import Snapshot
from penstock.physical.storage import storage_of
from penstock.plan import storing


@register(storing.Snapshot)
@register(storing.DiskCache)
def _snapshot(node: storing.Snapshot, lowering: Lowering) -> Stage:
    shard_func = None
    if node.shard_func is not None:
        vectorise = lowering.options.experimental_optimization.map_vectorization.enabled
        shard_func = KeyFunction(node.shard_func, "shard_func", node.label, node.where, vectorise=vectorise)
    try:
        return Snapshot(storage_of(node, lowering), shard_func, node.label, node.where, memory=lowering.memory)
    except Exception as error:  # of what lies in its folder
        annotate(error, Context(node.label, node.where))
        raise


@register(storing.Followed)
def _followed(node: storing.Followed, lowering: Lowering) -> Stage:
    return Followed(Entry(node.folder), lowering.pause, node.label, node.where)
