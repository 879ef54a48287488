"""Checks of caches and snapshots: those that never become complete, store too much, or store random results."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.block.structure import flatten
from penstock.hints import size_text
from penstock.plan.node import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from penstock.plan.ops import Batch, Enumerate, Filter, Map, Prefetch, Repeat, Shuffle, Take
from penstock.plan.storing import Cache
from penstock.profiler.lint.advice import Finding
from penstock.profiler.lint.calls import calls
from penstock.profiler.lint.inspection import Inspection, below, between, element_bytes, has_bytes
from penstock.profiler.lint.kept import kept
from penstock.trace.traced import traced

_KEEP_NUMBER = (Map, Enumerate, Prefetch)


def cache_cut(plan: Inspection) -> Iterator[Finding]:
    """Take(n)·…·Cache(), where n is smaller than the number of elements of the cache."""
    for take, _ in plan.asked(Take):
        read = take.count
        for node in below(take):
            if isinstance(node, Cache):
                if read > 0 and (node.cardinality == UNKNOWN_CARDINALITY or read < node.cardinality):
                    yield _advice(take, node)
                break
            if isinstance(node, Batch):
                read *= node.batch_size
            elif isinstance(node, Shuffle):
                read += node.buffer_size
            elif not isinstance(node, _KEEP_NUMBER):
                break


def _advice(take: Take, cache: Cache) -> Finding:
    steps = between(take, cache)
    if any(isinstance(node, Shuffle) for node in steps):
        mended = calls([*steps, take])
        why = "You can leave out cache(), because here it stores nothing"
    else:
        mended = calls([*steps, take, cache])
        why = "The cache then stores the taken elements. Here it stores nothing"
    return Finding(
        take,
        f"{take.label} ends iterations before cache() has seen all elements, and only a complete cache is stored.",
        mended,
        f"{why}, unless another data set with the same cache() runs to its end.",
    )


def cache_endless(plan: Inspection) -> Iterator[Finding]:
    """Cache()·…·x, where x is infinite."""
    for cache, _ in plan.asked(Cache):
        if cache.cardinality != INFINITE_CARDINALITY:
            continue
        repeat = next((node for node in below(cache) if isinstance(node, Repeat)), None)
        if repeat is None:
            mended = ".take(n).cache()"
            why = "A cache can store a finite part. For an infinite data set, leave the cache out."
        else:
            mended = calls([*between(cache, repeat), cache, repeat])
            why = "The cache then stores one repetition of the data and serves all later ones."
        yield Finding(
            cache,
            "cache() is complete at the end of an iteration. This data set never ends: the cache is never read.",
            mended,
            why,
        )


_TIMES = 2  # growth above this factor counts
_LEAST = 4096  # bytes of an element that is worth moving
_WHOLE = 1 << 24  # bytes of a cache that are worth a line, if the number of elements is known


def cache_grown(plan: Inspection) -> Iterator[Finding]:
    """Cache()·Map(f), where f is arithmetic that returns more bytes than it takes."""
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
            sizes = f"{size_text(given * count)} instead of {size_text(taken * count)}"
        else:
            sizes = f"{size_text(given)} an element in place of {size_text(taken)}"
        yield Finding(
            mapped,
            f"cache() stores elements that {mapped.label} has made larger: {sizes}.",
            calls([cache, mapped]),
            "The arithmetic then runs in every epoch, on many elements at a time, and the cache is smaller.",
        )


def _is_cheap(mapped: Map) -> bool:
    """Return True if the function is known to be arithmetic, without images or parsing."""
    leaves, structure = flatten(mapped.input.spec)
    graph = traced(mapped.function, structure, leaves).graph
    return graph is not None and not any("." in step.primitive.name for step in graph.equations)


def cache_random(plan: Inspection) -> Iterator[Finding]:
    """Cache()·…·Map(f), where f uses random numbers; or a snapshot, or another step with a function."""
    for found in kept(plan.written):
        if found.drawn is None:
            continue
        node, keeper = found.node, found.keeper
        yield Finding(
            node,
            found.message,
            calls([keeper, node, *between(keeper, node)]),
            f"The {keeper.name} then stores what does not change. The function uses new random numbers in every epoch.",
        )


_KEEP_EPOCHS = (Map, Filter, Batch, Enumerate, Prefetch, Shuffle)


def cache_repeated(plan: Inspection) -> Iterator[Finding]:
    """Cache()·…·Repeat(n) with n of at least 2."""
    for cache, _ in plan.asked(Cache):
        for node in below(cache, _KEEP_EPOCHS):
            if isinstance(node, Repeat) and node.count > 1:
                yield Finding(
                    cache,
                    f"cache() stores the elements of {node.label}: every element {node.count} times.",
                    calls([*between(cache, node), cache, node]),
                    f"The cache then stores a {_part(node.count)} of that, and serves the later repetitions.",
                )


def _part(count: int) -> str:
    return {2: "half", 3: "third", 4: "quarter"}.get(count, f"{count}th")


def cache_shuffled(plan: Inspection) -> Iterator[Finding]:
    """Cache()·…·Shuffle, or a snapshot, without a shuffle after it."""
    for found in kept(plan.written):
        if found.drawn is not None:
            continue
        node, keeper = found.node, found.keeper
        yield Finding(
            node,
            found.message,
            calls([*between(keeper, node), keeper, node]),
            f"After the {keeper.name}, the shuffle has another order in every epoch. To keep one order on purpose, "
            "pass reshuffle_each_iteration=False to it.",
        )
