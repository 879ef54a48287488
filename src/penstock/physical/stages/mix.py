"""`MixStage` joins several streams; a chooser selects the source of each element."""

from __future__ import annotations

import heapq
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

import numpy as np

from penstock.block.block import Block
from penstock.block.footprint import footprint
from penstock.block.same_kind import kind_of
from penstock.block.structure import Structure
from penstock.errors import Context, InvalidTypeError, OutOfRangeError
from penstock.physical.memory import UNCOUNTED, Memory
from penstock.physical.stage import Cursor, Stage, State, StretchStage
from penstock.physical.stretch import Stretch, elements_of, failed
from penstock.plan.node import NamedStep


class Agreement:
    """Accepts Blocks with the structure, dtypes and ranks of the first one; with `any_rank`, ranks may differ.

    `kind` describes the first element as a string and is part of the state. If the kinds are `known` to be equal,
    nothing is checked.
    """

    def __init__(self, *, known: bool, any_rank: bool = False) -> None:
        self._known = known
        self._any_rank = any_rank
        self.kind: str | None = None

    def admits(self, block: Block) -> bool:
        if self._known:
            return True
        found = self._kind(block)
        self.kind = self.kind or found
        return found == self.kind

    def error(self, source: int, block: Block, context: Context) -> InvalidTypeError:
        """Return the error for an element of this Block, whose kind differs."""
        message = f"Data set {source} gives {self._kind(block)}; the elements before it were {self.kind}."
        hint = "Joined data sets need the same structure, dtypes and ranks: map them to it first."
        return InvalidTypeError(message, hint=hint, context=context)

    def _kind(self, block: Block) -> str:
        leaves = [kind_of(column) for column in block.columns]
        if self._any_rank:
            leaves = [leaf.partition(" of rank ")[0] for leaf in leaves]
        return _text(block.structure, iter(leaves))


def _text(structure: Structure, leaves: Iterator[str]) -> str:
    """Return the nest as a string; dict keys are sorted, because their order does not count."""
    if structure.is_leaf:
        return next(leaves)
    if not structure.children:
        return structure.describe()
    parts = [_text(child, leaves) for child in structure.children]
    if structure.kind is tuple:
        return f"({', '.join(parts)})"
    named = ", ".join(sorted(f"{name}: {part}" for name, part in zip(structure.names, parts, strict=True)))
    return f"{{{named}}}" if structure.kind is dict else f"{getattr(structure.kind, '__name__', '')}({named})"


FAILED = -1  # marks a step that is an error
NOTHING = -2  # marks a step without an element and position
END = -3  # marks the end of the stream

# A round costs a few microseconds per source. With many sources, more steps are taken at a time than requested.
_BULK = 256  # if so many are requested
_STEPS_EACH = 512  # per source
_MORE = 4  # growth of the number of steps, if a round is fast
_SECONDS, _BYTES = 0.02, 1 << 22  # a round is fast if it takes less than this


_FEW = 32  # least number of steps dealt together if sources end: all steps after the end of a source are chosen again


_ENOUGH = 4  # number of elements that justifies a request to a source; leftovers cost as much
_MOST_EARLY = 64  # most elements requested from a source before their steps, if a request ...
_OF_A_FILL = 2e-4  # ... with the work for it takes no longer than this


class Choices(ABC):
    """The next `size` steps. `errors` contains the errors of the steps marked FAILED."""

    size: int
    errors: dict[int, Exception]

    @abstractmethod
    def picks(self, start: int, stop: int) -> np.ndarray:
        """Return the sources of steps, or marks. Called in order, and again after the end of a source."""

    @abstractmethod
    def ran_dry(self, source: int, at: int) -> None:
        """Choose again from step `at` on, without a source."""


class Chooser(ABC):
    """Selects the source of each step's element."""

    inputs: tuple[Stage, ...] = ()
    foreseen = False  # True if later steps never depend on the time of the request

    @abstractmethod
    def next(self, want: int, dry: Collection[int]) -> Choices | None:
        """Return up to `want` steps, without sources in `dry`, or None at the end."""

    @abstractmethod
    def state(self) -> State: ...

    @abstractmethod
    def restore(self, state: State) -> None: ...

    def close(self) -> None:
        for stage in self.inputs:
            stage.close()


@dataclass(slots=True)
class _Queue:
    """The steps that take elements from one source: their number is `size`, and `taken` of them are done.

    `last` are the steps added last, `earlier` the others.
    """

    cursor: Cursor
    last: np.ndarray
    size: int
    taken: int = 0
    earlier: list[np.ndarray] | None = None

    def add(self, steps: np.ndarray) -> None:
        if self.earlier is None:
            self.earlier = []
        self.earlier.append(self.last)
        self.last = steps
        self.size += len(steps)

    def cut(self, at: int) -> None:
        """Remove the steps from number `at` on. They were added last."""
        kept = self.last[: self.last.searchsorted(at)]
        self.size -= len(self.last) - len(kept)
        self.last = kept

    def uncovered(self) -> int | None:
        """Return the first step without an available element, or None. It is one of the steps added last."""
        missing = self.size - self.taken - self.cursor.available()
        return int(self.last[-missing]) if missing > 0 else None

    def steps(self, count: int) -> np.ndarray:
        """Return the next steps to be taken."""
        if self.earlier is not None:
            self.last, self.earlier = np.concatenate((*self.earlier, self.last)), None
        return self.last[self.taken : self.taken + count]


@dataclass(slots=True)
class _Dealt:
    """The elements of the steps so far."""

    queues: dict[int, _Queue] = field(default_factory=dict)
    parts: list[tuple[int, np.ndarray, Block]] = field(default_factory=list)  # (source, steps, their elements)
    errors: dict[int, Exception] = field(default_factory=dict)

    def take(self, source: int, queue: _Queue) -> None:
        """Take the available elements for the steps of a queue."""
        count = min(queue.size - queue.taken, queue.cursor.available())
        if count:
            self.parts.append((source, queue.steps(count), queue.cursor.take_available(count)))
            queue.taken += count


class MixStage(StretchStage):
    """Yields elements of the sources in the chooser's order. A failure of a source takes the place of its step.

    `on_empty` is the behaviour if a step selects a source that has ended: "continue" without it, "stop", or "error".
    With "repeat", sources are infinite unless they are empty, which is an error, too.
    """

    def __init__(
        self,
        sources: tuple[Stage, ...],
        chooser: Chooser,
        on_empty: str,
        step: NamedStep,
        *,
        same_kind: bool,
        any_rank: bool = False,
        memory: Memory = UNCOUNTED,
    ) -> None:
        super().__init__(step.label, (*chooser.inputs, *sources), step.where)
        self._account = memory.account("at hand", step.label, step.where)
        self._at_hand: dict[int, int] = {}  # bytes of each source's current Block
        self._cursors = [Cursor(stage) for stage in sources]
        self._chooser = chooser
        self._on_empty = on_empty
        self._agreement = Agreement(known=same_kind, any_rank=any_rank)
        self._dry: set[int] = set()
        self._ended = False
        self._count = 0
        self._at_once = 0  # steps of the next round, if fewer are requested
        self._reach = 1 << 30  # steps dealt together
        self._early = 1  # least number of elements in a request to a source
        self._fills = 0  # requests to sources in this round

    def make(self, want: int) -> Stretch | None:
        if self.seen_below:  # an element must not wait for those of the next steps
            want = 1
        steps = max(want, self._at_once) if self._chooser.foreseen and want >= _BULK else want
        began = time.perf_counter()
        choices = None if self._ended else self._chooser.next(steps, self._dry)
        if choices is None:
            self._ended = True
            return None
        dealt = _Dealt()
        stop = self._deal_all(choices, dealt)
        errors = {at: error for at, error in choices.errors.items() if at < stop} | dealt.errors
        made = self._joined(dealt, errors)
        self._count += made.size
        nbytes = 0 if made.block is None else made.block.nbytes
        held = sum(self._at_hand.values())
        self._account.hold(held + (nbytes if steps > want else 0))
        self.cuts = self.cuts or steps > want
        quick = time.perf_counter() - began < _SECONDS and nbytes < _BYTES
        self._at_once = min(_MORE * steps, _STEPS_EACH * len(self._cursors)) if quick else steps // 2
        if self._fills:
            self._learn((time.perf_counter() - began) / self._fills, held)
        return made

    def _learn(self, seconds: float, held: int) -> None:
        """Request more at a time if that takes little longer.

        Otherwise, each element would need a request to many sources.
        """
        self._fills = 0
        if seconds < _OF_A_FILL and held < _BYTES:
            self._early = min(2 * self._early, _MOST_EARLY)
        elif seconds > 2 * _OF_A_FILL or held > 2 * _BYTES:
            self._early = max(self._early // 2, 1)

    def _deal_all(self, choices: Choices, dealt: _Dealt) -> int:
        """Deal the steps; return their number, which is smaller than chosen at the end of the stream."""
        at = 0
        while at < choices.size:
            stop = min(at + self._reach, choices.size)
            picks = choices.picks(at, stop)
            ends = np.flatnonzero(picks == END)
            if len(ends):
                stop = at + int(ends[0])
                picks = picks[: stop - at]
            dry = self._deal(picks, at, choices.size, dealt)
            if dry is None and len(ends):
                self._ended = True
                return self._all_taken(dealt, stop)
            if dry is None:
                at, self._reach = stop, 2 * self._reach
                continue
            self._reach = max(2 * (dry[0] - at), _FEW)
            at, source = dry
            self._dry.add(source)
            self._cursors[source].close()
            if self._on_empty in ("error", "repeat"):
                dealt.errors[at] = self._dry_error(source, self._count + at)
            if self._on_empty != "continue" or len(self._dry) == len(self._cursors):
                self._ended = True
                return self._all_taken(dealt, at + (at in dealt.errors))
            choices.ran_dry(source, at)
        return self._all_taken(dealt, at)

    def _all_taken(self, dealt: _Dealt, stop: int) -> int:
        for source, queue in dealt.queues.items():
            dealt.take(source, queue)
        return stop

    def _deal(self, picks: np.ndarray, start: int, size: int, dealt: _Dealt) -> tuple[int, int] | None:
        """Make the elements of the steps from `start` on available. If a source has ended, return (step, source).

        Steps are served in order: no source receives a request for a later step while an earlier step lacks its
        element. A request covers the source's share of all steps up to `size`, and more if that is little.
        """
        queues = self._queues(picks, start, dealt)
        waiting = [(at, source) for source, queue in queues.items() if (at := queue.uncovered()) is not None]
        heapq.heapify(waiting)
        behind = (size - start - len(picks)) // max(len(self._cursors) - len(self._dry), 1)
        early = 1 if self.seen_below else self._early
        while waiting:
            at, source = heapq.heappop(waiting)
            queue = queues[source]
            dealt.take(source, queue)
            try:
                ask = queue.size - queue.taken + behind
                more = queue.cursor.fill(ask if ask >= _ENOUGH else max(ask, early))
                self._fills += 1
                self._at_hand[source] = footprint(queue.cursor.peek()) if more else 0
            except Exception as error:
                dealt.errors[at] = failed(error)
                queue.taken += 1
                more = True
            if not more:
                for each in queues.values():
                    each.cut(at)
                return at, source
            following = queue.uncovered()
            if following is not None:
                heapq.heappush(waiting, (following, source))
        return None

    def _queues(self, picks: np.ndarray, start: int, dealt: _Dealt) -> dict[int, _Queue]:
        """Add some steps to the queues of their sources; return these queues."""
        order = np.argsort(picks.astype(np.int16) if len(self._cursors) < 1 << 15 else picks, kind="stable")
        sources = picks[order]
        order += start
        begins = np.flatnonzero(sources[1:] != sources[:-1]) + 1
        heads, places = [*sources[:1].tolist(), *sources[begins].tolist()], [0, *begins.tolist(), len(order)]
        known, cursors = dealt.queues, self._cursors
        found = {} if known else known
        for source, begin, end in zip(heads, places, places[1:], strict=False):
            if source < 0:
                continue
            queue = known.get(source)
            if queue is None:
                queue = known[source] = _Queue(cursors[source], order[begin:end], end - begin)
            else:
                queue.add(order[begin:end])
            found[source] = queue
        return found

    def _joined(self, dealt: _Dealt, errors: dict[int, Exception]) -> Stretch:
        kept = []
        strange: dict[int, tuple[int, Block]] = {}
        for source, steps, part in sorted(dealt.parts, key=lambda part: int(part[1][0])):
            if self._agreement.admits(part):
                kept.append((steps, part))
            else:
                strange |= dict.fromkeys(steps.tolist(), (source, part))
        block = elements_of([Stretch(block) for _, block in kept])
        given = np.concatenate([steps for steps, _ in kept]) if kept else np.empty(0, np.int64)
        if block is not None and len(kept) > 1:
            block = block.take(_order(given))
        if not (errors or strange):
            return Stretch(block)
        wrong = np.array(sorted([*errors, *strange]), np.int64)
        places = np.searchsorted(np.sort(given), wrong) + np.arange(len(wrong))
        failures: list[tuple[int, Exception]] = []
        for place, at in zip(places.tolist(), wrong.tolist(), strict=True):
            if at in strange:
                context = Context(self.label, self.where, self._count + place)
                failures.append((place, self._agreement.error(*strange[at], context)))
            else:
                failures.append((place, errors[at]))
        return Stretch(block, tuple(failures))

    def _dry_error(self, source: int, number: int) -> Exception:
        if self._on_empty == "repeat":
            message = f"Data set {source} of {self.label} cannot be repeated: it has no elements."
            hint = "Leave it out, or give it a weight of 0."
        else:
            message = f"Data set {source} of {self.label} has no more elements, and on_empty='error' allows no end."
            hint = "Bound the mixture with take(), or choose another on_empty."
        return OutOfRangeError(message, hint=hint, context=Context(self.label, self.where, number))

    def place(self) -> State:
        sources = [None if i in self._dry else cursor.state() for i, cursor in enumerate(self._cursors)]
        return [self._ended, self._count, self._agreement.kind, self._chooser.state(), sources]

    def go_to(self, place: State) -> None:
        self._ended, self._count, self._agreement.kind, chooser, sources = place
        self._chooser.restore(chooser)
        for i, (cursor, state) in enumerate(zip(self._cursors, sources, strict=True)):
            if state is None:
                self._dry.add(i)
            else:
                cursor.restore(state)

    def close(self) -> None:
        self._account.close()
        self._chooser.close()
        for cursor in self._cursors:
            cursor.close()


def _order(steps: np.ndarray) -> np.ndarray:
    """Return the order of steps. Each step occurs once."""
    first = int(steps.min())
    if int(steps.max()) - first >= 2 * len(steps):
        return np.argsort(steps)
    order = np.full(int(steps.max()) - first + 1, -1)
    order[steps - first] = np.arange(len(steps))
    return order[order >= 0] if len(order) > len(steps) else order
