"""Stretch: part of a stream, in which every position holds an element or a failure.

Past keeps states of the input in front of elements that may have to come again.

A failure is the error that took the place of one element: the stream goes on behind it. Fatal is what ends a run.
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

# An exception is a *failure* where somebody who knows says so: a `PenstockError` says what was wrong with an element,
# and `as_failure` marks what a user's function or a source has raised. Steps count failures, keep them in buffers and
# leave them out. Any other exception is an error of the engine, or of the machine (no memory, a full disk): nothing is
# known of the elements behind it. Stepped over like a failure it could look like the end of the data, which only a
# source knows. `Stage` therefore lets nothing but failures out of `next`: what else comes up there becomes `Fatal`,
# which is no `Exception`, so that no step handles it. It closes the run, and is raised where the elements are taken.

_NO_THREADS = (
    "Raise the limit (ulimit -u, pids.max of the container), run fewer iterations at once, give the steps fewer "
    'parallel calls, or use executor="inline", which starts none.'
)


class Fatal(BaseException):
    """The run ends here; who holds it raises `error` in its place."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


def failed(error: Exception) -> Exception:
    """An exception that was caught, if it is the failure of an element. Raises Fatal for any other."""
    if is_failure(error):
        kept(error)
        return error
    raise fatal(error) from error


def fatal(error: Exception, label: str | None = None, where: str | None = None) -> Fatal:
    """An exception that is nobody's failure, met in the step of this label, as what ends the run."""
    context = Context(label, where)
    if isinstance(error, (PenstockError, MemoryError, OSError, Warning)):  # these say what is wrong
        annotate(error, context)
        return Fatal(error)
    if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
        message = "The system starts no further thread: this process, or its user, has as many as it may have."
        found = ResourceExhaustedError(message, hint=_NO_THREADS, context=context)
        found.__cause__ = error
        return Fatal(found)
    message = f"An error inside penstock, and not of an element: {type(error).__name__}: {error}".rstrip(": ")
    hint = "The pass ends here. This is a mistake of ours: please report it, with the traceback above."
    made = InternalError(message, hint=hint, context=context)
    made.__cause__ = error
    return Fatal(made)


@dataclass(slots=True)
class Stretch:
    """The elements of `block` in their order, parted by `failures`: (position in the stretch, error), ascending.

    `kinds` are those that its maps took to be decided, by their places; `again` makes the stretch again by what is.
    """

    block: Block | None
    failures: tuple[tuple[int, Exception], ...] = ()
    kinds: Kinds = field(default=(), compare=False)
    again: Callable[[], Stretch] | None = field(default=None, compare=False)

    @property
    def size(self) -> int:
        """Positions: elements and failures."""
        return (0 if self.block is None else self.block.size) + len(self.failures)

    @property
    def error(self) -> Exception | None:
        """The first failure."""
        return self.failures[0][1] if self.failures else None

    def pieces(self) -> Iterator[Block | Exception]:
        """Elements and failures in order; neighbouring elements as one Block."""
        at = row = 0
        for position, error in [*self.failures, (self.size, None)]:
            if self.block is not None and position > at:
                yield self.block.slice(row, row + position - at)
            if error is not None:
                yield error
            row += position - at
            at = position + 1

    def slice(self, start: int, stop: int) -> Stretch:
        """The positions from `start` up to, not including, `stop`."""
        before = sum(position < start for position, _ in self.failures)
        inside = tuple((position - start, error) for position, error in self.failures if start <= position < stop)
        first, count = start - before, min(stop, self.size) - start - len(inside)
        if self.block is None or count <= 0:
            return Stretch(None, inside, self.kinds)
        return Stretch(self.block.slice(first, first + count), inside, self.kinds)


def join(parts: Sequence[Stretch]) -> Stretch:
    """One stretch behind the other."""
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
    """Return the elements of all parts, one part after the other."""
    blocks = [part.block for part in parts if part.block is not None]
    return concat_blocks(blocks) if blocks else None


def failure(error: Exception, kinds: Kinds = ()) -> Stretch:
    """One position, which failed: the caller has just caught the error. Raises Fatal if it is nobody's failure."""
    return Stretch(None, ((0, failed(error)),), kinds)


def held(stretch: Stretch) -> np.ndarray:
    """The positions that hold elements, in order."""
    if not stretch.failures:
        return np.arange(stretch.size)
    holds = np.ones(stretch.size, bool)
    holds[[position for position, _ in stretch.failures]] = False
    return np.flatnonzero(holds)


_LEAST = 64  # notes that are never too many


class Past:
    """(position, state) pairs in ascending order; those that nobody will ask for are forgotten."""

    def __init__(self) -> None:
        self._notes: deque[tuple[int, Any]] = deque()
        self._thin_at = _LEAST

    def __len__(self) -> int:
        return len(self._notes)

    def note(self, position: int, state: Any, wanted: np.ndarray) -> None:
        """What gives the element at `position` first; `wanted` are earlier positions that may be asked for."""
        self._notes.append((position, state))
        if len(self._notes) > self._thin_at:
            notes = list(self._notes)
            keep = np.searchsorted([at for at, _ in notes], np.sort(wanted), side="right") - 1
            self._notes = deque(notes[i] for i in np.unique([*keep[keep >= 0], len(notes) - 1]).tolist())
            self._thin_at = 2 * len(self._notes) + _LEAST

    def ends_at(self, position: int) -> bool:
        """Whether the last note stands in front of this position."""
        return bool(self._notes) and self._notes[-1][0] == position

    def before(self, position: int) -> tuple[int, Any]:
        """The last note not behind `position`; earlier ones are forgotten."""
        while len(self._notes) > 1 and self._notes[1][0] <= position:
            self._notes.popleft()
        return self._notes[0]
