"""States that are put together when somebody writes them down: of steps in a row, of slots, of streams begun later.

Chained are states of steps in a row, the same whichever of them run as one, and on how many workers.

Maps, filters, batches and prefetches stand directly above each other, and the numbers of parallel calls decide which of
them become one stage. A state must not: a job goes on with other numbers than it was saved with. So what a state says
about such a row is a list with an entry for each step,

    {"below": the state under the row, "skip": elements to drop there, "steps": [[number, skip, kind], ...]}

the step nearest to the source first: the number of the first element that it is given, how many of its results are to
be dropped, and the kind of its results, if that is decided and can be written. A stage takes as many entries as it has
steps, and hands the rest on to the stage below. A prefetch has no entry: it gives what it is given.

Where results of a map are to be dropped, as many of its input may be instead, and of a batch `batch_size` times as
many. That is how the entries of several steps become the one place of a stage. It does not hold for a filter: if
something behind a filter is to be dropped, in the midst of a stage, the stage parts there (`Place.part`), and if
something in front of one is with which the stage begins, a `Portioned` below drops it (`Place.dropping`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from time import perf_counter
from typing import Any, Protocol

from penstock.block.block import Block
from penstock.block.same_kind import read, written
from penstock.errors import InvalidArgumentError
from penstock.physical.stage import Cursor, Stage, State, StretchStage, as_of_now
from penstock.physical.transform import Transform

Ratios = tuple[int | None, ...]  # elements that each step takes for one result, None if it is unknown, as for a filter

_KEYS = {"below", "skip", "steps"}


def ratios_of(transforms: Sequence[Transform], batch: int | None = None) -> Ratios:
    """The ratios of a stage with these transforms, and perhaps a batch of this size behind them."""
    own = tuple(1 if transform.one_to_one else None for transform in transforms)
    return own if batch is None else (*own, batch)


class Chained:
    """The state of a stage with such steps. It is taken for every Block, and read when a state is written down.

    `below` is the state under it, of which `first` elements are to be dropped; the next one is number `count`. Then
    `skip` of the results are to be dropped. The first steps are these `transforms`.
    """

    __slots__ = ("below", "count", "first", "ratios", "skip", "transforms")

    def __init__(
        self, below: State, first: int, count: int | None, ratios: Ratios, skip: int, maps: Sequence[Transform] = ()
    ) -> None:
        self.below = below
        self.first = first
        self.count = count
        self.ratios = ratios
        self.skip = skip
        self.transforms = maps

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
        """The entries below, and those of this stage."""
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
    """Entries that drop some more of what the last step gives."""
    if not count:
        return first, steps
    if not steps:
        return first + count, steps
    number, skip, *kind = steps[-1]
    return first, [*steps[:-1], [number, skip + count, *kind]]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a stage is to go on: as in `Chained`. Its first `part` steps are to run, and drop, by themselves.

    Of a place that is `dropping`, `below` is the state of a `Portioned`, which drops what the stage cannot.
    """

    below: State
    first: int
    count: int | None
    skip: int
    part: int = 0
    dropping: bool = False


def place_of(state: State, ratios: Ratios) -> Place:
    """What the state of a row says to the stage with its last steps. Raises InvalidArgumentError for another one's."""
    if isinstance(state, Chained):
        state = state.resolved()
    if not ratios:
        return Place(state, 0, 0, 0)
    if not _is_row(state) or len(state["steps"]) < len(ratios):
        raise _misfit()
    steps, own = state["steps"][: -len(ratios)], state["steps"][-len(ratios) :]
    first = 0 if steps else state["skip"]
    below = {**state, "steps": steps} if steps else state["below"]
    count = _first_number(own, ratios)
    skips = [first, *(skip for _, skip, *_ in own)]  # in front of the first step, and behind each
    filters = [at for at, ratio in enumerate(ratios, 1) if ratio is None]
    if not filters:
        for at in range(len(own), 0, -1):
            passed = skips[at] * (ratios[at - 1] or 1)
            skips[at - 1], skips[at] = skips[at - 1] + passed, 0
        return Place(below, skips[0], None if count is None else count + skips[0] - first, 0)
    last = filters[-1]
    before = [at for at in range(last) if skips[at]]
    if before and (before[-1] or ratios[0]):
        return Place(below, first, count, 0, part=before[-1] or 1)
    if before:  # the stage begins with a filter, in front of which there is something to drop
        return Place(Chained(below, 0, 0, (), first), 0, count, sum(skips[last:]), dropping=True)
    return Place(below, 0, count, sum(skips[last:]))


def _first_number(steps: list[list[Any]], ratios: Ratios) -> int | None:
    """The number of the first element that these steps are given, as the first of them that knows it tells."""
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
    """A stage of steps in a row. `ratios` is None in free order, whose states belong to the stage as it is."""

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
    def made_by(self) -> Sequence[Transform]:
        """Return its first steps."""

    @abstractmethod
    def chained(self, place: State, skip: int) -> State:
        """The state for a place, and results to drop from there."""

    @abstractmethod
    def go_on(self, place: Place) -> int:
        """Restore a place; how many results are to be dropped from there."""

    @abstractmethod
    def part(self, count: int) -> None:
        """Let the first steps run by themselves, below."""

    @abstractmethod
    def portion(self) -> None:
        """Have a `Portioned` below."""


_SECONDS = 0.01  # of work that the consumer may not need
_BYTES = 1 << 18  # of each component, which stay in the processor's cache until the consumer has them
_MOST = 1 << 16
_FASTER = 8


class Stint:
    """The number of elements that are made at a time, ahead of the consumer: some milliseconds or megabytes at most.

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
        """Take in how long so many elements took, and the mean bytes of their components."""
        fitting = int(count / max(seconds / self.seconds, nbytes / _BYTES, count / _MOST))
        self.most = max(1, min(fitting, max(self.most, count) * _FASTER))


class Portioned(Stage):
    """The upstream in Blocks of no more elements than are wanted, for a step that is seen to take them.

    It asks for as many as are made in `seconds`, unless making them has side effects: for a multiple of what is wanted,
    so that batches are slices. The state counts the elements of a Block that were asked for: so many of the upstream's
    are to be dropped.
    """

    def __init__(self, upstream: Stage, seconds: float = _SECONDS) -> None:
        super().__init__(upstream.label, (upstream,), upstream.where)
        self._cursor = Cursor(upstream)
        self._stint = Stint(seconds)

    @classmethod
    def over(cls, upstream: Stage) -> Portioned:
        """That stage, if it is one already."""
        return upstream if isinstance(upstream, cls) else cls(upstream)

    @property
    def at_hand(self) -> bool:
        return self._cursor.stage.at_hand

    def next(self, want: int) -> Block | None:
        return self._cursor.take_available(want) if self.fill(want) else None

    def fill(self, want: int) -> bool:
        """Have elements at hand; False at the end."""
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
        """Return the elements at hand, see `Cursor.peek`."""
        return self._cursor.peek()

    def pass_by(self, count: int) -> None:
        """Pass by elements at hand, see `Cursor.pass_by`."""
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


_LEAST = 64  # changes that are never too many


class SlotStates:
    """The state of every slot that there is, as `state_of` tells it; None for a slot that is free.

    What is said of a moment costs as much as has changed since the last one: a list of all slots, and the changes
    behind it. Such a list is made anew when there are as many changes as slots.
    """

    def __init__(self, state_of: Callable[[int], State]) -> None:
        self._state_of = state_of
        self._base: dict[int, State] = {}
        self._changes: list[tuple[int, State]] = []  # since then
        self.moved: set[int] = set()  # the slots whose state is another than it was when somebody asked last

    def now(self) -> SlotsNow:
        """The states of all slots as they are now."""
        self._changes.extend((slot, self._state_of(slot)) for slot in self.moved)
        self.moved.clear()
        if len(self._changes) > len(self._base) + _LEAST:
            self._base, self._changes = _after(self._base, self._changes), []
        return SlotsNow(self._base, self._changes, len(self._changes))


class SlotsNow:
    """A part of a state: those of all slots."""

    __slots__ = ("_base", "_changes", "_count")

    def __init__(self, base: dict[int, State], changes: list[tuple[int, State]], count: int) -> None:
        self._base = base
        self._changes = changes
        self._count = count

    def resolved(self) -> list[Any]:
        return [as_of_now(state) for state in self]

    @property
    def has_grown(self) -> bool:
        return grows(list(self))

    def __iter__(self) -> Any:
        return iter(_after(self._base, self._changes[: self._count]).values())


def _after(base: dict[int, State], changes: list[tuple[int, State]]) -> dict[int, State]:
    found = dict(base)
    for slot, state in changes:
        found[slot] = state
        if state is None:
            del found[slot]
    return found


def grows(state: State) -> bool:
    """Whether a state tells of what was given since it was taken: in free order, where something was."""
    if isinstance(state, (list, tuple)):
        return any(map(grows, state))
    if isinstance(state, dict):
        return any(map(grows, state.values()))
    if isinstance(state, Chained):
        return grows(state.below)
    return bool(getattr(state, "has_grown", False))


class Stream(Protocol):
    """A stage, or a cursor over one."""

    def state(self) -> State: ...
    def restore(self, state: State) -> None: ...


class Begun:
    """The streams that a step has begun, by number, each with its state in front of its first element.

    In free order what a stream has given is known from a state that was taken before, and that grows. A state of the
    step from before the stream began has none of it. Who goes on with such a state, as a step does that keeps elements
    back, learns by `since` which streams began later, and what their first states say by then. `pending` are states of
    streams that an earlier run had begun, and this one not.

    Who has taken a state holds what came behind it, each stream the next one; nobody holds what came before, and with
    it logs of all that was given.
    """

    def __init__(self, pending: Mapping[int, State]) -> None:
        self.pending = pending
        self._next = _Begun()
        self._latest: Since | None = None

    def resume(self, number: int, stream: Stream) -> bool:
        """Have a stream that is new go on where an earlier run had come to, if one had begun it; whether it had."""
        known = number in self.pending
        if known:
            stream.restore(self.pending[number])
        return known

    def note(self, number: int, stage: Stage, stream: Stream) -> None:
        """A stream is about to give its first element, by a stage."""
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
        """The part of a state that is taken now which tells what begins later."""
        if self._latest is None:
            self._latest = Since(self._next, self.pending)
        return self._latest


class _Begun:
    """The next stream that begins: when it has, `told` are its number, its first state, and the one behind it."""

    __slots__ = ("told",)

    def __init__(self) -> None:
        self.told: tuple[int, State, _Begun] | None = None


class Since:
    """The streams that have begun since a state was taken, as far as they are in free order."""

    __slots__ = ("_next", "_pending")

    def __init__(self, following: _Begun, pending: Mapping[int, State]) -> None:
        self._next = following
        self._pending = pending

    def states(self) -> dict[int, State]:
        """By number."""
        found = dict(self._pending)
        following = self._next
        while following.told is not None:
            number, state, following = following.told
            if number in found or grows(state):
                found[number] = state
        return found


class Growing:
    """A state, with the streams that have begun since where they are in free order: a list of one more."""

    __slots__ = ("_parts", "_since")

    def __init__(self, parts: Iterable[State], since: Since) -> None:
        self._parts = parts
        self._since = since

    def resolved(self) -> list[State]:
        return [as_of_now(part) for part in self]

    def __iter__(self) -> Iterator[State]:
        later = [[number, state] for number, state in sorted(self._since.states().items())]
        return iter([*self._parts, later] if later else self._parts)

    @property
    def has_grown(self) -> bool:
        return grows(list(self))
