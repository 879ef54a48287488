"""Steps with one input: each class describes its results and contains no code that runs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np

from penstock.block.spec import LeafSpec, TensorSpec
from penstock.block.structure import Structure
from penstock.errors import InvalidArgumentError
from penstock.plan.node import (
    AUTOTUNE,
    INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY,
    LeafwiseNode,
    Node,
    UnaryNode,
    UncountedNode,
    check_count,
    check_executor,
    check_function,
    check_ints,
    check_parallel,
    check_seed,
    function_name,
    in_batches,
    limit,
    of_some,
    settle_salt_of_function,
)


class Map(UnaryNode):
    """Yields `function(element)` for every element; plain tuples are unpacked into arguments.

    `executor` selects where the function is called. It changes neither results nor fingerprints. `salt` is as in
    `Shuffle`; the random numbers of the function depend on it.
    """

    function: Callable[..., Any]
    num_parallel_calls: int | None = None
    deterministic: bool | None = None
    executor: str = "auto"
    vectorise: bool = True  # if True, run the function on whole Blocks where the result is known to be equal
    salt: int = -1

    name: ClassVar[str] = "map"
    shown: ClassVar[str] = "function"

    def __post_init__(self) -> None:
        check_function("map_func", self.function, "map")
        settle_salt_of_function(self)
        check_parallel(self)
        check_executor(self.executor)

    def with_inputs(self, inputs: tuple[Node, ...]) -> Self:
        return self.over(input=inputs[0])  # valid for any input

    @property
    def spec(self) -> Any:
        from penstock.trace.traced import traced_spec  # tracing comes with the first function

        return traced_spec(self.function, self.input.spec)


class Filter(UncountedNode):
    """Yields the elements for which `predicate(element)` is true. `salt` is as in `Map`."""

    predicate: Callable[..., Any]
    vectorise: bool = True
    salt: int = -1

    name: ClassVar[str] = "filter"
    shown: ClassVar[str] = "predicate"

    def __post_init__(self) -> None:
        settle_salt_of_function(self)
        check_function("predicate", self.predicate, "filter")

    def with_inputs(self, inputs: tuple[Node, ...]) -> Self:
        return self.over(input=inputs[0])  # valid for any input


class BatchNode(LeafwiseNode):
    """Base of steps that join `batch_size` neighbours into one element; the subclass defines how."""

    batch_size: int
    drop_remainder: bool = False

    shown: ClassVar[str] = "batch_size"
    hint: ClassVar[str] = "batch_size is the number of elements in a batch."

    def __post_init__(self) -> None:
        check_ints(self, "batch_size", least=1, hint=self.hint)

    @property
    def cardinality(self) -> int:
        return in_batches(self.input.cardinality, self.batch_size, drop_remainder=self.drop_remainder)

    @property
    def size(self) -> int | None:
        """The extent of every batch, or None if the last batch may be smaller."""
        return self.batch_size if self.drop_remainder or self.input.cardinality == INFINITE_CARDINALITY else None


class Batch(BatchNode):
    """Stacks `batch_size` neighbours into one element."""

    num_parallel_calls: int | None = None
    deterministic: bool | None = None

    name: ClassVar[str] = "batch"
    hint: ClassVar[str] = "To keep elements single, leave out .batch()."

    def __post_init__(self) -> None:
        super().__post_init__()
        check_parallel(self)

    def specs(self, leaves: list[LeafSpec], structure: Structure) -> Any:
        return structure.build([leaf.batched(self.size) for leaf in leaves])


class Chosen(int):
    """A number that AUTOTUNE chose from the plan alone, and the reason."""

    reason: str

    def __new__(cls, number: int, reason: str = "") -> Self:
        found = super().__new__(cls, number)
        found.reason = reason
        return found


class Shuffle(UnaryNode):
    """Yields a random element of a buffer of `buffer_size` elements, again and again.

    If the user passed AUTOTUNE, `buffer_size` is the resulting `Chosen` number.

    `salt` distinguishes two unseeded shuffles of one plan. It is fixed when the step is created, so that rewrites,
    which move steps, never change an order.
    """

    buffer_size: int
    seed: int | None = None
    reshuffle_each_iteration: bool = True
    salt: int = -1

    name: ClassVar[str] = "shuffle"

    def __post_init__(self) -> None:
        hint = (
            "Give a number of elements, penstock.AUTOTUNE or penstock.ALL; to leave elements as they come, leave out "
            ".shuffle()."
        )
        if not isinstance(self.buffer_size, Chosen):
            check_ints(self, "buffer_size", least=1, hint=hint)
        check_seed(self)

    @property
    def label(self) -> str:
        return f"shuffle({'AUTOTUNE: ' if isinstance(self.buffer_size, Chosen) else ''}{self.buffer_size})"


class Repeat(UnaryNode):
    """Yields the input `count` times; -1 means forever."""

    count: int = -1

    name: ClassVar[str] = "repeat"

    def __post_init__(self) -> None:
        if self.count is None:
            self.settle(count=-1)
        check_count(self, "Give the number of epochs, or leave it out to repeat for ever.")

    @property
    def label(self) -> str:
        return f"repeat({'' if self.count < 0 else self.count})"

    @property
    def cardinality(self) -> int:
        count = self.input.cardinality
        if self.count == 0 or count == 0:
            return 0
        if self.count < 0 or count == INFINITE_CARDINALITY:
            return INFINITE_CARDINALITY
        return count if count == UNKNOWN_CARDINALITY else count * self.count


class Take(UnaryNode):
    """Yields the first `count` elements; -1 means all."""

    count: int

    name: ClassVar[str] = "take"
    shown: ClassVar[str] = "count"

    def __post_init__(self) -> None:
        check_count(self, "Give the number of elements to keep, or -1 for all.")

    @property
    def cardinality(self) -> int:
        return self.input.cardinality if self.count < 0 else limit(self.input.cardinality, self.count)


class Skip(UnaryNode):
    """Yields all but the first `count` elements; -1 means that none are left."""

    count: int

    name: ClassVar[str] = "skip"
    shown: ClassVar[str] = "count"

    def __post_init__(self) -> None:
        check_count(self, "Give the number of elements to leave out, or -1 for all of them.")

    @property
    def cardinality(self) -> int:
        if self.count < 0:
            return 0
        count = self.input.cardinality
        return count if count < 0 else max(count - self.count, 0)


class Shard(UnaryNode):
    """Yields every `num_shards`-th element, beginning with index `index`."""

    num_shards: int
    index: int

    name: ClassVar[str] = "shard"

    def __post_init__(self) -> None:
        hint = "num_shards is the number of consumers, index the number of this one, counted from 0."
        check_ints(self, "num_shards", least=1, hint=hint)
        check_ints(self, "index", least=0, hint=hint)
        if self.index >= self.num_shards:
            message = f"index must be below num_shards, got index={self.index}, num_shards={self.num_shards}."
            raise InvalidArgumentError(message, hint=hint)

    @property
    def label(self) -> str:
        return f"shard({self.num_shards}, {self.index})"

    @property
    def share(self) -> tuple[int, ...]:
        return self.num_shards, self.index

    @property
    def cardinality(self) -> int:
        count = self.input.cardinality
        return count if count < 0 else max(-(-(count - self.index) // self.num_shards), 0)


class Enumerate(UnaryNode):
    """Yields `(number, element)` for every element."""

    start: int = 0

    name: ClassVar[str] = "enumerate"

    def __post_init__(self) -> None:
        check_ints(self, "start", least=-(2**63), hint="The first number.")

    @property
    def label(self) -> str:
        return f"enumerate({self.start or ''})"

    @property
    def spec(self) -> Any:
        return None if self.input.spec is None else (TensorSpec((), np.int64), self.input.spec)


class _OpeningNode(UnaryNode):
    """A step whose function creates data sets, with elements of unknown spec."""

    function: Callable[..., Any]

    makes_data_sets: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_function("map_func", self.function, self.name)

    @property
    def spec(self) -> Any:
        return None


class FlatMap(UncountedNode, _OpeningNode):
    """Yields the elements of the data sets that `function(element)` returns, one data set after the other."""

    name: ClassVar[str] = "flat_map"
    shown: ClassVar[str] = "function"


class Interleave(_OpeningNode):
    """Yields `block_length` elements from each of `cycle_length` open data sets in turn.

    `function(element)` creates them.
    """

    cycle_length: int
    block_length: int = 1
    num_parallel_calls: int | None = None
    deterministic: bool | None = None

    name: ClassVar[str] = "interleave"

    def __post_init__(self) -> None:
        super().__post_init__()
        hint = "cycle_length is how many inputs are open at a time, block_length how many elements each gives in turn."
        check_ints(self, "cycle_length", "block_length", least=1, hint=hint)
        check_parallel(self)

    @property
    def label(self) -> str:
        return f"interleave({function_name(self.function)}, cycle_length={self.cycle_length})"

    @property
    def cardinality(self) -> int:
        return of_some(self.input.cardinality)


class Prefetch(UnaryNode):
    """Computes up to `buffer_size` elements ahead of the consumer; AUTOTUNE limits only their bytes."""

    buffer_size: int

    name: ClassVar[str] = "prefetch"
    changes_elements: ClassVar[bool] = False

    def __post_init__(self) -> None:
        hint = "Give the number of elements (batches, after .batch()) to hold ready, or penstock.AUTOTUNE."
        if self.buffer_size is None:
            self.settle(buffer_size=AUTOTUNE)
        check_ints(self, "buffer_size", least=0, also=(AUTOTUNE,), hint=hint)

    @property
    def label(self) -> str:
        return f"prefetch({'AUTOTUNE' if self.buffer_size == AUTOTUNE else self.buffer_size})"
