"""A take behind a cache: passes stop early, and the cache never becomes complete."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.plan.node import UNKNOWN_CARDINALITY
from penstock.plan.ops import Batch, Enumerate, Map, Prefetch, Shuffle, Take
from penstock.plan.storing import Cache
from penstock.profiler.lint.advice import Advice
from penstock.profiler.lint.calls import calls
from penstock.profiler.lint.inspection import Inspection, below, between

_ALIKE = (Map, Enumerate, Prefetch)


def cache_cut(plan: Inspection) -> Iterator[Advice]:
    """Take(n)·…·Cache(), where n elements are fewer than the cache has to see."""
    for take, _ in plan.asked(Take):
        read = take.count
        for node in below(take):
            if isinstance(node, Cache):
                if read > 0 and _may_stop(node, read):
                    yield _advice(take, node)
                break
            if isinstance(node, Batch):
                read *= node.batch_size
            elif isinstance(node, Shuffle):
                read += node.buffer_size
            elif not isinstance(node, _ALIKE):
                break


def _may_stop(cache: Cache, read: int) -> bool:
    return cache.cardinality == UNKNOWN_CARDINALITY or 0 <= read < cache.cardinality


def _advice(take: Take, cache: Cache) -> Advice:
    steps = between(take, cache)
    if any(isinstance(node, Shuffle) for node in steps):
        mended = calls([*steps, take])
        why = "Without cache() nothing is lost, since it keeps nothing as it stands"
    else:
        mended = calls([*steps, take, cache])
        why = "The cache then holds what is taken. As it stands it keeps nothing"
    return Advice.on(
        take,
        "cache-cut",
        "speed",
        f"{take.label} ends passes before cache() has seen all elements, and a cache is kept only when it has.",
        mended,
        f"{why}, unless another data set made of the same cache() runs to the end.",
    )
