"""ShuffleAndRepeat: epochs of a shuffle, where the next epoch's buffer fills while the last one's empties."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from penstock.plan.detached import detached
from penstock.plan.node import UnaryNode
from penstock.plan.ops import Repeat, Shuffle


class ShuffleAndRepeat(UnaryNode):
    """`repeat` of `shuffle`: made by a rewrite; epochs never mix."""

    shuffle: Shuffle
    repeat: Repeat

    name: ClassVar[str] = "shuffle_and_repeat"

    def __post_init__(self) -> None:
        object.__setattr__(self, "shuffle", detached(self.shuffle))
        object.__setattr__(self, "repeat", detached(self.repeat))

    @property
    def label(self) -> str:
        return f"{self.shuffle.label} · {self.repeat.label}"

    @property
    def cardinality(self) -> int:
        return replace(self.repeat, input=self.input).cardinality


class Held(UnaryNode):
    """What stands below each epoch's shuffle: its input, of which some may be read before the epoch begins."""

    name: ClassVar[str] = "held"
