"""Steps that are parts of another: they keep what they do, and have no input of their own."""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

from penstock.plan.node import UNKNOWN_CARDINALITY, Node, UnaryNode


class Apart(Node):
    """Stands where a part had its input: what it reads is the matter of the step that it is a part of."""

    name: ClassVar[str] = "apart"

    @property
    def spec(self) -> Any:
        return None

    @property
    def cardinality(self) -> int:
        return UNKNOWN_CARDINALITY


_APART = Apart(where=None)
Part = TypeVar("Part", bound=UnaryNode)


def detached(step: Part) -> Part:
    """The same step without its input.

    With it, a chain of parts would be there once for each of them, and twice as often with each further one, in all
    that goes through a plan: digests, comparisons, what is printed.
    """
    return step if isinstance(step.input, Apart) else step.over(input=_APART)
