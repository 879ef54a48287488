"""A cache of an endless data set: it grows for ever and never serves."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.plan.node import INFINITE_CARDINALITY
from penstock.plan.ops import Repeat
from penstock.plan.storing import Cache
from penstock.profiler.lint.advice import Advice
from penstock.profiler.lint.calls import calls
from penstock.profiler.lint.inspection import Inspection, below, between


def cache_endless(plan: Inspection) -> Iterator[Advice]:
    """Cache()·…·x, where x has no end."""
    for cache, _ in plan.asked(Cache):
        if cache.cardinality != INFINITE_CARDINALITY:
            continue
        repeat = next((node for node in below(cache) if isinstance(node, Repeat)), None)
        if repeat is None:
            mended = ".take(n).cache()"
            why = "A part that ends can be kept. To go on for ever, leave the cache out."
        else:
            mended = calls([*between(cache, repeat), cache, repeat])
            why = "The cache then holds one turn of the data and serves every later one."
        yield Advice.on(
            cache,
            "cache-endless",
            "memory",
            "cache() is complete at the end of a pass, and this data set has none: it keeps all and never serves it.",
            mended,
            why,
        )
