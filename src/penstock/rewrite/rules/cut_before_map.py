"""Map what is kept:  Take(n)·Map(f)·x   →   Map(f)·Take(n)·x,  and so for Skip and Shard

The results are equal because a map yields one element per input element, in order, and f is pure and uses no random
numbers. A call of f for a dropped element has no effect, so it can be left out. An element for which f fails counts as
one element before and after the rewrite.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.plan.node import Node
from penstock.plan.ops import Map, Shard, Skip, Take
from penstock.rewrite.rule import rule
from penstock.trace.purity import may_draw


@rule(Take | Skip | Shard, "Moves take, skip and shard before maps, so that the maps compute fewer elements.")
def cut_before_map(cut: Take | Skip | Shard) -> Node | None:
    """Take, Skip and Shard of Map(f)·x become Map(f) of the part of x that is kept, for a pure f."""
    mapped = cut.input
    if not isinstance(mapped, Map) or not mapped.vectorise or may_draw(mapped.function):
        return None
    return replace(mapped, input=replace(cut, input=mapped.input))
