"""Scan: the leaf of every plan, a source read from its start."""

from __future__ import annotations

from typing import Any, ClassVar

from penstock.plan.node import Node
from penstock.sources.source import Source


class Scan(Node):
    """The elements of a source."""

    source: Source

    name: ClassVar[str] = "scan"

    @property
    def label(self) -> str:
        return self.source.label

    @property
    def spec(self) -> Any:
        return self.source.spec

    @property
    def cardinality(self) -> int:
        return self.source.cardinality
