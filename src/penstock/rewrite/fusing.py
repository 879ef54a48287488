"""When two neighbouring steps may become one: what the rules that fuse maps and filters share."""

from __future__ import annotations

from penstock.plan.node import Node
from penstock.plan.ops import Filter, FusedMap, Map
from penstock.trace.purity import why_impure

Steps = tuple[Map | Filter, ...]


def steps_below(node: Map | Filter) -> Steps:
    """The maps and filters that stand directly below, the one nearest to the source first; none for other steps."""
    below = node.input
    if isinstance(below, (Map, Filter)):
        return (below,)
    return below.steps if isinstance(below, FusedMap) else ()


def fused(steps: Steps, node: Map | Filter) -> Node | None:
    """`steps` and the node above them as one step, or None where they run in different ways.

    Maps fuse when all are parallel with one setting, or all sequential. A filter has no setting and joins either side
    of a sequential chain; behind a parallel map it joins too, since it is stateless per element and the segment keeps
    the order.
    """
    if not _alike(steps, node):
        return None
    below = node.input
    assert isinstance(below, (Map, Filter, FusedMap))
    return FusedMap(input=below.input, steps=(*steps, node), where=node.where)


def _alike(steps: Steps, node: Map | Filter) -> bool:
    first = steps[0]
    if isinstance(first, Filter):  # a sequential chain
        return isinstance(node, Filter) or node.num_parallel_calls is None
    if isinstance(node, Map):
        return (node.num_parallel_calls, node.deterministic) == (first.num_parallel_calls, first.deterministic)
    # a predicate written to be called one at a time, in order, stays so unless nobody can tell
    return first.num_parallel_calls is None or why_impure(node.predicate) is None
