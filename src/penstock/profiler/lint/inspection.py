"""Inspection: a plan as checks see it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from penstock.options import Options
from penstock.plan.node import Node, UnaryNode
from penstock.rewrite.driver import rewrite
from penstock.rewrite.phases import RULES

Kind = TypeVar("Kind", bound=Node)


class Inspection:
    """A plan with its options.

    `written` is what the user wrote; `mended` the same after the rewrites that move steps and make them parallel, so
    that nobody is told to do what is done for him; `final` is what runs.
    """

    def __init__(self, plan: Node, options: Options) -> None:
        self.written = plan
        self.options = options
        apart = Options(experimental_optimization={rule.option: False for rule in RULES.values() if not rule.for_lint})
        self.mended = rewrite(plan, options._merged(apart))[0]
        self.final = rewrite(plan, options)[0]

    def asked(self, kind: type[Kind]) -> Iterator[tuple[Kind, tuple[Node, ...]]]:
        """The steps of a kind as they are written, each with those it hands its elements to, the nearest first."""
        return _places(self.written, (), kind)

    def each(self, kind: type[Kind]) -> Iterator[tuple[Kind, tuple[Node, ...]]]:
        """The same of the mended plan."""
        return _places(self.mended, (), kind)


def _places(node: Node, above: tuple[Node, ...], kind: type[Kind]) -> Iterator[tuple[Kind, tuple[Node, ...]]]:
    waiting = [(node, above)]
    while waiting:
        node, above = waiting.pop()
        if isinstance(node, kind):
            yield node, above
        waiting += [(part, (node, *above)) for part in reversed(node.inputs)]


def below(node: Node) -> Iterator[Node]:
    """The steps below one, the nearest first, down to a source or a step of several inputs."""
    while isinstance(node, UnaryNode):
        node = node.input
        yield node


def between(top: Node, bottom: Node) -> list[Node]:
    """The steps above `bottom` and below `top`, the one nearest to the source first."""
    found: list[Node] = []
    for node in below(top):
        if node is bottom:
            break
        found.append(node)
    return found[::-1]
