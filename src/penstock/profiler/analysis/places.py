"""Places: the steps of a plan with readable names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from penstock.plan.fused import FusedMap, MapAndBatch, has_workers
from penstock.plan.inputs import Scan
from penstock.plan.node import Node, inputs_first
from penstock.plan.ops import Prefetch
from penstock.rewrite.driver import Rewritten, outcomes

_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """One step of a plan that runs.

    `name` is its kind and its number among the steps of this kind, counted from the source (`map#1`). `node` is the
    node that runs it: the step itself, or the fused node that contains it.
    """

    name: str
    step: Node
    node: Node
    inputs: tuple[str, ...]

    @property
    def label(self) -> str:
        return self.step.label


def places(plan: Node) -> list[Place]:
    """Return every step of a rewritten plan, the source first. Fused nodes are split into their steps.

    A prefetch after a step with workers is left out: it only sets how far these workers run ahead.
    """
    found: list[Place] = []
    numbers: Counter[str] = Counter()
    last: dict[int, str] = {}  # by node: the name of its step nearest to the consumer
    for node in inputs_first(plan):
        inputs = tuple(last[id(below)] for below in node.inputs)
        if isinstance(node, Prefetch) and has_workers(node.input):
            last[id(node)] = inputs[0]
            continue
        for step in steps_of(node):
            kind = kind_of(step)
            numbers[kind] += 1
            place = Place(f"{kind}#{numbers[kind]}", step, node, inputs)
            found.append(place)
            inputs = (place.name,)
        last[id(node)] = inputs[0]
    return found


class AsWritten(TypedDict):
    """A plan before its rewrites, and the rewrites, as plain values."""

    steps: list[dict[str, Any]]  # name, label, where, and names of the inputs
    rewrites: list[tuple[str, str, str]]  # rule, before, after


def as_written(plan: Node, record: Sequence[Rewritten]) -> AsWritten:
    """Return the steps of a plan as the user wrote it, the source first, and the `record` of its rewrites."""
    numbers: dict[int, str] = {}
    steps = []
    for index, node in enumerate(inputs_first(plan)):
        numbers[id(node)] = name = str(index)
        inputs = [numbers[id(below)] for below in node.inputs]
        steps.append({"name": name, "label": node.label, "where": node.where, "inputs": inputs})
    return AsWritten(steps=steps, rewrites=[(each.rule, each.before, each.after) for each in outcomes(record)])


def steps_of(node: Node) -> tuple[Node, ...]:
    """Return the original steps of a node, which may be fused from several."""
    if isinstance(node, FusedMap):
        return node.steps
    if isinstance(node, MapAndBatch):
        return (*node.steps, node.batch)
    return (node,)


def kind_of(step: Node) -> str:
    """Return the kind of a step: `map`, `batch`; for a source its name: `range`, `TFRecordDataset`."""
    if not isinstance(step, Scan):
        return step.name
    word = _WORD.match(step.label)
    return step.name if word is None else word.group()


def alike(node: Node) -> str:
    """Return a key that is equal for nodes of inner data sets that only differ in the file they read."""
    return " · ".join(kind_of(step) if isinstance(step, Scan) else step.label for step in steps_of(node))
