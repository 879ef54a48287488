"""Seen: stands for a part of a plan of which one element was made, so that the steps above it can be asked."""

from __future__ import annotations

from typing import Any, ClassVar

from penstock.block.structure import leaves_rank_open
from penstock.plan.node import UNKNOWN_CARDINALITY, Node


class Seen(Node):
    """A part whose elements are described by `element`. It gives none: nothing is run over it."""

    element: Any
    count: int = UNKNOWN_CARDINALITY

    name: ClassVar[str] = "seen"

    @property
    def spec(self) -> Any:
        return self.element

    @property
    def gives_any_rank(self) -> bool:
        return self.element is not None and leaves_rank_open(self.element)

    @property
    def cardinality(self) -> int:
        return self.count
