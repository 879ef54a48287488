"""Stretch: part of a stream, in which every position contains an element or a failure.

`Past` stores states of the input before elements that may have to be read again.

A failure is an error that takes the place of one element: the stream continues after it. `Fatal` ends a run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import numpy as np

from penstock.block.block import Block, concat_blocks
from penstock.block.same_kind import Kind, Kinds
from penstock.errors import Context, InternalError, PenstockError, ResourceExhaustedError, annotate, is_failure
from penstock.frames import kept

# An exception is a *failure* only if it is known to be one: a `PenstockError` describes what is wrong with an element,
# and `as_failure` marks exceptions of a user's function or a source. Steps count failures, buffer them and drop them.
# Any other exception is an error of the engine or of the machine (no memory, a full disk), and nothing is known about
# the elements after it. If it were skipped like a failure, it could look like the end of the data, which only a source
# knows. `Stage` therefore lets only failures out of `next`. Other exceptions become `Fatal`, which is not an
# `Exception`, so that no step handles it. It closes the run, and the consumer gets the original exception.

_NO_THREADS = (
    "Raise the limit (ulimit -u, pids.max of the container), run fewer iterations at once, give the steps fewer "
    'parallel calls, or use executor="inline", which starts none.'
)


class Fatal(BaseException):
    """Ends the run. The consumer's iterator raises `error` instead."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


def failed(error: Exception) -> Exception:
    """Return a caught exception if it is the failure of an element. Raise Fatal for any other exception."""
    if is_failure(error):
        kept(error)
        return error
    raise fatal(error) from error


def fatal(error: Exception, label: str | None = None, where: str | None = None) -> Fatal:
    """Return an exception that is not a failure as Fatal, with the step of this label."""
    context = Context(label, where)
    if isinstance(error, (PenstockError, MemoryError, OSError, Warning)):  # their messages describe the problem
        annotate(error, context)
        return Fatal(error)
    if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
        message = "The system cannot start another thread: this process or its user has reached the limit."
        found = ResourceExhaustedError(message, hint=_NO_THREADS, context=context)
        found.__cause__ = error
        return Fatal(found)
    message = f"An error inside penstock, not in an element: {type(error).__name__}: {error}".rstrip(": ")
    hint = "The iteration ends here. This is a bug in penstock: please report it, with the traceback above."
    made = InternalError(message, hint=hint, context=context)
    made.__cause__ = error
    return Fatal(made)


@dataclass(slots=True)
class Stretch:
    """The elements of `block` in order, with `failures` between them: (position in the stretch, error), ascending.

    `kinds` are the kinds that its maps assumed, by their places. `again` computes the stretch again with the decided
    kinds.
    """

    block: Block | None
    failures: tuple[tuple[int, Exception], ...] = ()
    kinds: Kinds = field(default=(), compare=False)
    again: Callable[[], Stretch] | None = field(default=None, compare=False)

    @property
    def size(self) -> int:
        """Number of positions: elements and failures."""
        return (0 if self.block is None else self.block.size) + len(self.failures)

    @property
    def error(self) -> Exception | None:
        """The first failure, or None."""
        return self.failures[0][1] if self.failures else None

    def pieces(self) -> Iterator[Block | Exception]:
        """Yield elements and failures in order; neighbouring elements as one Block."""
        at = row = 0
        for position, error in [*self.failures, (self.size, None)]:
            if self.block is not None and position > at:
                yield self.block.slice(row, row + position - at)
            if error is not None:
                yield error
            row += position - at
            at = position + 1

    def slice(self, start: int, stop: int) -> Stretch:
        """Return the positions from `start` to before `stop`."""
        before = sum(position < start for position, _ in self.failures)
        inside = tuple((position - start, error) for position, error in self.failures if start <= position < stop)
        first, count = start - before, min(stop, self.size) - start - len(inside)
        if self.block is None or count <= 0:
            return Stretch(None, inside, self.kinds)
        return Stretch(self.block.slice(first, first + count), inside, self.kinds)


def join(parts: Sequence[Stretch]) -> Stretch:
    """Join stretches, one after another."""
    if len(parts) == 1:
        return parts[0]
    failures: list[tuple[int, Exception]] = []
    at = 0
    for part in parts:
        failures += [(at + position, error) for position, error in part.failures]
        at += part.size
    return Stretch(elements_of(parts), tuple(failures), joined_kinds([part.kinds for part in parts]))


def joined_kinds(parts: Iterable[Kinds]) -> Kinds:
    """Return all kinds by their places, those of the first part first."""
    found: list[tuple[int, Kind]] = []
    for part in parts:
        found += [each for each in part if each not in found]
    return tuple(sorted(found, key=itemgetter(0)))


def elements_of(parts: Sequence[Stretch]) -> Block | None:
    """Return the elements of all parts, one part after another."""
    blocks = [part.block for part in parts if part.block is not None]
    return concat_blocks(blocks) if blocks else None


def failure(error: Exception, kinds: Kinds = ()) -> Stretch:
    """Return one failed position, for an exception that was just caught. Raise Fatal if it is not a failure."""
    return Stretch(None, ((0, failed(error)),), kinds)


def held(stretch: Stretch) -> np.ndarray:
    """Return the positions with elements, in order."""
    if not stretch.failures:
        return np.arange(stretch.size)
    holds = np.ones(stretch.size, bool)
    holds[[position for position, _ in stretch.failures]] = False
    return np.flatnonzero(holds)


_LEAST = 64  # number of notes that is always acceptable


class Past:
    """(position, state) pairs in ascending order. Pairs that are not needed any more are dropped."""

    def __init__(self) -> None:
        self._notes: deque[tuple[int, Any]] = deque()
        self._thin_at = _LEAST

    def __len__(self) -> int:
        return len(self._notes)

    def note(self, position: int, state: Any, wanted: Callable[[], np.ndarray]) -> None:
        """Store the state before the element at `position`; `wanted` returns positions that may be requested."""
        self._notes.append((position, state))
        if len(self._notes) > self._thin_at:
            notes = list(self._notes)
            keep = np.searchsorted([at for at, _ in notes], np.sort(wanted()), side="right") - 1
            self._notes = deque(notes[i] for i in np.unique([*keep[keep >= 0], len(notes) - 1]).tolist())
            self._thin_at = 2 * len(self._notes) + _LEAST

    def ends_at(self, position: int) -> bool:
        """Return True if the last note is at this position."""
        return bool(self._notes) and self._notes[-1][0] == position

    def before(self, position: int) -> tuple[int, Any]:
        """Return the last note at or before `position`, and drop earlier ones."""
        while len(self._notes) > 1 and self._notes[1][0] <= position:
            self._notes.popleft()
        return self._notes[0]
