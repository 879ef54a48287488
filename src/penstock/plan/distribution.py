"""Distribute: its input is computed by the workers of a service. This module also decides where the plan is cut.

A plan is a sequence of steps, beginning with the source. It is cut into three parts:

- the *base*, whose elements have indices, or are counted while reading: each worker iterates over it;
- the *middle*: maps, filters and batches, which a worker computes for a range of elements of the base;
- the *rest*, which needs the whole stream, and runs in the consumer's process.

This is `sharding="dynamic"`. With "static" and "off", the plan is not cut: each of a fixed number of workers iterates
over the whole plan, with "static" on its own shard of the elements. The consumer receives one element of each worker in
turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field, replace
from typing import Any, ClassVar, NamedTuple

from penstock.errors import InvalidArgumentError
from penstock.plan.batching import PaddedBatch, RaggedBatch, SparseBatch
from penstock.plan.counted import Seen, Unbatch
from penstock.plan.fused import FusedMap, MapAndBatch
from penstock.plan.indexing import GlobalShuffle
from penstock.plan.node import (
    UNKNOWN_CARDINALITY,
    JoinedNode,
    Node,
    UnaryNode,
    check_ints,
    function_name,
    rebuilt,
    total,
)
from penstock.plan.ops import Batch, Filter, FlatMap, Interleave, Map, Prefetch, Repeat, Shard, Shuffle
from penstock.plan.stateful import IgnoreErrors
from penstock.plan.storing import Cache, Snapshot
from penstock.store.memory import MemoryStore

BATCHES = (Batch, PaddedBatch, RaggedBatch, SparseBatch)
# steps whose input elements become many, or are accessed by index: they belong to the base
_LOWEST = (FlatMap, Interleave, GlobalShuffle)
SHARDINGS = ("dynamic", "static", "off")
# steps that may run on shards: the shards' results together are the results of the whole
_SHARED_BELOW = (
    *(Map, Filter, FlatMap, Interleave, Unbatch, *BATCHES, MapAndBatch, FusedMap),
    *(Shuffle, GlobalShuffle, Repeat, Prefetch, Cache, IgnoreErrors),
)


class Distribute(UnaryNode):
    """A step whose input is computed by the workers of `service`. Elements and order are those of the input.

    With `num_consumers`, it yields every `num_consumers`-th element, beginning with index `consumer_index`. `parts` is
    the number of workers if `sharding` is not "dynamic".
    """

    service: Any = field(compare=False, repr=False)  # see `physical.delivered.Service`
    num_consumers: int | None = None
    consumer_index: int | None = None
    sharding: str = "dynamic"
    parts: int | None = None

    name: ClassVar[str] = "distribute"
    deep: ClassVar[int] = 0  # random numbers after this step are the same as without it

    def __post_init__(self) -> None:
        self._check_sharding()
        count, index = self.num_consumers, self.consumer_index
        if (count is None) != (index is None):
            message = (
                "num_consumers and consumer_index belong together, "
                f"got num_consumers={count!r}, consumer_index={index!r}."
            )
            raise InvalidArgumentError(message, hint="Consumer number 0 of 2: num_consumers=2, consumer_index=0.")
        if count is None or index is None:
            return
        hint = "num_consumers is how many trainers step together, consumer_index the number of this one, from 0."
        check_ints(self, "num_consumers", least=1, hint=hint)
        check_ints(self, "consumer_index", least=0, hint=hint)
        if index >= count:
            message = f"consumer_index must be below num_consumers, got consumer_index={index}, num_consumers={count}."
            raise InvalidArgumentError(message, hint=hint)

    def _check_sharding(self) -> None:
        if self.sharding not in SHARDINGS:
            message = f"sharding must be one of {', '.join(map(repr, SHARDINGS))}, got sharding={self.sharding!r}."
            hint = "'dynamic' gives each element once, in the order of an iteration without a service."
            raise InvalidArgumentError(message, hint=hint)
        if self.sharding == "dynamic":
            return
        if self.parts is None:
            message = f"sharding={self.sharding!r} needs a number of workers, got workers='auto'."
            hint = "The order of the elements depends on this number: set it, for example workers=4."
            raise InvalidArgumentError(message, hint=hint)
        writing = next(filter(_writes, self.input.walk()), None)
        if writing is not None:
            message = f"Each worker would write the files of {writing.label}, with sharding={self.sharding!r}."
            raise InvalidArgumentError(message, hint=f"Call {writing.name} after distribute.")

    @property
    def label(self) -> str:
        consumer = "" if self.num_consumers is None else f", consumer {self.consumer_index} of {self.num_consumers}"
        sharding = "" if self.parts is None else f", {self.sharding}, {self.parts} parts"
        return f"distribute({self.service.name}{sharding}{consumer})"

    @property
    def cardinality(self) -> int:
        count = self.input.cardinality if self.parts is None else self.in_turn.cardinality
        if self.num_consumers is None or self.consumer_index is None or count < 0:
            return count
        return max(-(-(count - self.consumer_index) // self.num_consumers), 0)

    @property
    def in_turn(self) -> InTurn:
        """The elements of all parts in turn, without a service. Requires `parts`."""
        assert self.parts is not None
        plan = rebuilt(self.input, _here)
        shares = [plan] * self.parts
        if self.sharding == "static":
            shares = [_share(plan, self.parts, index) for index in range(self.parts)]
        return InTurn(parts=tuple(shares), where=self.where)


class InTurn(JoinedNode):
    """Yields an element of each part in turn; parts that have ended are left out.

    Each part is an iteration of its own.
    """

    name: ClassVar[str] = "in_turn"

    @property
    def spec(self) -> Any:
        return self.parts[0].spec

    @property
    def cardinality(self) -> int:
        return total([part.cardinality for part in self.parts])


def _share(plan: Node, count: int, index: int) -> Node:
    """Return the plan over every `count`-th element. The shard is placed where dropping elements is cheapest."""
    steps: list[UnaryNode] = []
    node = plan
    while isinstance(node, _SHARED_BELOW) and isinstance(node, UnaryNode):
        steps.append(node)
        node = node.input
    node = Shard(input=node, num_shards=count, index=index, where=None)
    for step in reversed(steps):
        if isinstance(step, Cache):  # the caches of two shards hold different elements
            step = replace(step, store=MemoryStore())
        node = step.with_inputs((node,))
    return node


class Remote(Node):
    """The part of a plan that workers run. It is created when a plan is lowered, never by users.

    `whole` is this part before the plan was cut, and `base` the steps that each worker iterates over. If one worker
    iterates over everything, `part` is the index of its shard. With `finish`, an element is the result of `finish` for
    a range.
    """

    whole: Node
    base: Node
    middle: tuple[UnaryNode, ...]  # the first is nearest to the source
    service: Any = field(compare=False, repr=False)
    consumers: int = 1  # number of consumers that take its elements in turn
    consumer: int = 0  # index of this consumer
    part: int | None = None
    # function that workers apply to a range, see `delivery.part`
    finish: Any = field(default=None, compare=False, repr=False)

    name: ClassVar[str] = "remote"

    @property
    def label(self) -> str:
        return " · ".join(step.label for step in self.middle) or self.base.label

    @property
    def spec(self) -> Any:
        return self.whole.spec if self.finish is None else None

    @property
    def cardinality(self) -> int:
        if self.finish is not None:
            return UNKNOWN_CARDINALITY
        count = self.whole.cardinality
        return count if count < 0 else max(-(-(count - self.consumer) // self.consumers), 0)

    @property
    def counted(self) -> bool:
        """True if the number of elements that a range yields is known before it is computed."""
        return not any(isinstance(step, (Filter, Unbatch)) for step in self.middle)

    @property
    def unit(self) -> int:
        """Number of elements of the base that must stay in one range: those of a batch."""
        return unit_of(self.middle)


def unit_of(middle: tuple[UnaryNode, ...]) -> int:
    """Return the `unit` of a `Remote` with these steps."""
    unit = 1
    for step in middle:
        if isinstance(step, (Filter, Unbatch)):
            break
        if isinstance(step, BATCHES):
            unit *= step.batch_size
    return unit


class PlanCut(NamedTuple):
    """The parts of a plan, each beginning with the step nearest to the source.

    `kept` is the reason why the middle ends.
    """

    base: Node
    middle: tuple[UnaryNode, ...]
    rest: tuple[UnaryNode, ...]
    whole: Node
    kept: str | None


def cut(plan: Node) -> PlanCut:
    """Cut a plan into the parts for workers and for the consumer.

    The steps next to the base run on workers, because every later step may need their results.
    """
    row = list(_row(plan))[::-1]
    row = [node for at, node in enumerate(row) if at == 0 or not isinstance(node, Prefetch)]
    base = _base(row)
    stop, kept = base + 1, None
    numbered = counted = True
    while stop < len(row):
        kept = _why_kept(row[stop], numbered=numbered, counted=counted)
        if kept is not None:
            break
        if isinstance(row[stop], (Filter, Unbatch)):
            numbered = counted = False
        stop += 1
    middle = tuple(_alone(node) for node in row[base + 1 : stop])
    rest = tuple(node for node in row[stop:] if isinstance(node, UnaryNode))
    return PlanCut(row[base], middle, rest, row[stop - 1], kept)


def _here(node: Node) -> Node | None:
    """Return the node without its service: a worker that computes a part has no workers itself."""
    if not isinstance(node, Distribute):
        return None
    plan = rebuilt(node.input, _here) if node.parts is None else node.in_turn
    if node.num_consumers is None or node.consumer_index is None:
        return plan
    return Shard(input=plan, num_shards=node.num_consumers, index=node.consumer_index, where=node.where)


def _row(plan: Node) -> Iterator[Node]:
    """Yield the steps with one input, the consumer's side first, unfused, and finally the node below them."""
    node = plan
    while True:
        if isinstance(node, MapAndBatch):
            node = replace(node.batch, input=FusedMap(input=node.input, steps=node.steps).unfused)
        elif isinstance(node, FusedMap):
            node = node.unfused
        yield node
        if not isinstance(node, UnaryNode):
            return
        node = node.input


def _base(row: list[Node]) -> int:
    """Return the index of the last step of the base."""
    lowest = max((at for at, node in enumerate(row) if isinstance(node, _LOWEST)), default=0)
    for at in range(lowest + 1, len(row)):
        if _writes(row[at]):
            return at - 1
        if isinstance(row[at], (Map, Filter)) and _why_kept(row[at], numbered=True, counted=True) is None:
            return at - 1
    for at in range(lowest + 1, len(row)):  # the plan has no function: computing batches is work, too
        if all(_why_kept(node, numbered=True, counted=True) is None for node in row[at:]):
            return at - 1
    return lowest


def _why_kept(node: Node, *, numbered: bool, counted: bool) -> str | None:
    """Return the reason why a step cannot be computed for a single range of elements, or None if it can."""
    if isinstance(node, (Map, Filter)):
        if getattr(node, "executor", None) == "inline":
            return f"{node.label} has executor='inline'"
        function = node.function if isinstance(node, Map) else node.predicate
        if not numbered:
            from penstock.trace.purity import may_draw

            if not may_draw(function):
                return None
            name = function_name(function)
            return f"{name} may use random numbers by index, and a filter or unbatch comes before {node.label}"
        return None
    if isinstance(node, BATCHES):
        return None if counted else f"{node.label} comes after a filter or unbatch"
    if isinstance(node, Unbatch):
        return None
    return f"{node.label} needs the whole stream"


def _alone(node: Node) -> UnaryNode:
    """Return a step whose input is replaced by a `Seen`."""
    assert isinstance(node, UnaryNode)
    return replace(node, input=Seen(element=node.input.spec, count=node.input.cardinality, where=None))


def _writes(node: Node) -> bool:
    """Return True if a step writes files. Two processes must not write the same files."""
    return isinstance(node, Snapshot) or (isinstance(node, IgnoreErrors) and node.quarantine is not None)


def taken_in_turn(node: Distribute, optimise: Callable[[Node], Node]) -> Node:
    """Return the plan in which each worker iterates over one part."""
    parts = [
        Remote(whole=part, base=optimise(part), middle=(), service=node.service, part=number, where=node.where)
        for number, part in enumerate(node.in_turn.parts)
    ]
    plan: Node = InTurn(parts=tuple(parts), where=node.where)
    if node.num_consumers is not None and node.consumer_index is not None:
        plan = Shard(input=plan, num_shards=node.num_consumers, index=node.consumer_index, where=node.where)
    return plan


def parted(node: Distribute) -> tuple[Node, PlanCut]:
    """Return the plan with its lower part computed by workers, and the parts."""
    found = cut(rebuilt(node.input, _here))
    if any(map(_writes, found.base.walk())):
        plan: Node = node.input
    else:
        part = Remote(whole=found.whole, base=found.base, middle=found.middle, service=node.service, where=node.where)
        # each consumer's worker then computes only the batches of this consumer
        alone = part.counted and part.unit > 1 and not found.rest
        if alone and node.num_consumers is not None and node.consumer_index is not None:
            return replace(part, consumers=node.num_consumers, consumer=node.consumer_index), found
        plan = part
        for step in found.rest:
            plan = replace(step, input=plan)
    if node.num_consumers is not None and node.consumer_index is not None:
        plan = Shard(input=plan, num_shards=node.num_consumers, index=node.consumer_index, where=node.where)
    return plan, found
