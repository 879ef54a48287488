"""A rule: a node in, an equal one out, or None where it has nothing to say; its switch, and the phase it runs in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import UnionType
from typing import Any, ClassVar

from penstock.plan.node import Node
from penstock.settings import Group, Setting


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
