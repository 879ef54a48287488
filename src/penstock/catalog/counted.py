"""Counted: a step whose number of elements is known beforehand, and held to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from penstock.block.block import Block
from penstock.dataset.dataset import Dataset
from penstock.errors import DataLossError
from penstock.physical.lower import Lowering, lower, register
from penstock.physical.stage import Stage, State
from penstock.plan.node import UnaryNode


@dataclass(frozen=True, kw_only=True)
class Counted(UnaryNode):
    """The input, known to hold `count` elements; a pass that ends with another number is an error."""

    count: int
    source: str  # what the count was read from, for the error

    name: ClassVar[str] = "counted"

    @property
    def label(self) -> str:
        return f"counted({self.count})"

    @property
    def cardinality(self) -> int:
        return self.count


class CountedStage(Stage):
    """Hands Blocks on and counts."""

    def __init__(self, upstream: Stage, node: Counted) -> None:
        super().__init__(node.label, (upstream,), node.where)
        self._upstream, self._node = upstream, node
        self._seen = 0

    def next(self, want: int) -> Block | None:
        block = self._upstream.next(want)
        self._seen += 0 if block is None else block.size
        if self._seen > self._node.count or (block is None and self._seen < self._node.count):
            found = f"only {self._seen}" if block is None else "more"
            message = f"The shards hold {found} examples, and {self._node.count} are on record."
            raise DataLossError(message, hint="Delete the folder and prepare again.", file=self._node.source)
        return block

    def state(self) -> State:
        return [self._upstream.state(), self._seen]

    def restore(self, state: State) -> None:
        below, self._seen = state
        self._upstream.restore(below)


@register(Counted)
def _counted(node: Counted, lowering: Lowering) -> Stage:
    return CountedStage(lower(node.input, lowering), node)


def counted(dataset: Dataset, count: int, source: str) -> Dataset:
    """`dataset`, whose length is known to be `count`: `len` and `cardinality` say so.

    >>> import penstock as ps
    >>> ds = ps.Dataset.range(9).filter(lambda x: x % 3 == 0)
    >>> len(counted(ds, 3, "known from arithmetic"))
    3
    """
    return dataset._with(Counted(input=dataset._plan, count=count, source=source))
