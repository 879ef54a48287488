"""Shuffle small elements:  Shuffle·Map(f)·x   →   Map(f)·Shuffle·x

The results are equal because the order of a shuffle depends on its key and on counts, never on values. The function f
is pure: its result does not depend on the time of the call. It also uses no random numbers, which would depend on the
position of an element. After the rewrite the buffer stores records instead of decoded images. The map is next to the
batch and can write into the memory of the batch.
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
