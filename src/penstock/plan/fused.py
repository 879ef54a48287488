"""Steps created by rewrites from several steps: neighbouring maps and filters, maps with a batch, shuffled epochs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

from penstock.plan.node import UNKNOWN_CARDINALITY, Node, UnaryNode
from penstock.plan.ops import Batch, Filter, Map, Repeat, Shuffle


class Apart(Node):
    """Placeholder for the input of a step that is part of a fused step. The fused step has the real input."""

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
    """Return the same step without its input.

    With its input, each part of a chain would contain the whole chain below it. Digests, comparisons and printed plans
    would double in size with each step.
    """
    return step if isinstance(step.input, Apart) else step.over(input=_APART)


_EXECUTORS = ("auto", "thread", "inline", "process")  # of fused steps, the executor latest in this list applies


def executor_of(steps: Iterable[Map | Filter | FusedMap]) -> str:
    """Return the executor of steps that run as one: the one that a step requests, or "auto".

    A map without parallel calls runs in the consumer's thread with "thread" as well as with "inline".
    """
    asked = ("auto" if isinstance(step, Filter) else step.executor for step in steps)
    return max(asked, key=_EXECUTORS.index, default="auto")


class FusedMap(UnaryNode):
    """Neighbouring maps and filters as one step. It is created by rewrites, never by users."""

    steps: tuple[Map | Filter, ...]  # the first is nearest to the source

    name: ClassVar[str] = "fused"

    def __post_init__(self) -> None:
        self.settle(steps=tuple(detached(step) for step in self.steps))

    def followed_by(self, step: Map | Filter) -> FusedMap:
        """Return the fused step with one more step at the end.

        Facts about the other steps are copied, because a chain grows step by step.
        """
        made = object.__new__(type(self))
        vars(made).update(
            where=step.where,
            input=self.input,
            steps=(*self.steps, detached(step)),
            _kinds=self.kinds | {type(step)},
            _executor=executor_of([self, step]),
        )
        return made

    @property
    def kinds(self) -> frozenset[type[Map | Filter]]:
        """The classes of its steps: maps, filters or both."""
        known: frozenset[type[Map | Filter]] | None = vars(self).get("_kinds")
        if known is None:
            known = vars(self)["_kinds"] = frozenset(map(type, self.steps))
        return known

    @property
    def label(self) -> str:
        return " · ".join(step.label for step in self.steps)

    @property
    def num_parallel_calls(self) -> int | None:
        return self.steps[0].num_parallel_calls if isinstance(self.steps[0], Map) else None

    @property
    def deterministic(self) -> bool | None:
        return self.steps[0].deterministic if isinstance(self.steps[0], Map) else None

    @property
    def executor(self) -> str:
        known: str | None = vars(self).get("_executor")
        if known is None:
            known = vars(self)["_executor"] = executor_of(self.steps)
        return known

    @property
    def spec(self) -> Any:
        return self.unfused.spec

    @property
    def cardinality(self) -> int:
        return self.unfused.cardinality

    @property
    def unfused(self) -> Node:
        """The steps one above the other, as before the fusion."""
        node = self.input
        for step in self.steps:
            node = step.over(input=node)
        return node


class MapAndBatch(UnaryNode):
    """Maps whose workers also create the batches, in place of a map and a batch."""

    steps: tuple[Map, ...]
    batch: Batch

    name: ClassVar[str] = "map_and_batch"

    def __post_init__(self) -> None:
        self.settle(steps=tuple(detached(step) for step in self.steps), batch=detached(self.batch))

    @property
    def label(self) -> str:
        return " · ".join([step.label for step in self.steps] + [self.batch.label])

    @property
    def executor(self) -> str:
        return executor_of(self.steps)

    @property
    def spec(self) -> Any:
        return replace(self.batch, input=FusedMap(input=self.input, steps=self.steps)).spec

    @property
    def cardinality(self) -> int:
        count: int = replace(self.batch, input=self.input).cardinality
        return count


def has_workers(step: Node) -> bool:
    """Return True for a parallel map or batch, whose workers compute elements ahead of the consumer."""
    if getattr(step, "executor", None) == "inline":
        return False
    parallel = isinstance(step, (Map, FusedMap, Batch)) and step.num_parallel_calls is not None
    return parallel or isinstance(step, MapAndBatch)


class ShuffleAndRepeat(UnaryNode):
    """`shuffle` followed by `repeat`, created by a rewrite. Epochs never mix."""

    shuffle: Shuffle
    repeat: Repeat

    name: ClassVar[str] = "shuffle_and_repeat"

    def __post_init__(self) -> None:
        self.settle(shuffle=detached(self.shuffle), repeat=detached(self.repeat))

    @property
    def label(self) -> str:
        return f"{self.shuffle.label} · {self.repeat.label}"

    @property
    def cardinality(self) -> int:
        return replace(self.repeat, input=self.input).cardinality


class Held(UnaryNode):
    """The input of each epoch's shuffle. Some of its elements may be read before the epoch begins."""

    name: ClassVar[str] = "held"
