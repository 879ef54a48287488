"""The driver applies rules to a plan until it no longer changes, and records each application.

It stops with an error if the rules never reach a fixed point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol

from penstock.plan.fused import FusedMap, MapAndBatch, ShuffleAndRepeat
from penstock.plan.node import Node
from penstock.plan.node_base import question
from penstock.plan.ops import Map
from penstock.rewrite.phases import PHASES, OptimizationOptions
from penstock.rewrite.rule import Phase, Rule


def verify(plan: Node) -> None:
    """Raise AssertionError if the plan breaks an invariant. A failure is a bug in a rule."""
    for node in plan.walk():
        assert isinstance(node, Node), f"{node!r} is no node"
        match node:
            case FusedMap():
                assert len(node.steps) > 1, "a fused step of one map hides it from other rules"
                settings = {
                    (step.num_parallel_calls, step.deterministic) for step in node.steps if isinstance(step, Map)
                }
                assert len(settings) < 2, f"fused maps run differently: {settings}"
            case MapAndBatch():
                assert node.steps[0].num_parallel_calls is not None, "a sequential map was fused into a batch"
            case ShuffleAndRepeat():
                assert node.repeat.count not in (0, 1), "epochs were fused where there are no two"


# limit per phase and step of a plan; a deep plan gets more, as a step may swap places with many others
_MOST_ROUNDS = 100


class RewriteOptions(Protocol):
    """The part of `penstock.options.Options` that rewriting reads. That class is in a higher layer."""

    @property
    def experimental_optimization(self) -> OptimizationOptions: ...


@dataclass(frozen=True, slots=True)
class Rewritten:
    """One application of a rule, for `explain`: the node before and the node after."""

    rule: str
    old: Node
    new: Node

    @property
    def before(self) -> str:
        return self.old.label

    @property
    def after(self) -> str:
        return self.new.label


def outcomes(record: Sequence[Rewritten]) -> list[Rewritten]:
    """Return the record without intermediate results.

    If a rule fuses a chain in several applications, only the last application is returned.
    """
    found: list[Rewritten] = []
    for step in record:
        last = found[-1] if found and isinstance(step.new, FusedMap) and found[-1].rule == step.rule else None
        if last is not None and any(below is last.new for below in step.old.inputs):
            found.pop()
        found.append(step)
    return found


def optimise(plan: Node, options: RewriteOptions) -> Node:
    """Return the rewritten plan."""
    return rewrite(plan, options)[0]


def optimise_inner(plan: Node, options: RewriteOptions) -> Node:
    """Return the rewritten plan of a data set that is an element of another data set.

    Its last steps do not move to a worker of their own.
    """
    return rewrite(plan, options, outermost=False)[0]


def rewrite(plan: Node, options: RewriteOptions, *, outermost: bool = True) -> tuple[Node, list[Rewritten]]:
    """Return the rewritten plan and the record of applied rules. The rewritten plan yields the same elements."""
    record: list[Rewritten] = []
    kinds = {type(node) for node in plan.walk()}
    with question():
        for phase in PHASES:
            if (outermost or not phase.outermost) and any(_rules_for(phase, kind) for kind in kinds):
                changed = _run_phase(phase, plan, options, record)
                if changed is not plan:
                    plan = changed
                    verify(plan)
                    kinds = {type(node) for node in plan.walk()}
    return plan, record


def _run_phase(phase: Phase, plan: Node, options: RewriteOptions, record: list[Rewritten]) -> Node:
    rules = _Rules(phase, options, record, plan)
    if not phase.outermost:
        return rules.at_rest(plan)
    while (changed := rules.first(plan)) is not None:
        plan = changed
    return plan


class _Rules:
    """The rules of one phase, applied to a plan. The number of applications is limited."""

    def __init__(self, phase: Phase, options: RewriteOptions, record: list[Rewritten], plan: Node) -> None:
        self._phase = phase
        self._options = options
        self._record = record
        self._plan = plan
        self._left: int | None = None  # applications left before an error; set at the first application
        self._done: dict[int, tuple[Node, Node]] = {}  # id of a node: the node and its rewritten form

    def at_rest(self, plan: Node) -> Node:
        """Return the rewritten plan, inputs first. If nothing changes, return the same object."""
        done = self._done
        waiting: list[tuple[Node, tuple[Node, ...]]] = [(plan, ())]  # each with the nodes that were rewritten into it
        while waiting:
            node, before = waiting.pop()
            known = done.get(id(node))
            if known is not None:
                found = known[1]
            else:
                unknown = [below for below in node.inputs if id(below) not in done]
                if unknown:
                    waiting.append((node, before))
                    waiting += [(below, ()) for below in reversed(unknown)]
                    continue
                found = self._with_inputs(node)
                changed = self.first(found)
                if changed is not None:
                    waiting.append((changed, (*before, node, found)))
                    continue
            for other in (*before, node, found):
                done[id(other)] = other, found
        return self._done[id(plan)][1]

    def _with_inputs(self, node: Node) -> Node:
        inputs = tuple(self._done[id(below)][1] for below in node.inputs)
        same = all(new is old for new, old in zip(inputs, node.inputs, strict=True))
        return node if same else node.with_inputs(inputs)

    def first(self, node: Node) -> Node | None:
        """Return the result of the first rule that changes this node, or None."""
        for rule in _rules_for(self._phase, type(node)):
            if not getattr(self._options.experimental_optimization, rule.option):
                continue
            found: Node | None = rule.apply(node)
            if found is not None:
                self._record.append(Rewritten(rule.name, node, found))
                if self._left is None:
                    self._left = max(_MOST_ROUNDS, self._plan.height) * (self._plan.depth + 1)
                self._left -= 1
                if self._left < 0:
                    raise AssertionError(_restless(self._phase, self._record))
                return found
        return None


def _restless(phase: Phase, record: list[Rewritten]) -> str:
    last = "; ".join(f"{r.rule}: {r.before} → {r.after}" for r in record[-4:])
    return f"The rules of phase {phase.name!r} do not come to rest. The last steps were {last}. This is a bug."


@cache
def _rules_for(phase: Phase, kind: type[Node]) -> tuple[Rule, ...]:
    """Return the rules of a phase that apply to nodes of type `kind`."""
    return tuple(rule for rule in phase.rules if issubclass(kind, rule.kind))
