"""The failures of elements in worker processes or at time limits, and the error that ends a run."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.block.block import Block
from penstock.block.numbers import Numbers
from penstock.errors import (
    Context,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    PenstockError,
    said,
)
from penstock.physical.stretch import Fatal, Stretch, failure, fatal
from penstock.physical.transform import Transforms
from penstock.runtime.tracebacks import add_lines

_SIGNALS = "A negative status is a signal: -9 is what the system sends when memory runs out, -11 a crash in C code."


class Unworkable(Fatal):
    """Worker processes cannot do this work at all: no process starts, or no process can load the functions."""

    error: PenstockError

    @property
    def reason(self) -> str:
        """The reason in one line."""
        first, *more = self.error.message.splitlines()
        return f"{first} {more[-1]}" if more else first


def in_place(error: PenstockError, transforms: Transforms, block: Block, numbers: Numbers) -> Stretch:
    """Return the error as the failure of the one element of `block`."""
    error.context = Context(labels(transforms), transforms[-1].where, numbers.at(0), *block.origin_at(0))
    return failure(error)


def labels(transforms: Transforms) -> str:
    """Return the joint label of the transforms."""
    return " · ".join(transform.label for transform in transforms)


def too_late(transforms: Transforms, seconds: float) -> PenstockError:
    message = f"{labels(transforms)} did not finish with one element within element_timeout={seconds:g} seconds."
    hint = (
        "The function waits for something that does not come, or is slow here: "
        "give what it waits for a limit of its own, or raise Options.element_timeout."
    )
    return DeadlineExceededError(message, hint=hint)


def poison(transforms: Transforms, codes: Sequence[int | None]) -> PenstockError:
    """Return the error of an element that ended two processes."""
    message = f"Worker processes ended while they ran {labels(transforms)} (exit statuses {codes[0]} and {codes[1]})."
    return FailedPreconditionError(message, hint=_SIGNALS)


def mistaken(error: str, text: str, label: str, where: str | None) -> Fatal:
    """Return the error for transforms that failed by themselves in a worker, not for an element."""
    found = fatal(RuntimeError(error), label, where)
    found.error.__cause__ = None
    add_lines(found.error, text)
    return found


def unsendable(error: Exception) -> PenstockError:
    message = f"The element cannot be sent to a worker process: {said(error)}"
    hint = "Processes take arrays, numbers, byte strings and what can be pickled: run this step in threads."
    return InvalidArgumentError(message, hint=hint)


def not_started(error: Exception, code: int | None) -> PenstockError:
    status = "" if code is None else f" (exit status {code})"
    message = f"A worker process could not be started{status}: {type(error).__name__} {error}".rstrip()
    hint = "What it printed says more. Without processes the same data set runs in threads."
    if code is not None and code < 0:
        hint = f"{_SIGNALS} Without processes the same data set runs in threads."
    return FailedPreconditionError(message, hint=hint)
