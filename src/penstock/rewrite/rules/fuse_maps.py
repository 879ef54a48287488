"""Neighbouring maps and filters become one stage:  Map(g)·Map(f)·x   →   FusedMap(f, g)·x

Equal because the fused stage does the same steps in the same order, Block by Block; only the hand-over goes. Maps fuse
when they run the same way: all parallel with one setting, or all one call at a time. A filter has no setting and joins
either side of a sequential chain; behind a parallel map it joins too, since it is stateless per element and order is
kept by the segment.
"""

from __future__ import annotations

from penstock.plan.node import Node
from penstock.plan.ops import Filter, FusedMap, Map
from penstock.rewrite.rule import rule
from penstock.trace.purity import why_impure


@rule(Map | Filter, option="map_fusion")
def fuse_maps(node: Map | Filter) -> Node | None:
    """Map(g)·Map(f)·x becomes FusedMap(f, g)·x: the same steps without a hand-over."""
    below = node.input
    if isinstance(below, (Map, Filter)):
        steps: tuple[Map | Filter, ...] = (below,)
    elif isinstance(below, FusedMap):
        steps = below.steps
    else:
        return None
    if not _alike(steps, node):
        return None
    return FusedMap(input=below.input, steps=(*steps, node), where=node.where)


def _alike(steps: tuple[Map | Filter, ...], node: Map | Filter) -> bool:
    first = steps[0]
    if isinstance(first, Filter):  # a sequential chain
        return isinstance(node, Filter) or node.num_parallel_calls is None
    if isinstance(node, Map):
        return (node.num_parallel_calls, node.deterministic) == (first.num_parallel_calls, first.deterministic)
    # a predicate written to be called one at a time, in order, stays so unless nobody can tell
    return first.num_parallel_calls is None or why_impure(node.predicate) is None
