"""A cache behind repeat(n): it keeps every element n times."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.plan.ops import Batch, Enumerate, Filter, Map, Prefetch, Repeat, Shuffle
from penstock.plan.storing import Cache
from penstock.profiler.lint.advice import Advice
from penstock.profiler.lint.calls import calls
from penstock.profiler.lint.inspection import Inspection, below, between

_ALIKE = (Map, Filter, Batch, Enumerate, Prefetch, Shuffle)


def cache_repeated(plan: Inspection) -> Iterator[Advice]:
    """Cache()·…·Repeat(n) with n of at least 2."""
    for cache, _ in plan.asked(Cache):
        for node in below(cache):
            if isinstance(node, Repeat) and node.count > 1:
                yield Advice.on(
                    cache,
                    "cache-repeated",
                    "memory",
                    f"cache() keeps what {node.label} gives: every element {node.count} times.",
                    calls([*between(cache, node), cache, node]),
                    f"It then holds a {_part(node.count)} of that, and the later turns are served from it.",
                )
            if not isinstance(node, _ALIKE):
                break


def _part(count: int) -> str:
    return {2: "half", 3: "third", 4: "quarter"}.get(count, f"{count}th")
