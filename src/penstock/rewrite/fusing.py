"""When two neighbouring steps may become one: what the rules that fuse maps and filters share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.functions.shipping import why_not_shippable
from penstock.plan.node import Node
from penstock.plan.ops import Filter, FusedMap, Map, executor_of
from penstock.trace.purity import may_draw, why_impure

Steps = Map | Filter | FusedMap


def steps_below(node: Map | Filter) -> Steps | None:
    """The maps and filters that stand directly below, as one step or one of them; None for other steps."""
    below = node.input
    return below if isinstance(below, (Map, Filter, FusedMap)) else None


def kinds_of(steps: Steps) -> frozenset[type[Map | Filter]]:
    """Whether there are maps among them, and filters."""
    return steps.kinds if isinstance(steps, FusedMap) else frozenset([type(steps)])


def fused(steps: Steps, node: Map | Filter) -> Node | None:
    """`steps` and the node above them as one step, or None where they run in different ways.

    Maps fuse when all are parallel with one setting, or all sequential. A filter has no setting and joins either side
    of a sequential chain; behind a parallel map it joins too, since it is stateless per element and the segment keeps
    the order. Who calls their functions has to agree, too: see `together`.
    """
    if not _alike(steps, node) or not together(steps, node) or _counts_behind_filter(steps, node):
        return None
    if isinstance(steps, FusedMap):
        return steps.followed_by(node)
    return FusedMap(input=steps.input, steps=(steps, node), where=node.where)


def _alike(steps: Steps, node: Map | Filter) -> bool:
    first = steps.steps[0] if isinstance(steps, FusedMap) else steps
    if isinstance(first, Filter):  # a sequential chain
        return isinstance(node, Filter) or node.num_parallel_calls is None
    if isinstance(node, Map):
        return (node.num_parallel_calls, node.deterministic) == (first.num_parallel_calls, first.deterministic)
    # a predicate written to be called one at a time, in order, stays so unless nobody can tell
    return first.num_parallel_calls is None or why_impure(node.predicate) is None


def _counts_behind_filter(steps: Steps, node: Map | Filter) -> bool:
    """Whether the node's function may draw from its element's number, which nobody knows inside a step that filters."""
    return Filter in kinds_of(steps) and may_draw(_function(node))


def together(steps: Steps, node: Map | Filter) -> bool:
    """Whether the functions of `steps` and of the node above may be called by the same executor.

    "auto" goes along with what its neighbours ask for: with "thread", and with "process" if its function may go there.
    What is parallel and "inline" stays by itself. Steps that are not parallel are all called in the puller's thread,
    unless they say "process".
    """
    below, above = executor_of([steps]), executor_of([node])
    asked = {below, above} - {"auto"}
    if "process" in asked:
        own = steps.steps if isinstance(steps, FusedMap) else (steps,)
        others = (node,) if below == "process" else (*own, node)  # those below may go there, or would not be together
        auto = (step for step in others if isinstance(step, Filter) or step.executor == "auto")
        return len(asked) == 1 and all(why_not_shippable(_function(step)) is None for step in auto)
    if not isinstance(steps, Filter) and steps.num_parallel_calls is not None:
        return len(asked) < 2 and ("inline" not in asked or below == above or isinstance(node, Filter))
    return True


def _function(step: Map | Filter) -> Callable[..., Any]:
    return step.function if isinstance(step, Map) else step.predicate
