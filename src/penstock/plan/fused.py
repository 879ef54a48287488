"""Several steps as one, which only rewrites make: neighbouring maps and filters, maps with a batch, shuffled epochs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

from penstock.plan.node import UNKNOWN_CARDINALITY, Node, UnaryNode
from penstock.plan.ops import Batch, Filter, Map, Repeat, Shuffle


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


_EXECUTORS = ("auto", "thread", "inline", "process")  # of steps that run as one the last asked for counts


def executor_of(steps: Iterable[Map | Filter | FusedMap]) -> str:
    """The executor of steps that run as one: what one of them asks for, "auto" where none does.

    Maps that are not parallel run in the puller's thread whether they say "thread" or "inline".
    """
    asked = ("auto" if isinstance(step, Filter) else step.executor for step in steps)
    return max(asked, key=_EXECUTORS.index, default="auto")


class FusedMap(UnaryNode):
    """Neighbouring maps and filters as one step: made by rewrites, never by users."""

    steps: tuple[Map | Filter, ...]  # the first is nearest to the source

    name: ClassVar[str] = "fused"

    def __post_init__(self) -> None:
        self.settle(steps=tuple(detached(step) for step in self.steps))

    def followed_by(self, step: Map | Filter) -> FusedMap:
        """With another step behind these.

        A chain grows step by step: what is known of the others is not found anew each time.
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
        """Whether it has maps, and whether it has filters."""
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
        """Its steps one above the other, as before they were fused."""
        node = self.input
        for step in self.steps:
            node = step.over(input=node)
        return node


class MapAndBatch(UnaryNode):
    """Maps whose workers make the batches: a rewrite of map and batch."""

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
    """Whether it is a parallel map or batch, whose workers make elements ahead of whoever takes them."""
    if getattr(step, "executor", None) == "inline":
        return False
    parallel = isinstance(step, (Map, FusedMap, Batch)) and step.num_parallel_calls is not None
    return parallel or isinstance(step, MapAndBatch)


class ShuffleAndRepeat(UnaryNode):
    """`repeat` of `shuffle`: made by a rewrite; epochs never mix."""

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
    """What stands below each epoch's shuffle: its input, of which some may be read before the epoch begins."""

    name: ClassVar[str] = "held"
