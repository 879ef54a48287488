"""A shuffle whose buffer holds decoded pictures, or arrays that a map has made large."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.block.size_text import size_text
from penstock.plan.node import Node
from penstock.plan.ops import Filter, Map, Prefetch, Shuffle
from penstock.profiler.lint.advice import Advice
from penstock.profiler.lint.calls import calls
from penstock.profiler.lint.inspection import Inspection, below, between
from penstock.profiler.lint.natures import decodes
from penstock.profiler.lint.sizes import element_bytes

_ALIKE = (Filter, Prefetch)
_TIMES = 4  # larger than this is grown
_LEAST = 1 << 24  # bytes of a buffer that matter
_FEWEST = 64  # pictures of unknown size in a buffer that matter
_PICTURE = 224 * 224 * 3 * 4  # bytes of one as networks take them


def shuffle_decoded(plan: Inspection) -> Iterator[Advice]:
    """Shuffle(n)·…·Map(f), where f makes elements much larger and could run behind the shuffle."""
    for shuffle, _ in plan.each(Shuffle):
        growing = [node for node in _maps(shuffle) if _grows(node)]
        message = _message(shuffle) if growing else None
        if message is not None:
            first = growing[-1]
            yield Advice.on(
                shuffle,
                "shuffle-decoded",
                "memory",
                f"{message}, made by {first.label}.",
                calls([shuffle, first, *between(shuffle, first)]),
                "The buffer then holds what the map has not enlarged yet.",
            )


def _maps(shuffle: Shuffle) -> Iterator[Map]:
    for node in below(shuffle):
        if isinstance(node, Map):
            yield node
        elif not isinstance(node, _ALIKE):
            return


def _grows(mapped: Map) -> bool:
    before, after = element_bytes(mapped.input.spec), element_bytes(mapped.spec)
    if before is not None and after is not None:
        return after >= max(_TIMES * before, 1)
    return decodes(mapped.function) is not None


def _message(shuffle: Shuffle) -> str | None:
    count = _filled(shuffle)
    size = element_bytes(shuffle.spec)
    if size is None:
        if count < _FEWEST:
            return None
        typical = size_text(count * _PICTURE)
        return f"The buffer of {shuffle.label} holds decoded pictures, {typical} at 224×224×3 float32"
    if count * size < _LEAST:
        return None
    return f"The buffer of {shuffle.label} holds {size_text(count * size)}, {size_text(size)} an element"


def _filled(shuffle: Shuffle) -> int:
    node: Node = shuffle.input
    return min(shuffle.buffer_size, node.cardinality) if node.cardinality >= 0 else shuffle.buffer_size
