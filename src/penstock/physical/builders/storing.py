"""How the steps of plan/storing.py run, but for the memory cache."""

from __future__ import annotations

from dataclasses import replace

from penstock.block.leaf import NESTED
from penstock.cache.entry.entry import Entry
from penstock.io.saved.manifest import library
from penstock.physical.key_function import KeyFunction
from penstock.physical.lower import Lowering, lower, register
from penstock.physical.stage import Stage
from penstock.physical.stages.followed import Followed
from penstock.physical.stages.scan import Scan
from penstock.physical.stages.snapshot import Snapshot
from penstock.physical.storage import Storage
from penstock.plan import storing
from penstock.plan.fingerprint import fingerprint
from penstock.plan.node import Node
from penstock.plan.shards import read_by
from penstock.sources.saved import SavedSource


@register(storing.Snapshot)
@register(storing.DiskCache)
def _snapshot(node: storing.Snapshot, lowering: Lowering) -> Stage:
    assert node.store is not None
    options = lowering.options

    def by_reader(source: SavedSource) -> Stage:
        if node.reader_func is None:
            return Scan(source, node.label, node.where)
        dataset = read_by(node.reader_func, source, lowering.dataset)
        return lower(lowering.optimise(getattr(dataset, NESTED), options), lowering)

    shard_func = None
    if node.shard_func is not None:
        vectorise = options.experimental_optimization.map_vectorization.enabled
        shard_func = KeyFunction(node.shard_func, "shard_func", node.label, node.where, vectorise=vectorise)
    storage = Storage(
        node,
        node.store,
        Entry(node.store.folder(options.seed, options.deterministic)),
        f"{library()} {fingerprint(node.input, options.seed, options.deterministic)}",
        # what is kept is one pass for all epochs, so it is the same pass whichever epoch happens to write it
        upstream=lambda: lower(node.input, replace(lowering, epoch=0)),
        by_reader=by_reader,
        pause=lowering.pause,
        sharded=node.shard_func is not None,
        reordered=not node.faithful,
        settled=_settled(node.input, lowering),
        repairs=node.repairs,
        waits=options.second_writer == "wait",
    )
    return Snapshot(storage, shard_func, node.label, node.where, memory=lowering.memory)


def _settled(plan: Node, lowering: Lowering) -> bool:
    """Whether each pass gives the same elements in the same order."""
    return all(lowering.ordered(getattr(node, "deterministic", None)) for node in plan.walk())


@register(storing.Followed)
def _followed(node: storing.Followed, lowering: Lowering) -> Stage:
    return Followed(Entry(node.folder), lowering.pause, node.label, node.where)
