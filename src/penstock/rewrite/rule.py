"""A rule takes a node and returns an equal node, or None if the rule does not apply.

This module also has helpers that rules share. They decide which neighbouring steps may be fused, and which plans are so
fast that moving their Blocks to another thread costs more than computing them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import UnionType
from typing import Any, ClassVar

from penstock.block.structure import flatten, known_bytes
from penstock.functions.shipping import why_not_shippable
from penstock.functions.uses import waits
from penstock.plan.fused import FusedMap, executor_of
from penstock.plan.inputs import Scan
from penstock.plan.node import AUTOTUNE, Node
from penstock.plan.node_base import answered
from penstock.plan.ops import Batch, Enumerate, Filter, Map, Repeat, Shard, Skip, Take
from penstock.plan.seeding import why_here
from penstock.settings import Group, Setting
from penstock.sources.arrays import ArraysSource, RangeSource
from penstock.trace.arithmetic import ASTYPE, UFUNCS, WHERE
from penstock.trace.purity import may_draw, why_impure
from penstock.trace.traced import traced


@dataclass(slots=True, eq=False)
class Rule:
    """A rewrite of one kind of node, with its documentation for users. See `rule`."""

    kind: type[Node] | UnionType
    apply: Callable[[Any], Node | None]
    text: str
    default: bool
    for_lint: bool
    option: str = field(init=False)  # name of the switch that controls the rule

    @property
    def name(self) -> str:
        return self.apply.__name__

    @property
    def sentence(self) -> str:
        """The sentence that `explain()` prints: the first line of the function's docstring."""
        return (self.apply.__doc__ or "").strip().splitlines()[0]


def rule(
    kind: type[Node] | UnionType, text: str = "", *, default: bool = True, for_lint: bool = True
) -> Callable[[Callable[[Any], Node | None]], Rule]:
    """Turn a function into a rule. The function takes a node of `kind` and returns an equal node or None.

    `text` documents the switch of the rule, if the rule has its own switch. `default` is True if the rule runs unless
    it is switched off. `for_lint=False` is for rules that fuse or add steps. Lint looks at plans without such rules
    because its advice is about the user's own steps.
    """

    def make(function: Callable[[Any], Node | None]) -> Rule:
        return Rule(kind, function, text, default, for_lint)

    return make


class Switch(Setting[bool]):
    """The setting of one or several rules, in order.

    Its default is the default of the rules. If `apply_default_optimizations` is False, only explicitly set rules run.
    """

    def __init__(self, *rules: Rule, text: str = "") -> None:
        super().__init__(bool, all(one.default for one in rules), text or _texts(rules))
        self.rules = rules

    def __set_name__(self, owner: type, name: str) -> None:
        super().__set_name__(owner, name)
        for one in self.rules:
            one.option = name

    def value(self, group: Group) -> bool:
        found = group._given.get(self.name)
        return self.default and _defaults_apply(group) if found is None else bool(found)


def _texts(rules: tuple[Rule, ...]) -> str:
    return " ".join(one.text for one in rules if one.text)


def _defaults_apply(group: Group | None) -> bool:
    while group is not None and "apply_default_optimizations" not in group._settings:
        group = group._owner
    return group is None or bool(group._settings["apply_default_optimizations"].value(group))


@dataclass(frozen=True, slots=True, eq=False)
class Phase:
    """Rules that are applied together until no rule changes the plan.

    The rules of an `outermost` phase see a whole plan. They do not run on the plans of inner data sets.
    """

    name: str
    rules: tuple[Rule, ...]
    outermost: bool = False


class Switches(Group):
    """The switches of the rules of a phase, in the order in which the rules are tried."""

    _phase: ClassVar[Phase]

    def __init_subclass__(cls, *, outermost: bool = False) -> None:
        super().__init_subclass__()
        switches = (item for item in vars(cls).values() if isinstance(item, Switch))
        cls._phase = Phase(cls.__name__, tuple(rule for switch in switches for rule in switch.rules), outermost)


Steps = Map | Filter | FusedMap


def steps_below(node: Map | Filter) -> Steps | None:
    """Return the map, filter or fused step directly below the node, or None for other steps."""
    below = node.input
    return below if isinstance(below, (Map, Filter, FusedMap)) else None


def kinds_of(steps: Steps) -> frozenset[type[Map | Filter]]:
    """Return the set of step types among `steps`: Map, Filter or both."""
    return steps.kinds if isinstance(steps, FusedMap) else frozenset([type(steps)])


def fused(steps: Steps, node: Map | Filter) -> Node | None:
    """Return `steps` and the node above them as one step, or None if they cannot be fused.

    Maps fuse if all are parallel with equal settings, or all are sequential. A filter has no settings. It joins a
    sequential chain at either end. A filter after a parallel map joins too, because it keeps no state and the fused
    step keeps the order. All functions must also have the same executor, see `together`.
    """
    if not _alike(steps, node) or not together(steps, node) or _counts_behind_filter(steps, node):
        return None
    if _wait_for_others(steps, node):
        return None
    if isinstance(steps, FusedMap):
        made = steps.followed_by(node)
    else:
        made = FusedMap(input=steps.input, steps=(steps, node), where=node.where)
    return None if made.num_parallel_calls is not None and why_here(made) else made


def _alike(steps: Steps, node: Map | Filter) -> bool:
    first = steps.steps[0] if isinstance(steps, FusedMap) else steps
    if isinstance(first, Filter):  # a filter first means a sequential chain
        return isinstance(node, Filter) or node.num_parallel_calls is None
    if isinstance(node, Map):
        return (node.num_parallel_calls, node.deterministic) == (first.num_parallel_calls, first.deterministic)
    # An impure predicate is called for one element at a time, in order. A parallel step would change that.
    return first.num_parallel_calls is None or why_impure(node.predicate) is None


def _counts_behind_filter(steps: Steps, node: Map | Filter) -> bool:
    """Return True if the node's function may use its element's number, which a step that filters does not know."""
    return Filter in kinds_of(steps) and may_draw(_function(node))


def _wait_for_others(steps: Steps, node: Map | Filter) -> bool:
    """Return True if fusing two maps reduces the number of calls that wait at once.

    The user sets the number of parallel calls of each map. A fused step has this number of calls in total. If both
    functions wait, the fused step yields half as many elements in the same time. The hand-over between two maps is
    short compared to a wait. AUTOTUNE finds a number that suits the fused step.
    """
    if not isinstance(node, Map) or node.num_parallel_calls in (None, AUTOTUNE):
        return False
    below = steps.steps if isinstance(steps, FusedMap) else (steps,)
    return any(waits(step.function) for step in (*below, node) if isinstance(step, Map))


def together(steps: Steps, node: Map | Filter) -> bool:
    """Return True if the same executor may call the functions of `steps` and of the node above.

    A step with "auto" joins a step with "thread". It joins a step with "process" if its function can move to a process.
    A parallel step with "inline" is not fused with other maps. Sequential steps all run in the thread of the consumer,
    unless they have "process".
    """
    below, above = executor_of([steps]), executor_of([node])
    asked = {below, above} - {"auto"}
    if "process" in asked:
        own = steps.steps if isinstance(steps, FusedMap) else (steps,)
        # steps below that already have "process" were checked before
        others = (node,) if below == "process" else (*own, node)
        auto = (step for step in others if isinstance(step, Filter) or step.executor == "auto")
        return len(asked) == 1 and all(why_not_shippable(_function(step)) is None for step in auto)
    if not isinstance(steps, Filter) and steps.num_parallel_calls is not None:
        return len(asked) < 2 and ("inline" not in asked or below == above or isinstance(node, Filter))
    return True


def _function(step: Map | Filter) -> Callable[..., Any]:
    return step.function if isinstance(step, Map) else step.predicate


_SMALL = 256  # bytes of an element
_FEW = 16  # operations of a function
_MOST_MAPS = 100
_HANDING_ON = (Take, Skip, Shard, Enumerate, Repeat)
_ARITHMETIC = (*UFUNCS.values(), ASTYPE, WHERE)


def is_trivial(plan: Node) -> bool:
    """Return True if a plan only reads small elements from memory and does a little arithmetic.

    Such a plan takes some nanoseconds per element. A parallel step counts as trivial only if the engine may choose the
    number of calls.
    """
    maps: list[Map] = []
    while not isinstance(plan, Scan):
        if isinstance(plan, FusedMap):
            plan = plan.unfused
        if isinstance(plan, Map) and _is_free(plan):
            maps.append(plan)
            if len(maps) > _MOST_MAPS:
                return False
        elif not isinstance(plan, _HANDING_ON) and not (isinstance(plan, Batch) and plan.num_parallel_calls is None):
            return False
        (plan,) = plan.inputs
    if not isinstance(plan.source, (ArraysSource, RangeSource)) or not _is_small(plan):
        return False
    # each map of a chain asks the maps below it, so start there
    return all(answered(one, _is_trivial_map) for one in reversed(maps))


def _is_free(mapped: Map) -> bool:
    """Return True if the engine may choose how the map runs."""
    return mapped.num_parallel_calls in (None, AUTOTUNE) and mapped.executor == "auto" and mapped.vectorise


def _is_trivial_map(mapped: Map) -> bool:
    """Return True if the function of the map is known to be arithmetic on small elements."""
    if not _is_small(mapped) or not _is_small(mapped.input):
        return False
    leaves, structure = flatten(mapped.input.spec)
    graph = traced(mapped.function, structure, leaves).graph
    return (
        graph is not None
        and len(graph.equations) <= _FEW
        and all(equation.primitive in _ARITHMETIC for equation in graph.equations)
    )


def _is_small(plan: Node) -> bool:
    nbytes, known = known_bytes(plan.spec)
    return known and nbytes <= _SMALL
