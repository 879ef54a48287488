"""Neighbouring maps become one step:  Map(g)·Map(f)·x   →   FusedMap(f, g)·x

The results are equal because the fused step calls the same functions in the same order, Block by Block. Only the
hand-over between the steps is removed.
"""

from __future__ import annotations

from penstock.plan.node import Node
from penstock.plan.ops import Map
from penstock.rewrite.rule import fused, kinds_of, rule, steps_below


@rule(Map, "Joins neighbouring maps to one step.", for_lint=False)
def fuse_maps(node: Map) -> Node | None:
    """Map(g)·Map(f)·x becomes FusedMap(f, g)·x: the same steps without a hand-over."""
    steps = steps_below(node)
    if steps is None or kinds_of(steps) != {Map}:
        return None
    return fused(steps, node)
