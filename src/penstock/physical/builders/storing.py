"""How the steps of plan/storing.py run, but for the memory cache."""

from __future__ import annotations

from dataclasses import replace

from penstock.block.leaf import NESTED
from penstock.physical.key_function import KeyFunction
from penstock.physical.lower import Lowering, lower, register
from penstock.physical.stage import Stage
from penstock.physical.stages.scan import Scan
from penstock.physical.stages.snapshot import Snapshot
from penstock.plan import storing
from penstock.plan.shards import read_by
from penstock.sources.saved import SavedSource


@register(storing.Snapshot)
def _snapshot(node: storing.Snapshot, lowering: Lowering) -> Stage:
    assert node.store is not None
    store, options = node.store, lowering.options
    folder = store.folder(options.seed, options.deterministic)

    def serve(source: SavedSource) -> Stage:
        if node.reader_func is None:
            return Scan(source, node.label, node.where)
        dataset = read_by(node.reader_func, source, lowering.dataset)
        return lower(lowering.optimise(getattr(dataset, NESTED), options), lowering)

    shard_func = None
    if node.shard_func is not None:
        vectorise = options.experimental_optimization.map_vectorization.enabled
        shard_func = KeyFunction(node.shard_func, "shard_func", node.label, node.where, vectorise=vectorise)
    return Snapshot(
        # what is kept is one pass for all epochs, so it is the same pass whichever epoch happens to write it
        lambda: lower(node.input, replace(lowering, epoch=0)),
        store.saved(folder),
        serve,
        lambda: store.writer(folder, node.input.spec),
        shard_func,
        node.label,
        node.where,
        faithful=node.faithful and options.deterministic,
        memory=lowering.memory,
    )
