"""The outcome of a pipeline: its elements and its error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import tensorflow as tf

import penstock as ps
from _parity.kit import Kit

MOST = 300  # elements that are compared


@dataclass(frozen=True)
class Outcome:
    """The elements before the first error, and that error."""

    elements: tuple[Any, ...]
    error: BaseException | None = None
    moment: str = ""  # construction or iteration

    @property
    def kind(self) -> str:
        return "" if self.error is None else kind_of(self.error)

    @property
    def complete(self) -> bool:
        return self.error is None and len(self.elements) < MOST

    def __repr__(self) -> str:
        failed = (
            f", then at {self.moment} {type(self.error).__name__}: {str(self.error)[-250:]}"
            if self.error is not None
            else ""
        )
        return f"{list(self.elements)!r:.250}{failed}"


def outcome_of(kit: Kit, text: str, **known: Any) -> Outcome:
    """Build and run the pipeline."""
    return outcome_of_call(lambda: kit.build(text, **known))


def outcome_of_call(build: Callable[[], Any]) -> Outcome:
    elements: list[Any] = []
    moment = "construction"
    try:
        iterator = iter(build())
        moment = "iteration"
        for element in islice(iterator, MOST):
            elements.append(tf.nest.map_structure(_value, element))  # noqa: PERF401  # keeps those before an error
    except Exception as error:
        return Outcome(tuple(elements), error, moment)
    return Outcome(tuple(elements))


def _value(part: Any) -> Any:
    return part.numpy() if isinstance(part, tf.Tensor) else part


# The families of errors by the names in tf.errors. penstock has the same classes.
FAMILIES: tuple[tuple[type[BaseException], str], ...] = (
    (ps.errors.DataLossError, "DataLoss"),
    (ps.errors.OutOfRangeError, "OutOfRange"),
    (ps.errors.NotFoundError, "NotFound"),
    (ps.errors.AlreadyExistsError, "AlreadyExists"),
    (ps.errors.FailedPreconditionError, "FailedPrecondition"),
    (ps.errors.UnimplementedError, "Unimplemented"),
    (tf.errors.DataLossError, "DataLoss"),
    (tf.errors.OutOfRangeError, "OutOfRange"),
    (tf.errors.NotFoundError, "NotFound"),
    (tf.errors.AlreadyExistsError, "AlreadyExists"),
    (tf.errors.FailedPreconditionError, "FailedPrecondition"),
    (tf.errors.UnimplementedError, "Unimplemented"),
    (tf.errors.InvalidArgumentError, "InvalidArgument"),
    (TypeError, "TypeError"),
    (ValueError, "InvalidArgument"),
)


def kind_of(error: BaseException) -> str:
    """Return the family of an error. A ValueError and tf.errors.InvalidArgumentError have the same family."""
    return next((name for family, name in FAMILIES if isinstance(error, family)), type(error).__name__)
