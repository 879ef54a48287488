"""`IgnoreErrorsStage` drops failed elements and counts them.

The stage writes failures to a file on request, stops ignoring above a limit, and never ignores a programming error.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path

from penstock.block.block import Block
from penstock.errors import (
    Context,
    FailedPreconditionError,
    PenstockError,
    context_of,
    is_mistake,
    raise_as_failure,
    said,
    writing_to,
)
from penstock.physical.stage import Stage, UnaryStage
from penstock.plan.stateful import IgnoreErrors


def write_line(path: str, error: Exception) -> None:
    """Append a line to the file. The file and its folders are created if they are missing.

    Each line is written in one call, so that iterations may share a file, and a killed process leaves complete lines.
    """
    line = json.dumps(described(error), ensure_ascii=False) + "\n"
    try:
        with writing_to(path), Path(path).open("ab", buffering=0) as file:
            file.write(line.encode("utf-8", "backslashreplace"))
    except FileNotFoundError:
        Path(path).parent.mkdir(parents=True)
        write_line(path, error)


def described(error: Exception) -> dict[str, str | int | None]:
    """Return the description of a failed element: stage, line of user code, element, file, offset, error."""
    context = _context(error)
    return {
        "stage": context.stage,
        "line": context.where,
        "element": context.element,
        "file": context.file,
        "offset": context.offset,
        "error": f"{type(error).__name__}: {said(error)}",
    }


def _context(error: Exception) -> Context:
    return error.context if isinstance(error, PenstockError) else context_of(error) or Context()


_LOG = logging.getLogger("penstock.physical")
RATE_OVER = 1000  # elements; for fewer, a rate is not meaningful and is checked at the end of the input


class IgnoreErrorsStage(UnaryStage):
    """Yields the elements that did not fail.

    A failure above `max_errors` or `max_rate` is replaced by an error of this stage.
    """

    moving = ("_seen", "_ignored", "_ended")

    def __init__(self, upstream: Stage, node: IgnoreErrors) -> None:
        super().__init__(upstream, node)
        self._node = node
        self._seen = 0  # number of elements and failures
        self._ignored = 0
        self._ended = False

    def next(self, want: int) -> Block | None:
        while not self._ended:
            try:
                block = self._upstream.next(want)
            except Exception as error:
                self._leave_out(error)
                continue
            if block is not None:
                self._seen += block.size
                return block
            self._end()
        return None

    def _leave_out(self, error: Exception) -> None:
        element = _context(error).element
        first = self._seen == self._ignored and not (self._seen if element is None else element)
        self._seen += 1
        if is_mistake(error, first=first):  # a shuffle may deliver the failure of element 0 late
            raise error
        self._ignored += 1
        self._node.tally.add()
        if self._node.quarantine is not None:
            try:
                write_line(self._node.quarantine, error)
            except OSError as raised:  # the dropped element is recorded nowhere, so it counts as failed
                raise_as_failure(raised, Context(self.label, self.where))
        if self._node.log_warning:
            _LOG.warning("%s: dropped element %s: %s", self.label, self._seen - 1, described(error)["error"])
        if self._too_many(max(self._seen, RATE_OVER)):
            raise self._limit(error) from error

    def _end(self) -> None:
        self._ended = True
        if self._ignored:
            _LOG.warning("%s: dropped %s of %s elements", self.label, self._ignored, self._seen)
        if self._node.max_rate is not None and self._ignored > self._node.max_rate * self._seen:
            raise self._limit(None)

    def _too_many(self, of: int) -> bool:
        most, rate = self._node.max_errors, self._node.max_rate
        return (most is not None and self._ignored > most) or (rate is not None and self._ignored > rate * of)

    def _limit(self, last: Exception | None) -> FailedPreconditionError:
        most, rate = self._node.max_errors, self._node.max_rate
        limits = [f"{name}={value}" for name, value in (("max_errors", most), ("max_rate", rate)) if value is not None]
        message = f"{self._ignored} of {self._seen} elements failed, more than {' and '.join(limits)} allow."
        if last is not None:
            message += f" The last: {described(last)['error']}"
        hint = "Check the failed elements (quarantine= records them), or raise the limit."
        if rate is not None:
            hint += f" Before the end, the rate is computed over at least {RATE_OVER} elements."
        return FailedPreconditionError(message, hint=hint, context=Context(self.label, self.where))
