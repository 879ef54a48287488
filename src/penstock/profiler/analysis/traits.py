"""What is known of a step's function beside its cost: whether it may move, be kept, or run side by side."""

from __future__ import annotations

from penstock.plan.node import Node
from penstock.plan.ops import Filter, Map, Shuffle
from penstock.profiler.lint.functions import keeps_state
from penstock.profiler.lint.natures import randomness
from penstock.trace.shippable import why_not_shippable


def traits(step: Node) -> tuple[bool, str | None, bool]:
    """Whether it differs from epoch to epoch, why it may not go to a process, whether it changes things outside."""
    if isinstance(step, Shuffle):
        return step.reshuffle_each_iteration, None, False
    if not isinstance(step, (Map, Filter)):
        return "shuffle" in step.name or step.name in ("sample_from_datasets", "random"), None, False
    function = step.function if isinstance(step, Map) else step.predicate
    return randomness(function) is not None, why_not_shippable(function), bool(keeps_state(function))
