"""The driver: walks plans, applies rules to a fixed point, records what it did; stops rules that chase each other."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from penstock.options import Options
from penstock.plan.node import Node
from penstock.plan.verify import verify
from penstock.rewrite.phases import PHASES, Phase
from penstock.rewrite.rule import Rule

_MOST_ROUNDS = 100  # of one phase; plans are tens of nodes deep


@dataclass(frozen=True, slots=True)
class Rewritten:
    """One application of a rule, for `explain`."""

    rule: str
    before: str
    after: str


def optimise(plan: Node, options: Options) -> Node:
    """The rewritten plan."""
    return rewrite(plan, options)[0]


def optimise_inner(plan: Node, options: Options) -> Node:
    """The rewritten plan of a data set that is an element of another: no worker is set aside for its end."""
    return rewrite(plan, options, outermost=False)[0]


def rewrite(plan: Node, options: Options, *, outermost: bool = True) -> tuple[Node, list[Rewritten]]:
    """The rewritten plan and the record of how it came about. Equal to the given plan in all it gives."""
    record: list[Rewritten] = []
    kinds = {type(node) for node in plan.walk()}
    for phase in PHASES:
        if (outermost or not phase.outermost) and any(_rules_for(phase, kind) for kind in kinds):
            changed = _run_phase(phase, plan, options, record)
            if changed is not plan:
                plan = changed
                verify(plan)
                kinds = {type(node) for node in plan.walk()}
    return plan, record


def _run_phase(phase: Phase, plan: Node, options: Options, record: list[Rewritten]) -> Node:
    walk = _apply if phase.outermost else _pass
    for _ in range(_MOST_ROUNDS):
        changed = walk(phase, plan, options, record)
        if changed is plan:
            return plan
        plan = changed
    last = "; ".join(f"{r.rule}: {r.before} → {r.after}" for r in record[-4:])
    message = f"The rules of phase {phase.name!r} do not come to rest. The last steps were {last}. This is a bug."
    raise AssertionError(message)


def _pass(phase: Phase, node: Node, options: Options, record: list[Rewritten]) -> Node:
    """One walk, inputs first; the same object comes back where nothing changed."""
    inputs = tuple(_pass(phase, below, options, record) for below in node.inputs)
    if any(new is not old for new, old in zip(inputs, node.inputs, strict=True)):
        node = node.with_inputs(inputs)
    return _apply(phase, node, options, record)


def _apply(phase: Phase, node: Node, options: Options, record: list[Rewritten]) -> Node:
    """What the first rule with something to say about this node makes of it."""
    for rule in _rules_for(phase, type(node)):
        if not getattr(options.experimental_optimization, rule.option):
            continue
        found = rule.apply(node)
        if found is not None:
            record.append(Rewritten(rule.name, node.label, found.label))
            return found
    return node


@cache
def _rules_for(phase: Phase, kind: type[Node]) -> tuple[Rule, ...]:
    """The rules of a phase that look at nodes of a kind."""
    return tuple(rule for rule in phase.rules if issubclass(kind, rule.kind))
