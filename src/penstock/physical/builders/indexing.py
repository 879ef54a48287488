"""How global shuffles and provenance run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from penstock.cache.memory import MemoryStore
from penstock.physical.fetch import Fetch
from penstock.physical.lower import Lowering, lower, register
from penstock.physical.stage import Stage
from penstock.physical.stages.apply import Apply
from penstock.physical.stages.numbers import Numbers
from penstock.physical.stages.provenance import Provenanced
from penstock.plan.indexing import GlobalShuffle, WithProvenance
from penstock.plan.node import Node
from penstock.plan.storing import Cache


@register(GlobalShuffle)
def _global_shuffle(node: GlobalShuffle, lowering: Lowering) -> Stage:
    fetch = Fetch(node, lowering)
    fill: list[Callable[[], Stage]] = [
        partial(lower, cache, lowering.deeper())
        for cache in _caches(node.input)
        if isinstance(cache.store, MemoryStore) and cache.store.blocks() is None
    ]
    numbers = Numbers(lambda: fetch.size, fill, node.label, node.where)
    parallel = node.num_parallel_calls
    if parallel is None:
        return Apply(numbers, [fetch])
    return lowering.executor.segment(
        numbers, [fetch], parallelism=parallel, ordered=lowering.ordered(None), depth=lowering.depth
    )


def _caches(node: Node) -> Iterator[Cache]:
    """The caches nearest to the consumer."""
    if isinstance(node, Cache):
        yield node
        return
    for below in node.inputs:
        yield from _caches(below)


@register(WithProvenance)
def _with_provenance(node: WithProvenance, lowering: Lowering) -> Stage:
    return Provenanced(lower(node.input, replace(lowering, provenance=True)), node.label, node.where)
