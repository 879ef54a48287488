"""Shuffle what is small:  Shuffle·Map(f)·x   →   Map(f)·Shuffle·x

Equal because the order a shuffle makes depends on its key and on counts, never on values, and f is known to be pure: it
gives the same result for an element whenever it is called, and draws nothing, which would follow from an element's
place. The buffer then holds records instead of decoded images, and the map stands next to the batch, into whose memory
it can write.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.plan.node import Node
from penstock.plan.ops import Map, Shuffle
from penstock.rewrite.rule import rule
from penstock.trace.purity import may_draw


@rule(Shuffle, "Moves a shuffle before maps, so that its buffer stores smaller elements.")
def shuffle_before_map(shuffle: Shuffle) -> Node | None:
    """Shuffle·Map(f)·x becomes Map(f)·Shuffle·x for a pure f: the buffer holds what f has not enlarged yet."""
    mapped = shuffle.input
    if not isinstance(mapped, Map) or not mapped.vectorise or may_draw(mapped.function):
        return None
    return replace(mapped, input=replace(shuffle, input=mapped.input))
