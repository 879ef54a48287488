"""A cache behind the only shuffle: every epoch has the order of the first."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.plan.indexing import GlobalShuffle
from penstock.plan.ops import Shuffle
from penstock.plan.storing import Cache
from penstock.profiler.lint.advice import Advice
from penstock.profiler.lint.calls import calls
from penstock.profiler.lint.inspection import Inspection, below, between
from penstock.profiler.lint.names import are_names

_SHUFFLES = (Shuffle, GlobalShuffle)


def cache_shuffled(plan: Inspection) -> Iterator[Advice]:
    """Cache()·…·Shuffle, without a shuffle behind the cache."""
    for cache, above in plan.asked(Cache):
        if any(isinstance(node, _SHUFFLES) for node in above):
            continue
        for node in below(cache):
            if isinstance(node, Cache):
                break
            if isinstance(node, _SHUFFLES) and node.reshuffle_each_iteration and not are_names(node):
                yield Advice.on(
                    node,
                    "cache-shuffled",
                    "data",
                    f"cache() keeps the order that {node.label} made first: every epoch is in that order.",
                    calls([*between(cache, node), cache, node]),
                    "Behind the cache the shuffle makes another order in every epoch. To keep one order on purpose, "
                    "give it reshuffle_each_iteration=False.",
                )
                break
