"""A rule: a node in, an equal one out, or None where it has nothing to say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import UnionType
from typing import Any

from penstock.plan.node import Node


@dataclass(frozen=True, slots=True)
class Rule:
    """A rewrite of one kind of node. `option` is the name that switches it in `experimental_optimization`."""

    kind: type[Node] | UnionType
    option: str
    apply: Callable[[Any], Node | None]

    @property
    def name(self) -> str:
        return self.apply.__name__

    @property
    def sentence(self) -> str:
        """The first line of the rule's module: before, after, and why they are equal."""
        return (self.apply.__doc__ or "").strip().splitlines()[0]


def rule(kind: type[Node] | UnionType, *, option: str) -> Callable[[Callable[[Any], Node | None]], Rule]:
    """Make a function from a node of `kind` to an equal node, or None, a rule."""

    def make(function: Callable[[Any], Node | None]) -> Rule:
        return Rule(kind, option, function)

    return make
