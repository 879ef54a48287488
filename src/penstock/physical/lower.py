"""Lowering: creates a stage for each node of a plan. The modules of `physical.builders` register here.

`Service` computes the elements of a part of a plan in other processes. Package `delivery` implements it.
"""

from __future__ import annotations

import importlib
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from penstock.block.leaf import NESTED
from penstock.errors import Context, InvalidTypeError, called_for, raise_as_failure
from penstock.keys import fold
from penstock.options import Options
from penstock.physical.executor import Executor
from penstock.physical.filter_transform import FilterTransform
from penstock.physical.key_order import key_order
from penstock.physical.memory import UNCOUNTED, Memory
from penstock.physical.stage import Around, Stage
from penstock.physical.transform import FunctionTransform, MapTransform
from penstock.plan.distribution import Remote
from penstock.plan.fused import FusedMap
from penstock.plan.inputs import Scan
from penstock.plan.node import UNKNOWN_CARDINALITY, Node
from penstock.plan.node_base import Answers, answered, asking, question
from penstock.plan.ops import Batch, Filter, FlatMap, Interleave, Map, Prefetch
from penstock.plan.seeding import runs_here
from penstock.plan.visible import acts

if TYPE_CHECKING:
    from penstock.physical.inner_plans import Filled


def transforms_of(
    node: Any, steps: Sequence[Map | Filter], options: Options, *, alike: bool = False
) -> list[FunctionTransform]:
    """Return the transforms of a node's maps and filters. With `alike`, they serve equal plans of any size."""
    found, batches = [], _batches(node.input, alike=alike)
    for step in steps:
        found.append(transform_of(step, options, batches))
        batches = batches if isinstance(step, Map) else None  # a filter drops some elements
    return found


def transform_of(
    step: Map | Filter, options: Options, batches: tuple[int, int | None] | None = None
) -> FunctionTransform:
    """Return the transform of a step. Its random key depends on the data set's seed and the step's place."""
    settings = options.experimental_optimization
    vectorise = step.vectorise and settings.map_vectorization.enabled
    key = fold(options.seed, step.salt)
    kind, function = (MapTransform, step.function) if isinstance(step, Map) else (FilterTransform, step.predicate)
    made: FunctionTransform = kind(
        function, step.label, step.where, vectorise=vectorise, key=key, batches=batches, any_rank=step.any_rank
    )
    return made


def _batches(plan: Node, *, alike: bool) -> tuple[int, int | None] | None:
    """Return (batch size, number of elements before batching) for a plan of batches, or None for other plans."""
    while isinstance(plan, Map | Prefetch) or (isinstance(plan, FusedMap) and plan.kinds == {Map}):
        plan = plan.input
    if not isinstance(plan, Batch):
        return None
    count = UNKNOWN_CARDINALITY if alike else plan.input.cardinality
    return plan.batch_size, None if count == UNKNOWN_CARDINALITY else sys.maxsize if count < 0 else count


Wait = Callable[[float], object]


def _pause(seconds: float, wait: Wait = time.sleep) -> None:
    wait(seconds)


class Pause(Protocol):
    """Waits for an external event, for at most `seconds`. `wait` performs the waiting and may return sooner."""

    def __call__(self, seconds: float, wait: Wait = ..., /) -> None: ...


class StageObserver(Protocol):
    """Receives every stage that is created."""

    def __call__(self, node: Node, stage: Stage) -> Around | None:
        """Receive a stage. Return a wrapper for its `next`, or None: see `Stage.observe`."""


@dataclass(frozen=True, slots=True)
class Lowering:
    """The context for creating stages.

    `epoch` distinguishes iterations over the same plan: it is part of the key of every random step that changes between
    epochs. `depth` is the number of segments between this node and the consumer. `optimise` rewrites the plan of an
    inner data set. `dataset` creates a data set from a plan, for stages whose elements are data sets. With
    `provenance`, sources number their elements. `meter` and `memory` receive every stage before it runs, and may wrap
    its `next` (`Stage.observe`): stages are observed here only. `memory` also counts the bytes of stages. `pause` waits
    for external events and raises an error if the run is closed. `answers` cache facts about the run's plan, parts of
    which are lowered later. If the plan belongs to another data set of the same form, `filled` contains the parts of
    this one.
    """

    options: Options
    executor: Executor
    epoch: int = 0
    depth: int = 0
    optimise: Callable[[Node, Options], Node] = lambda node, options: node
    dataset: Callable[[Node], Any] = lambda node: node
    provenance: bool = False
    meter: StageObserver | None = None
    memory: Memory = UNCOUNTED
    pause: Pause = _pause
    answers: Answers | None = None
    filled: Filled | None = None

    def deeper(self) -> Lowering:
        return replace(self, depth=self.depth + 1)

    def beside(self) -> Lowering:
        """Return the context for elements computed outside of the run, by the caller.

        They are not counted; it can be pickled.
        """
        executor = self.executor.inline()
        return replace(self, executor=executor, depth=0, meter=None, memory=UNCOUNTED, pause=_pause, answers=None)

    def at(self, epoch: int, filled: Filled | None = None, answers: Answers | None = None) -> Lowering:
        """Return the same context for another epoch."""
        return replace(self, epoch=epoch, answers=answers or self.answers, filled=filled or self.filled)

    def inside(self, plan: Node, number: int, filled: Filled | None = None) -> Lowering:
        """Return the context for the plan created from element `number`.

        It has own `answers`: those of the run would keep it.
        """
        if type(plan) is Scan:  # a Scan uses no random numbers
            return self
        epoch = fold(self.epoch, number) if number else self.epoch
        return self.at(epoch, filled, None if filled is not None else Answers())

    def executor_of(self, node: Node) -> Executor:
        """Return the executor of a step.

        It is inline if the consumer has to call functions of this or an earlier step.
        """
        return self.executor.inline() if answered(node, runs_here(self.executor.pinned)) else self.executor

    def transforms(self, node: Node, steps: tuple[Any, ...]) -> Sequence[FunctionTransform]:
        """Return the transforms of a node's maps and filters."""
        if self.filled is not None:
            return self.filled.transforms(node, steps)
        return transforms_of(node, steps, self.options)

    def turn(self, count: int, index: int) -> Lowering:
        """Return the context for repetition `index` of `count` (negative: infinite).

        Each repetition is its own epoch.
        """
        if count > 0:
            return self.at(self.epoch * count + index)
        return self.at(fold(self.epoch, index) if self.epoch else index)

    def order_key(self, node: Any) -> int:
        """Return the key of a random order, from the seed of the node or of the data set. It may differ per epoch."""
        key = fold(self.options.seed, node.salt) if node.seed is None else fold(node.seed, 0)
        return fold(key, self.epoch) if node.reshuffle_each_iteration else key

    def ordered(self, deterministic: bool | None) -> bool:  # noqa: FBT001 - a node's own setting
        return self.options.deterministic if deterministic is None else deterministic


Builder = Callable[[Any, Lowering], Stage]
_BUILDERS: dict[type[Node], Builder] = {}


def register(kind: type[Node]) -> Callable[[Builder], Builder]:
    """Register the builder of a node type: a function from the node and a Lowering to a Stage."""

    def add(builder: Builder) -> Builder:
        _BUILDERS[kind] = builder
        return builder

    return add


def lower(node: Node, lowering: Lowering, build: Builder | None = None) -> Stage:
    """Create the stage of a plan. `build` replaces the registered builder of its last step."""
    if lowering.answers is None or lowering.filled is not None or not node.inputs or asking():
        return _lowered(node, lowering, build)  # a plan that was lowered before has no expensive properties left
    with question(lowering.answers):
        return _lowered(node, lowering, build)


def _lowered(node: Node, lowering: Lowering, build: Builder | None) -> Stage:
    if type(node) not in _BUILDERS:  # the builders of penstock's own steps are imported with the first plan
        importlib.import_module("penstock.physical.builders")
    if lowering.filled is not None:
        node = lowering.filled.of(node)
    stage = (build or _BUILDERS[type(node)])(node, lowering)
    stage.acts = stage.acts or acts(node)
    if not stage.is_observed:  # a step without effect may return the stage of its input, which is already observed
        observers = [lowering.memory.observer(node, stage)]
        if lowering.meter is not None:
            observers.append(lowering.meter(node, stage))
        stage.watched = any(observer is not None for observer in observers)
        observers.insert(0, key_order(node) if build is None else None)
        if found := [observer for observer in observers if observer is not None]:
            stage.observe(found)
    return stage


def opener(node: FlatMap | Interleave) -> Callable[[Any], Node]:
    """Return a function that returns the plan that a step's function creates from an element."""

    def opened(element: Any) -> Node:
        try:
            given = element if type(element) is tuple else (element,)
            dataset = called_for(node.where, node.function, *given)
        except Exception as raised:
            raise_as_failure(raised, Context())
        plan = getattr(dataset, NESTED, None)
        if not isinstance(plan, Node):
            message = f"The function of {node.name} must return a Dataset, got {type(dataset).__name__}."
            raise InvalidTypeError(message, hint="Wrap values with Dataset.from_tensors or from_tensor_slices.")
        return plan

    return opened


class Service(ABC):
    """The workers that a plan is distributed to. It is a small frozen part of a plan and is pickled with it."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Name for labels."""

    @abstractmethod
    def stage(self, node: Remote, lowering: Lowering) -> Stage:
        """Return the stage that yields the elements of this part in order."""
