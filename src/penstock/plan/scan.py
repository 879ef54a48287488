"""Scan: the leaf of every plan, a source read from its start."""

from __future__ import annotations

from typing import Any, ClassVar

from penstock.block.structure import leaves_rank_open
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
        """The source's, where it tells every rank: steps can say nothing of elements that may have any."""
        spec = self.source.spec
        return None if spec is None or leaves_rank_open(spec) else spec

    @property
    def gives_any_rank(self) -> bool:
        spec = self.source.spec if self.source.holds_spec else None
        return spec is not None and leaves_rank_open(spec)

    @property
    def cardinality(self) -> int:
        return self.source.cardinality
