"""measured: what the steps of a plan cost in a whole pass, and what they gave, from a Meter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from penstock.plan.node import Node
from penstock.profiler.analysis.meter import NOTHING, Cost, Costs, Key, Meter
from penstock.profiler.analysis.places import Place, steps_of


class Seen(NamedTuple):
    """What one step took in a pass: CPU seconds of its own, bytes of an element, their number, failures."""

    seconds: float
    each: float
    elements: float
    failures: float


def measured(places: list[Place], plan: Node, meter: Meter) -> dict[str, Seen]:
    """By the names of the steps as they were written, what the `plan` that ran shows of them."""
    costs = meter.costs()
    by_mark: dict[Any, Seen] = {}
    for node in plan.walk():
        for index, step in enumerate(steps_of(node)):
            by_mark[_mark(step)] = _seen(costs, meter, node, index)
    return {place.name: by_mark[_mark(place.step)] for place in places if _mark(place.step) in by_mark}


def _mark(step: Node) -> Any:
    """What stays of a step when rewrites move it or join it with others."""
    function = getattr(step, "function", getattr(step, "predicate", None))
    return type(step), step.where, step.label, id(function)


def _seen(costs: Costs, meter: Meter, node: Node, index: int) -> Seen:
    """One step; the last one of its node answers for what is around all of them."""
    own = costs.get(Key(id(node), "step", index), NOTHING)
    seconds, given = own.cpu, own
    if index == len(steps_of(node)) - 1:
        around = {key.part: cost for key, cost in costs.items() if key.node == id(node) and key.part != "step"}
        away = not own.calls and any(step_has_function(step) for step in steps_of(node))
        seconds += sum(cost.wall if away and part == "run" else cost.cpu for part, cost in around.items())
        seconds += sum(cost.cpu for cost in _inside(costs, meter, node))
        if not own.calls:
            given = around.get("take", around.get("next", own))
    return Seen(seconds, given.nbytes / given.elements if given.elements else 0.0, given.elements, given.failures)


def step_has_function(step: Node) -> bool:
    """Whether somebody's function is called for its elements, perhaps in a worker process."""
    return hasattr(step, "function") or hasattr(step, "predicate")


def _inside(costs: Costs, meter: Meter, node: Node) -> Iterator[Cost]:
    """What the data sets cost that a step opened."""
    opened = {id(node)}
    for number, opener in meter.opened_by.items():
        if opener in opened:
            opened.add(number)
    return (cost for key, cost in costs.items() if key.node in opened and key.node != id(node))
