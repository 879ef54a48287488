"""Checks of caches and snapshots: what never becomes complete, keeps too much, or keeps what was to differ."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.block.structure import flatten
from penstock.hints import size_text
from penstock.plan.node import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from penstock.plan.ops import Batch, Enumerate, Filter, Map, Prefetch, Repeat, Shuffle, Take
from penstock.plan.storing import Cache
from penstock.profiler.lint.advice import Advice
from penstock.profiler.lint.calls import calls
from penstock.profiler.lint.inspection import Inspection, below, between, element_bytes, has_bytes
from penstock.profiler.lint.kept import kept
from penstock.trace.traced import traced

_KEEP_NUMBER = (Map, Enumerate, Prefetch)


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
            elif not isinstance(node, _KEEP_NUMBER):
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
        f"{take.label} ends iterations before cache() has seen all elements, and only a complete cache is kept.",
        mended,
        f"{why}, unless another data set made of the same cache() runs to the end.",
    )


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
            "cache() is complete at the end of an iteration. This data set never ends: the cache is never read.",
            mended,
            why,
        )


_TIMES = 2  # larger than this is grown
_LEAST = 4096  # bytes of an element that is worth moving
_WHOLE = 1 << 24  # bytes of a cache that matter, where the number of elements is known


def cache_grown(plan: Inspection) -> Iterator[Advice]:
    """Cache()·Map(f), where f is arithmetic that gives more bytes than it takes."""
    for cache, _ in plan.each(Cache):
        mapped = cache.input
        if not isinstance(mapped, Map):
            continue
        taken, given = element_bytes(mapped.input.spec), element_bytes(mapped.spec)
        if not taken or given is None or has_bytes(mapped.input.spec) or not _is_cheap(mapped):
            continue
        count = cache.cardinality
        if given < max(_TIMES * taken, _LEAST) or 0 <= count * given < _WHOLE:
            continue
        if count > 0:
            sizes = f"{size_text(given * count)} in place of {size_text(taken * count)}"
        else:
            sizes = f"{size_text(given)} an element in place of {size_text(taken)}"
        yield Advice.on(
            mapped,
            "cache-grown",
            "memory",
            f"cache() keeps what {mapped.label} has made larger: {sizes}.",
            calls([cache, mapped]),
            "The arithmetic then runs in every epoch, on many elements at a time, and the cache is smaller.",
        )


def _is_cheap(mapped: Map) -> bool:
    """Whether the function is known to be arithmetic: no pictures, no parsing."""
    leaves, structure = flatten(mapped.input.spec)
    graph = traced(mapped.function, structure, leaves).graph
    return graph is not None and not any("." in step.primitive.name for step in graph.equations)


def cache_random(plan: Inspection) -> Iterator[Advice]:
    """Cache()·…·Map(f), where f draws random numbers; or a snapshot, or another step with a function."""
    for found in kept(plan.written):
        if found.drawn is None:
            continue
        node, keeper = found.node, found.keeper
        behind = between(keeper, node) if any(node is part for part in below(keeper)) else []
        yield Advice.on(
            node,
            "cache-random",
            "data",
            found.message,
            calls([keeper, node, *behind]),
            f"The {keeper.name} then stores what does not change. The function uses new random numbers in every epoch.",
        )


_KEEP_EPOCHS = (Map, Filter, Batch, Enumerate, Prefetch, Shuffle)


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
            if not isinstance(node, _KEEP_EPOCHS):
                break


def _part(count: int) -> str:
    return {2: "half", 3: "third", 4: "quarter"}.get(count, f"{count}th")


def cache_shuffled(plan: Inspection) -> Iterator[Advice]:
    """Cache()·…·Shuffle, or a snapshot, without a shuffle behind it."""
    for found in kept(plan.written):
        if found.drawn is not None:
            continue
        node, keeper = found.node, found.keeper
        front = between(keeper, node) if any(node is part for part in below(keeper)) else []
        yield Advice.on(
            node,
            "cache-shuffled",
            "data",
            found.message,
            calls([*front, keeper, node]),
            f"Behind the {keeper.name} the shuffle makes another order in every epoch. To keep one order on purpose, "
            "give it reshuffle_each_iteration=False.",
        )
