"""Steps with state between elements: a user's state, the values seen so far, the number of elements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any, ClassVar

import numpy as np

from penstock.block.scan_state import InitialState
from penstock.block.spec import TensorSpec
from penstock.block.structure import flatten
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.forked import new_lock
from penstock.io.storage import as_path, is_url
from penstock.plan.node import (
    INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY,
    Node,
    UnaryNode,
    UncountedNode,
    check_function,
    check_ints,
    check_seed,
)


class Tally:
    """A counter that belongs to a step of a plan. Thread-safe; a copy in another process counts separately."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._count = 0

    @property
    def count(self) -> int:
        return self._count

    def add(self) -> None:
        with self._lock:
            self._count += 1

    def __reduce__(self) -> tuple[type[Tally], tuple[()]]:
        return Tally, ()


class StatefulMap(UnaryNode):
    """Calls `function(state, element)` for every element in turn. It returns the next state and an output element."""

    initial_state: Any  # a nest of leaves; converted to an InitialState
    function: Callable[[Any, Any], Any]

    name: ClassVar[str] = "scan"
    shown: ClassVar[str] = "function"

    def __post_init__(self) -> None:
        check_function("scan_func", self.function, "scan")
        if not isinstance(self.initial_state, InitialState):
            self.settle(initial_state=InitialState.of(self.initial_state))

    @property
    def spec(self) -> Any:
        """Spec of the output, or None unless the function is known to keep the shapes of the state."""
        if self.input.spec is None:
            return None
        from penstock.trace.traced import traced_spec  # tracing comes with the first function

        state = self.initial_state.spec
        pair = traced_spec(self.function, (state, self.input.spec))
        return pair[1] if isinstance(pair, tuple) and len(pair) == 2 and pair[0] == state else None


class TakeWhile(UncountedNode):
    """Yields the elements before the first one for which `predicate(element)` is false."""

    predicate: Callable[..., Any]

    name: ClassVar[str] = "take_while"
    shown: ClassVar[str] = "predicate"

    def __post_init__(self) -> None:
        check_function("predicate", self.predicate, "take_while")


class Unique(UnaryNode):
    """Yields every value once, at its first occurrence."""

    name: ClassVar[str] = "unique"

    def __post_init__(self) -> None:
        if self.input.spec is not None:
            self.check(flatten(self.input.spec)[0])

    @staticmethod
    def check(specs: list[Any]) -> None:
        """Raise an error for elements that cannot be compared."""
        if len(specs) != 1:
            message = f"unique compares elements of one component, got {len(specs)} components."
            raise InvalidArgumentError(message, hint="Choose the component with map() first.")
        if not isinstance(specs[0], TensorSpec):
            message = f"unique compares numbers, text and arrays, got {specs[0]!r}."
            raise InvalidTypeError(message, hint="Make them arrays with map() first, for example by to_dense().")

    @property
    def cardinality(self) -> int:
        count = self.input.cardinality
        return count if count in (0, 1) else UNKNOWN_CARDINALITY


class AssertCardinality(UnaryNode):
    """Declares that the input has `expected_cardinality` elements. An iteration with another number raises an error.

    `file` is the file that the number was read from. With it, the error is DataLossError.
    """

    expected_cardinality: int
    file: str | None = None

    name: ClassVar[str] = "assert_cardinality"

    def __post_init__(self) -> None:
        hint = "Give the number of elements, or penstock.INFINITE_CARDINALITY."
        check_ints(self, "expected_cardinality", least=0, also=(INFINITE_CARDINALITY,), hint=hint)

    @property
    def label(self) -> str:
        count = self.expected_cardinality
        return f"assert_cardinality({'infinite' if count == INFINITE_CARDINALITY else count})"

    @property
    def cardinality(self) -> int:
        return self.expected_cardinality


class IgnoreErrors(UncountedNode):
    """Drops failed elements and counts them. Their number may be limited, and they may be recorded in a file."""

    log_warning: bool = False
    max_errors: int | None = None
    max_rate: float | None = None
    quarantine: str | None = None
    tally: Tally = field(default_factory=Tally, compare=False, repr=False)

    name: ClassVar[str] = "ignore_errors"

    def __post_init__(self) -> None:
        hint = "Give the number of failed elements that is still acceptable, or leave it out."
        if self.max_errors is not None:
            check_ints(self, "max_errors", least=0, hint=hint)
        if self.max_rate is not None:
            self.settle(max_rate=_rate(self.max_rate))
        if self.quarantine is not None:
            self.settle(quarantine=_local_file(self.quarantine))


def _rate(value: Any) -> float:
    hint = "Give the part of the elements that may fail, for example 0.01 for one in a hundred."
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        message = f"max_rate must be a number, got max_rate={value!r} ({type(value).__name__})."
        raise InvalidTypeError(message, hint=hint)
    if not 0 <= value <= 1:
        message = f"max_rate must be between 0 and 1, got max_rate={value}."
        raise InvalidArgumentError(message, hint=hint)
    return float(value)


def _local_file(path: Any) -> str:
    name = as_path(path)
    if is_url(name):
        message = f"quarantine must be a local file, got quarantine={name!r}."
        raise InvalidArgumentError(message, hint="Lines are added to it one by one, which object stores cannot do.")
    return name


class Random(Node):
    """Yields uniform random integers without end: equal in every iteration unless `rerandomize` is True."""

    seed: int | None = None
    rerandomize: bool = False

    name: ClassVar[str] = "random"

    def __post_init__(self) -> None:
        check_seed(self)

    @property
    def label(self) -> str:
        return f"random({'' if self.seed is None else self.seed})"

    @property
    def spec(self) -> TensorSpec:
        return TensorSpec((), np.int64)

    @property
    def cardinality(self) -> int:
        return INFINITE_CARDINALITY
