"""A rule: a node in, an equal one out, or None where it has nothing to say.

What rules share stands here: when two neighbouring steps may become one, and which plans are so quick that handing
their Blocks to another thread costs more than making them.
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
    """A rewrite of one kind of node, with what users read of it; see `rule`."""

    kind: type[Node] | UnionType
    apply: Callable[[Any], Node | None]
    text: str
    default: bool
    for_lint: bool
    option: str = field(init=False)  # that of the switch it stands in

    @property
    def name(self) -> str:
        return self.apply.__name__

    @property
    def sentence(self) -> str:
        """What `explain()` says of it: the first line of the function's docstring."""
        return (self.apply.__doc__ or "").strip().splitlines()[0]


def rule(
    kind: type[Node] | UnionType, text: str = "", *, default: bool = True, for_lint: bool = True
) -> Callable[[Callable[[Any], Node | None]], Rule]:
    """Make a function from a node of `kind` to an equal node, or None, a rule.

    `text` is the sentence that documents its switch, if it has one of its own, and `default` whether it runs unless it
    is switched off. `for_lint=False` is for rules that put steps together or add some: lint looks at plans without
    them, since it advises on steps of the user's.
    """

    def make(function: Callable[[Any], Node | None]) -> Rule:
        return Rule(kind, function, text, default, for_lint)

    return make


class Switch(Setting[bool]):
    """The setting of rules, the first one's before the next: their default, unless only what is set explicitly runs."""

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
    """Rules that are applied together until none has anything to say.

    Those of a phase for the `outermost` plan see it as a whole; the plans of inner data sets pass by.
    """

    name: str
    rules: tuple[Rule, ...]
    outermost: bool = False


class Switches(Group):
    """The switches of a phase's rules, in the order in which these are asked."""

    _phase: ClassVar[Phase]

    def __init_subclass__(cls, *, outermost: bool = False) -> None:
        super().__init_subclass__()
        switches = (item for item in vars(cls).values() if isinstance(item, Switch))
        cls._phase = Phase(cls.__name__, tuple(rule for switch in switches for rule in switch.rules), outermost)


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
    if _wait_for_others(steps, node):
        return None
    if isinstance(steps, FusedMap):
        made = steps.followed_by(node)
    else:
        made = FusedMap(input=steps.input, steps=(steps, node), where=node.where)
    return None if made.num_parallel_calls is not None and why_here(made) else made


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


def _wait_for_others(steps: Steps, node: Map | Filter) -> bool:
    """Whether both maps would have fewer calls waiting at once than the number that the user has set for each.

    As one step the two have that number of calls in all: of two functions that wait, half of the elements in the same
    time. The hand-over between them is little beside a wait. Where the number is AUTOTUNE's, it finds one for both.
    """
    if not isinstance(node, Map) or node.num_parallel_calls in (None, AUTOTUNE):
        return False
    below = steps.steps if isinstance(steps, FusedMap) else (steps,)
    return any(waits(step.function) for step in (*below, node) if isinstance(step, Map))


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


_SMALL = 256  # bytes of an element
_FEW = 16  # operations of a function
_MOST_MAPS = 100
_HANDING_ON = (Take, Skip, Shard, Enumerate, Repeat)
_ARITHMETIC = (*UFUNCS.values(), ASTYPE, WHERE)


def is_trivial(plan: Node) -> bool:
    """Whether a plan gives small elements of memory, with a little arithmetic: some nanoseconds each.

    A parallel step is trivial only where the choice is left to the engine.
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
    return all(answered(one, _is_trivial_map) for one in reversed(maps))  # each of a chain asks those below it


def _is_free(mapped: Map) -> bool:
    """Whether the engine may choose how it runs."""
    return mapped.num_parallel_calls in (None, AUTOTUNE) and mapped.executor == "auto" and mapped.vectorise


def _is_trivial_map(mapped: Map) -> bool:
    """Whether its function is known to be arithmetic on small elements."""
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
