"""Neighbouring filters become one step:  Filter(q)·Filter(p)·x   →   FusedMap(p, q)·x

The results are equal because q is called for the elements that p keeps, in the same order as before. Only the hand-over
between the steps is removed.
"""

from __future__ import annotations

from penstock.plan.node import Node
from penstock.plan.ops import Filter
from penstock.rewrite.rule import fused, kinds_of, rule, steps_below


@rule(Filter, "Joins neighbouring filters to one step.", for_lint=False)
def fuse_filters(node: Filter) -> Node | None:
    """Filter(q)·Filter(p)·x becomes FusedMap(p, q)·x: the same steps without a hand-over."""
    steps = steps_below(node)
    if steps is None or kinds_of(steps) != {Filter}:
        return None
    return fused(steps, node)
