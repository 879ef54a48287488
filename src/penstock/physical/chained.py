"""States that are completed when they are saved: of consecutive steps, of slots, and of streams that begin later.

`Chained` is the state of consecutive steps. It is the same for any fusion of these steps and any number of workers.

Maps, filters, batches and prefetches can follow each other directly, and the numbers of parallel calls decide which of
them become one stage. A state must not depend on this, because a job may resume with other numbers. The state of such a
row of steps is therefore a list with one entry per step,

    {"below": state of the stage before the row, "skip": elements to drop there, "steps": [[number, skip, kind], ...]}

beginning with the step nearest to the source: the number of the first element that the step receives, the number of its
results to drop, and the kind of its results, if it is decided and can be written. A stage takes one entry for each of
its steps and passes the others to the stage before it. A prefetch has no entry, because it does not change elements.

Instead of n results of a map, n of its inputs can be dropped, and instead of n batches, `batch_size` times n inputs. In
this way, the entries of several steps become the one position of a stage. This does not work for a filter. If elements
after a filter within a stage must be dropped, the stage is split there (`ResumePlace.part`). If elements before a
filter at the start of a stage must be dropped, a `Portioned` before the stage drops them (`ResumePlace.dropping`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from time import perf_counter
from typing import Any, Protocol

from penstock.block.block import Block
from penstock.block.same_kind import read, written
from penstock.errors import InvalidArgumentError
from penstock.physical.stage import Cursor, Stage, State, StretchStage, as_of_now
from penstock.physical.transform import Transforms

# number of elements that each step takes per result, or None if it is unknown, such as for a filter
Ratios = tuple[int | None, ...]

_KEYS = {"below", "skip", "steps"}


def ratios_of(transforms: Transforms, batch: int | None = None) -> Ratios:
    """Return the ratios of a stage with these transforms, and with a batch of this size at its end, if any."""
    own = tuple(1 if transform.one_to_one else None for transform in transforms)
    return own if batch is None else (*own, batch)


@dataclass(slots=True, eq=False)
class Chained:
    """The state of a stage of consecutive steps. It is created for every Block, and completed when it is saved.

    `below` is the state of the stage before it, of which `first` elements must be dropped. The next element has the
    number `count`. After that, `skip` results must be dropped. The stage begins with the steps `transforms`.
    """

    below: State
    first: int
    count: int | None
    ratios: Ratios
    skip: int
    transforms: Transforms = ()

    def resolved(self) -> State:
        row: list[Chained] = []
        below: State = self
        while isinstance(below, Chained):
            row.append(below)
            below = below.below
        below = as_of_now(below)
        first, steps = (below["skip"], below["steps"]) if _is_row(below) else (0, [])
        below = below["below"] if _is_row(below) else below
        for part in reversed(row):
            first, steps = part.added(first, steps)
        return {"below": below, "skip": first, "steps": steps} if steps or first else below

    def added(self, first: int, steps: list[list[Any]]) -> tuple[int, list[list[Any]]]:
        """Return the entries of the stages before this one and of this stage."""
        own: list[list[Any]] = []
        count = self.count
        for transform, ratio in zip_longest(self.transforms, self.ratios):
            kind = transform and transform.decided
            text = kind and written(kind)
            own.append([count, 0, text] if text else [count, 0])
            count = count if ratio == 1 else None
        first, steps = _dropping(first, steps, self.first)
        return _dropping(first, [*steps, *own], self.skip)


def _dropping(first: int, steps: list[list[Any]], count: int) -> tuple[int, list[list[Any]]]:
    """Return the entries, with `count` more results of the last step dropped."""
    if not count:
        return first, steps
    if not steps:
        return first + count, steps
    number, skip, *kind = steps[-1]
    return first, [*steps[:-1], [number, skip + count, *kind]]


@dataclass(frozen=True, slots=True)
class ResumePlace:
    """The position at which a stage resumes, as in `Chained`. Its first `part` steps must run as a stage of their own.

    If `dropping` is True, `below` is the state of a `Portioned`, which drops elements that the stage cannot drop.
    """

    below: State
    first: int
    count: int | None
    skip: int
    part: int = 0
    dropping: bool = False


def place_of(state: State, ratios: Ratios) -> ResumePlace:
    """Return the part of a row's state for the stage of its last steps.

    Raise InvalidArgumentError for a foreign state.
    """
    if isinstance(state, Chained):
        state = state.resolved()
    if not ratios:
        return ResumePlace(state, 0, 0, 0)
    if not _is_row(state) or len(state["steps"]) < len(ratios):
        raise _misfit()
    steps, own = state["steps"][: -len(ratios)], state["steps"][-len(ratios) :]
    first = 0 if steps else state["skip"]
    below = {**state, "steps": steps} if steps else state["below"]
    count = _first_number(own, ratios)
    skips = [first, *(skip for _, skip, *_ in own)]  # to drop before the first step, and after each step
    filters = [at for at, ratio in enumerate(ratios, 1) if ratio is None]
    if not filters:
        for at in range(len(own), 0, -1):
            passed = skips[at] * (ratios[at - 1] or 1)
            skips[at - 1], skips[at] = skips[at - 1] + passed, 0
        return ResumePlace(below, skips[0], None if count is None else count + skips[0] - first, 0)
    last = filters[-1]
    before = [at for at in range(last) if skips[at]]
    if before and (before[-1] or ratios[0]):
        return ResumePlace(below, first, count, 0, part=before[-1] or 1)
    if before:  # the stage begins with a filter, and elements before it must be dropped
        return ResumePlace(Chained(below, 0, 0, (), first), 0, count, sum(skips[last:]), dropping=True)
    return ResumePlace(below, 0, count, sum(skips[last:]))


def _first_number(steps: list[list[Any]], ratios: Ratios) -> int | None:
    """Return the number of the first element of these steps, computed from the first step that knows its number."""
    passed = 0
    for (number, skip, *_), ratio in zip(steps, ratios, strict=True):
        if number is not None:
            return int(number) - passed
        if ratio != 1:
            return None
        passed += skip
    return None


def _misfit() -> InvalidArgumentError:
    message = "This state does not fit the steps of the data set."
    return InvalidArgumentError(message, hint="Save the dict as it is, as JSON or by pickle.")


def _is_row(state: State) -> bool:
    return isinstance(state, dict) and state.keys() == _KEYS


class ChainedStage(StretchStage):
    """A stage of consecutive steps. In free order, `ratios` is None, and states are those of the whole stage."""

    ratios: Ratios | None

    def state(self) -> State:
        if self.ratios is None:
            return super().state()
        if self._stretch is None:
            return self.chained(self.place(), self._stretch_skip)
        return self.chained(self._stretch_before, self._stretch_at)

    def restore(self, state: State) -> None:
        if self.ratios is None:
            super().restore(state)
            return
        if isinstance(state, Chained):
            state = state.resolved()
        place = place_of(state, self.ratios)
        own = state["steps"][-len(self.ratios) :] if self.ratios else ()
        for transform, (_, _, *kind) in zip(self.made_by(), own, strict=False):
            transform.decided = read(*kind) if any(kind) else None
        if place.part:
            self.part(place.part)
            self.ratios = self.ratios[place.part :]
            place = place_of(state, self.ratios)
        if place.dropping:
            self.portion()
        self._stretch_skip = self.go_on(place)

    @abstractmethod
    def made_by(self) -> Transforms:
        """Return its first steps."""

    @abstractmethod
    def chained(self, place: State, skip: int) -> State:
        """Return the state for a position and the number of results to drop after it."""

    @abstractmethod
    def go_on(self, place: ResumePlace) -> int:
        """Restore a position. Return the number of results to drop after it."""

    @abstractmethod
    def part(self, count: int) -> None:
        """Split off the first steps into a stage of their own, before this one."""

    @abstractmethod
    def portion(self) -> None:
        """Add a `Portioned` before this stage."""


_SECONDS = 0.01  # seconds of work that the consumer may not need
_BYTES = 1 << 18  # bytes per component that stay in the processor's cache until the consumer uses them
_MOST = 1 << 16
_FASTER = 8


class Stint:
    """The number of elements to compute at a time ahead of the consumer: a few milliseconds or megabytes at most.

    >>> stint = Stint()
    >>> stint.took(1, 1e-6)
    >>> stint.most
    8
    >>> stint.took(8, 0.4)
    >>> stint.most
    1
    """

    __slots__ = ("most", "seconds")

    def __init__(self, seconds: float = _SECONDS) -> None:
        self.most = 1
        self.seconds = seconds

    def took(self, count: int, seconds: float, nbytes: int = 0) -> None:
        """Record the seconds that `count` elements took, and the mean bytes of their components."""
        fitting = int(count / max(seconds / self.seconds, nbytes / _BYTES, count / _MOST))
        self.most = max(1, min(fitting, max(self.most, count) * _FASTER))


class Portioned(Stage):
    """Limits the Blocks of the stage before it to the requested size, for a step whose calls are observable.

    It requests as many elements as are computed in `seconds`, rounded to a multiple of the request, so that batches are
    slices. If computing elements has side effects, it requests no more than needed. The state counts the elements of a
    Block that were already requested; this many elements are dropped after a restore.
    """

    def __init__(self, upstream: Stage, seconds: float = _SECONDS) -> None:
        super().__init__(upstream.label, (upstream,), upstream.where)
        self._cursor = Cursor(upstream)
        self._stint = Stint(seconds)

    @classmethod
    def over(cls, upstream: Stage) -> Portioned:
        """Return the stage itself if it is a `Portioned` already."""
        return upstream if isinstance(upstream, cls) else cls(upstream)

    @property
    def at_hand(self) -> bool:
        return self._cursor.stage.at_hand

    def next(self, want: int) -> Block | None:
        return self._cursor.take_available(want) if self.fill(want) else None

    def fill(self, want: int) -> bool:
        """Make elements available; return False at the end."""
        cursor = self._cursor
        if self.seen or cursor.available():
            return cursor.fill(want)
        started = perf_counter()
        found = cursor.fill(max(self._stint.most // want, 1) * want)
        if found:
            block = cursor.peek()
            self._stint.took(block.size, perf_counter() - started, block.nbytes // max(len(block.columns), 1))
        return found

    def peek(self) -> Block:
        """Return the available elements, see `Cursor.peek`."""
        return self._cursor.peek()

    def pass_by(self, count: int) -> None:
        """Drop available elements, see `Cursor.pass_by`."""
        self._cursor.pass_by(count)

    def can_skip(self) -> bool:
        return self._cursor.stage.can_skip()

    def skip(self, count: int) -> int:
        return self._cursor.skip(count)

    def state(self) -> State:
        below, offset = self._cursor.state()
        return Chained(below, 0, 0, (), offset) if offset else below

    def restore(self, state: State) -> None:
        if isinstance(state, Chained):
            state = state.resolved()
        offset = 0
        if _is_row(state):
            *steps, last = state["steps"] or [None]
            if last is None:
                state, offset = state["below"], state["skip"]
            else:
                state, offset = {**state, "steps": [*steps, [last[0], 0, *last[2:]]]}, last[1]
        self._cursor.restore([state, offset])

    def close(self) -> None:
        self._cursor.close()


_LEAST = 64  # number of changes that is always acceptable


class SlotStates:
    """The state of every slot, as returned by `state_of`; None for a free slot.

    The cost of a snapshot is proportional to the changes since the last one: it consists of a list of all slots and of
    later changes. The list is rebuilt when there are as many changes as slots.
    """

    def __init__(self, state_of: Callable[[int], State]) -> None:
        self._state_of = state_of
        self._base: dict[int, State] = {}
        self._changes: list[tuple[int, State]] = []  # changes since the list was built
        self.moved: set[int] = set()  # slots whose state changed since the last snapshot

    def now(self) -> SlotsNow:
        """Return the current states of all slots."""
        self._changes.extend((slot, self._state_of(slot)) for slot in self.moved)
        self.moved.clear()
        if len(self._changes) > len(self._base) + _LEAST:
            self._base, self._changes = _after(self._base, self._changes), []
        return SlotsNow(self._base, self._changes, len(self._changes))


class LateState(ABC):
    """A state as a list that is computed when it is needed."""

    __slots__ = ()

    @abstractmethod
    def __iter__(self) -> Iterator[State]: ...

    def resolved(self) -> State:
        return [as_of_now(part) for part in self]

    @property
    def has_grown(self) -> bool:
        """True if it records elements yielded later, see `grows`."""
        return grows(list(self))


@dataclass(slots=True, eq=False)
class SlotsNow(LateState):
    """The states of all slots, as a part of a state."""

    _base: dict[int, State]
    _changes: list[tuple[int, State]]
    _count: int

    def __iter__(self) -> Iterator[State]:
        return iter(_after(self._base, self._changes[: self._count]).values())


def _after(base: dict[int, State], changes: list[tuple[int, State]]) -> dict[int, State]:
    found = dict(base)
    for slot, state in changes:
        found[slot] = state
        if state is None:
            del found[slot]
    return found


def grows(state: State) -> bool:
    """Return True if a state records elements yielded after it was taken, and there are some.

    This occurs in free order.
    """
    if isinstance(state, (list, tuple)):
        return any(map(grows, state))
    if isinstance(state, dict):
        return any(map(grows, state.values()))
    if isinstance(state, Chained):
        return grows(state.below)
    return bool(getattr(state, "has_grown", False))


class Stream(Protocol):
    """A stage or a cursor, as far as states are concerned."""

    def state(self) -> State: ...
    def restore(self, state: State) -> None: ...


class Begun:
    """The streams that a step has started, by number, each with its state before its first element.

    In free order, the elements that a stream has yielded are known only from an earlier state of it that grows. A state
    of the step from before the start of a stream does not contain the stream's state. A step that holds elements back
    resumes with such an old state. `since` tells it which streams started later, with their grown first states.
    `pending` are states of streams that an earlier run had started and this run has not.

    A state refers to the streams that start after it, each stream to the next one. Nothing refers to earlier streams,
    so their logs of yielded elements are freed.
    """

    def __init__(self, pending: Mapping[int, State]) -> None:
        self.pending = pending
        self._next = _Begun()
        self._latest: Since | None = None

    def resume(self, number: int, stream: Stream) -> bool:
        """Restore a new stream to the position of an earlier run, if it had started there; return True if it had."""
        known = number in self.pending
        if known:
            stream.restore(self.pending[number])
        return known

    def note(self, number: int, stage: Stage, stream: Stream) -> None:
        """Record that a stream is about to yield its first element."""
        known = number in self.pending
        if known:
            self.pending = {other: state for other, state in self.pending.items() if other != number}
        if stage.may_grow:
            behind = _Begun()
            self._next.told = number, stream.state(), behind
            self._next = behind
        elif not known:
            return
        self._latest = None

    def since(self) -> Since:
        """Return the part of a state that records streams started later."""
        if self._latest is None:
            self._latest = Since(self._next, self.pending)
        return self._latest


class _Begun:
    """The next stream to start. After its start, `told` is its number, its first state, and the stream after it."""

    __slots__ = ("told",)

    def __init__(self) -> None:
        self.told: tuple[int, State, _Begun] | None = None


class Since:
    """The streams in free order that started after a state was taken."""

    __slots__ = ("_next", "_pending")

    def __init__(self, following: _Begun, pending: Mapping[int, State]) -> None:
        self._next = following
        self._pending = pending

    def states(self) -> dict[int, State]:
        """Return the states by number."""
        found = dict(self._pending)
        following = self._next
        while following.told is not None:
            number, state, following = following.told
            if number in found or grows(state):
                found[number] = state
        return found


@dataclass(slots=True, eq=False)
class Growing(LateState):
    """A state as a list of parts. If streams in free order have started since, the list has one more part."""

    _parts: Iterable[State]
    _since: Since

    def __iter__(self) -> Iterator[State]:
        later = [[number, state] for number, state in sorted(self._since.states().items())]
        return iter([*self._parts, later] if later else self._parts)
