"""with_ratios: how many elements of each step one element of the data set takes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from penstock.plan import ops
from penstock.plan.combine import Zip
from penstock.plan.node import Node
from penstock.profiler.analysis.figures import Step
from penstock.profiler.analysis.places import Place

_ONE_TO_ONE = (ops.Map, ops.Shuffle, ops.Repeat, ops.Prefetch, ops.Enumerate, ops.Take, Zip)


def with_ratios(found: list[Place], steps: list[Step]) -> list[Step]:
    """The steps with their ratios: known from what a step does, or else as counted."""
    by_name = {step.name: step for step in steps}
    ratios = dict.fromkeys(by_name, 0.0)
    ratios[found[-1].name] = 1.0
    root = by_name[found[-1].name].elements
    read_by = Counter(below for place in found for below in place.inputs)
    for place in reversed(found):
        step = by_name[place.name]
        if read_by[place.name] > 1 and root:  # what is for which of them is not told apart
            ratios[place.name] = step.elements / root
        wanted = ratios[place.name]
        for below in place.inputs:
            ratios[below] += wanted * _need(place.step, step, by_name[below])
        above = None
        for name in reversed([name for name in by_name if name.startswith(f"{place.name}/")]):
            if above is not None and above.elements:
                wanted *= by_name[name].elements / above.elements
            ratios[name], above = wanted, by_name[name]
    return [replace(step, ratio=ratios[step.name]) for step in steps]


def _need(node: Node, step: Step, below: Step) -> float:
    """Elements of its input that an element of a step takes; none while a cache serves."""
    if isinstance(node, _ONE_TO_ONE):
        return 1.0
    if isinstance(node, ops.Batch):
        return float(node.batch_size)
    return below.elements / step.elements if step.elements else 1.0
