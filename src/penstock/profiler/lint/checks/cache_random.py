"""A cache behind a random map or filter: every epoch gets the draws of the first."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.plan.node import Node
from penstock.plan.ops import Filter, Map
from penstock.plan.storing import Cache
from penstock.profiler.lint.advice import Advice
from penstock.profiler.lint.calls import calls
from penstock.profiler.lint.inspection import Inspection, below, between
from penstock.profiler.lint.natures import randomness


def cache_random(plan: Inspection) -> Iterator[Advice]:
    """Cache()·…·Map(f), or Filter(f), where f draws random numbers."""
    for cache, _ in plan.asked(Cache):
        for node in below(cache):
            if isinstance(node, Cache):
                break
            drawn = _drawn(node)
            if drawn is not None:
                yield Advice.on(
                    node,
                    "cache-random",
                    "data",
                    f"{node.label} draws from {drawn}, and cache() keeps what it drew first for all epochs.",
                    calls([cache, node, *between(cache, node)]),
                    "The cache then holds what does not change, and the function draws anew in every epoch.",
                )


def _drawn(node: Node) -> str | None:
    if isinstance(node, Map):
        return randomness(node.function)
    return randomness(node.predicate) if isinstance(node, Filter) else None
