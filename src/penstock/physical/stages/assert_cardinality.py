"""AssertCardinality: hands elements on and holds them to a number known beforehand."""

from __future__ import annotations

from penstock.block.block import Block
from penstock.errors import Context, DataLossError, FailedPreconditionError, PenstockError
from penstock.physical.stage import Cursor, Stage, State
from penstock.plan.node import INFINITE_CARDINALITY


class AssertCardinality(Stage):
    """The first `expected` elements; an error in the place of one too many, or behind too few, and then the end."""

    def __init__(self, upstream: Stage, expected: int, file: str | None, label: str, where: str | None) -> None:
        super().__init__(label, (upstream,), where)
        self._cursor = Cursor(upstream)
        self._expected = expected
        self._file = file
        self._seen = 0
        self._failed = False

    def next(self, want: int) -> Block | None:
        if self._failed:
            return None
        left = want if self._expected == INFINITE_CARDINALITY else self._expected - self._seen
        try:
            more = self._cursor.fill(min(want, left) or 1)
        except Exception as error:
            if not left:
                raise self._error() from error
            self._seen += 1
            raise
        if not more:
            if self._seen == self._expected:
                return None
            raise self._error(self._seen)
        if not left:
            raise self._error()
        block = self._cursor.take_available(left)
        self._seen += block.size
        return block

    def _error(self, found: int | None = None) -> PenstockError:
        """Fewer were found, or more."""
        self._failed = True
        return other_cardinality(self._expected, found, self._file, Context(self.label, self.where))

    def state(self) -> State:
        return [self._cursor.state(), self._seen, self._failed]

    def restore(self, state: State) -> None:
        below, self._seen, self._failed = state
        self._cursor.restore(below)

    def close(self) -> None:
        self._cursor.close()


def other_cardinality(expected: int, found: int | None, file: str | None, context: Context) -> PenstockError:
    """The error of another number than was expected: `found`, which is lower, or None for a higher one."""
    wanted = "elements without end" if expected == INFINITE_CARDINALITY else _elements(expected)
    message = f"Expected {wanted}, found {'more' if found is None else 'only ' + _elements(found)}."
    if file is not None:
        return DataLossError(message, hint="Delete the folder and prepare again.", file=file, context=context)
    hint = "Give assert_cardinality the true number; filters, and elements left out, lower it."
    return FailedPreconditionError(message, hint=hint, context=context)


def _elements(count: int) -> str:
    return f"{count} element{'' if count == 1 else 's'}"
