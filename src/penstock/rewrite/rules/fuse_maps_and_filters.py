"""Neighbouring maps and filters become one step:  Filter(p)·Map(f)·x   →   FusedMap(f, p)·x

The results are equal because the fused step calls the same functions in the same order, Block by Block. Only the
hand-over between the steps is removed. A pure filter after a parallel map then runs on the workers of the map.
"""

from __future__ import annotations

from penstock.plan.node import Node
from penstock.plan.ops import Filter, Map
from penstock.rewrite.rule import fused, kinds_of, rule, steps_below


@rule(Map | Filter, "Joins neighbouring maps and filters to one step.", for_lint=False)
def fuse_maps_and_filters(node: Map | Filter) -> Node | None:
    """Filter(p)·Map(f)·x becomes FusedMap(f, p)·x, and Map(f)·Filter(p)·x FusedMap(p, f)·x: no hand-over between."""
    steps = steps_below(node)
    if steps is None or kinds_of(steps) == {type(node)}:
        return None
    return fused(steps, node)
