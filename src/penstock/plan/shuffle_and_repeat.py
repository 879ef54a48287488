"""ShuffleAndRepeat: epochs of a shuffle, where the next epoch's buffer fills while the last one's empties."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from penstock.plan.node import UnaryNode
from penstock.plan.ops import Repeat, Shuffle


@dataclass(frozen=True, kw_only=True)
class ShuffleAndRepeat(UnaryNode):
    """`repeat` of `shuffle`: made by a rewrite; epochs never mix. The inputs of both parts are not looked at."""

    shuffle: Shuffle
    repeat: Repeat

    name: ClassVar[str] = "shuffle_and_repeat"

    @property
    def label(self) -> str:
        return f"{self.shuffle.label} · {self.repeat.label}"

    @property
    def cardinality(self) -> int:
        return replace(self.repeat, input=self.input).cardinality


@dataclass(frozen=True, kw_only=True)
class Held(UnaryNode):
    """What stands below each epoch's shuffle: its input, of which some may be read before the epoch begins."""

    name: ClassVar[str] = "held"
