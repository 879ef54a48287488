"""A cache behind a cheap map that makes elements larger: it keeps what costs less to compute again."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.block.size_text import size_text
from penstock.block.structure import flatten
from penstock.plan.ops import Map
from penstock.plan.storing import Cache
from penstock.profiler.lint.advice import Advice
from penstock.profiler.lint.calls import calls
from penstock.profiler.lint.inspection import Inspection
from penstock.profiler.lint.sizes import element_bytes, has_bytes
from penstock.trace.traced import traced

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
