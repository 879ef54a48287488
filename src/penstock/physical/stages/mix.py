"""Mix: one stream out of several, each element from the source that a chooser names."""

from __future__ import annotations

import heapq
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

import numpy as np

from penstock.block.block import Block
from penstock.block.column import Column, ListColumn
from penstock.block.footprint import footprint
from penstock.block.spec import LeafSpec, TensorSpec, dtype_name, spec_of
from penstock.block.structure import Structure
from penstock.errors import Context, InvalidTypeError, OutOfRangeError
from penstock.physical.memory import UNCOUNTED, Memory
from penstock.physical.stage import Cursor, Stage, State, StretchStage
from penstock.physical.stretch import Stretch, failed, together


class Agreement:
    """Admits Blocks of the first one's structure, dtypes and ranks; of any rank, where signatures leave that open.

    `kind` is what the first element was, as text, and part of a state. Nothing is looked at where the kinds are
    `known` to agree.
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
        """Why an element of the joined stream, which is one of this Block's, is not admitted."""
        message = f"Data set {source} gives {self._kind(block)}; the elements before it were {self.kind}."
        hint = "All data sets that are joined have one nest, with the same dtypes and ranks: map them to it first."
        return InvalidTypeError(message, hint=hint, context=context)

    def _kind(self, block: Block) -> str:
        leaves = [_leaf_text(column) for column in block.columns]
        if self._any_rank:
            leaves = [leaf.partition(" of rank ")[0] for leaf in leaves]
        return _text(block.structure, iter(leaves))


def _text(structure: Structure, leaves: Iterator[str]) -> str:
    """The nest as text; dict keys are sorted, since their order makes no difference."""
    if structure.is_leaf:
        return next(leaves)
    if not structure.children:
        return structure.describe()
    parts = [_text(child, leaves) for child in structure.children]
    if structure.kind is tuple:
        return f"({', '.join(parts)})"
    named = ", ".join(sorted(f"{name}: {part}" for name, part in zip(structure.names, parts, strict=True)))
    return f"{{{named}}}" if structure.kind is dict else f"{getattr(structure.kind, '__name__', '')}({named})"


def _leaf_text(column: Column) -> str:
    spec: LeafSpec = spec_of(column.items[0]) if isinstance(column, ListColumn) else column.spec()
    return f"{dtype_name(spec.dtype)} of rank {len(spec.shape)}" if isinstance(spec, TensorSpec) else repr(spec)


FAILED = -1  # a pick that is an error of its own
NOTHING = -2  # a step that gives no element and takes no position
END = -3  # the stream ends here

# A round costs some microseconds for each source. Of many sources more steps are taken at a time than are asked for.
_BULK = 256  # where so many are asked for
_STEPS_EACH = 512  # for each source
_MORE = 4  # times as many in the next round, where one is quick
_SECONDS, _BYTES = 0.02, 1 << 22  # where a round takes less than this


class Choices(ABC):
    """The next steps: `picks` are sources, or one of the marks above; `errors` belong to those that are FAILED."""

    picks: np.ndarray
    errors: dict[int, Exception]

    @abstractmethod
    def ran_dry(self, source: int, at: int) -> None:
        """Choose again from step `at` on, without a source."""


class Chooser(ABC):
    """Says which source each step takes its element from."""

    inputs: tuple[Stage, ...] = ()
    foreseen = False  # whether later steps are certain already, whenever they are asked for

    @abstractmethod
    def next(self, want: int, dry: Collection[int]) -> Choices | None:
        """Up to `want` steps, without picks of sources in `dry`; None at the end."""

    @abstractmethod
    def state(self) -> State: ...

    @abstractmethod
    def restore(self, state: State) -> None: ...

    def close(self) -> None:
        for stage in self.inputs:
            stage.close()


@dataclass(slots=True)
class _Queue:
    """The steps that take from one source, and how many have been taken."""

    cursor: Cursor
    steps: np.ndarray
    taken: int = 0

    def uncovered(self) -> int | None:
        """The first step whose element is not at hand."""
        covered = self.taken + self.cursor.available()
        return int(self.steps[covered]) if covered < len(self.steps) else None


@dataclass(slots=True)
class _Dealt:
    """What the steps so far gave."""

    parts: list[tuple[int, np.ndarray, Block]] = field(default_factory=list)  # (source, steps, their elements)
    errors: dict[int, Exception] = field(default_factory=dict)

    def take(self, source: int, queue: _Queue, upto: int) -> None:
        """The elements at hand for the queue's steps up to its step number `upto`."""
        if upto > queue.taken:
            block = queue.cursor.take_available(upto - queue.taken)
            self.parts.append((source, queue.steps[queue.taken : upto], block))
            queue.taken = upto


class Mix(StretchStage):
    """Elements of the sources in the chooser's order; a failure in a source takes the place of its step.

    `on_empty` says what happens when a step picks a source that has ended: "continue" without it, "stop", or "error".
    With "repeat" the sources have no end, unless they have no elements either, which is an error too.
    """

    def __init__(
        self,
        sources: tuple[Stage, ...],
        chooser: Chooser,
        on_empty: str,
        label: str,
        where: str | None,
        *,
        same_kind: bool,
        any_rank: bool = False,
        memory: Memory = UNCOUNTED,
    ) -> None:
        super().__init__(label, (*chooser.inputs, *sources), where)
        self._account = memory.account("at hand", label, where)
        self._at_hand: dict[int, int] = {}  # bytes of each source's Block
        self._cursors = [Cursor(stage) for stage in sources]
        self._chooser = chooser
        self._on_empty = on_empty
        self._agreement = Agreement(known=same_kind, any_rank=any_rank)
        self._dry: set[int] = set()
        self._ended = False
        self._count = 0
        self._at_once = 0  # steps of the next round, where fewer are asked for

    def make(self, want: int) -> Stretch | None:
        if self.seen_below:  # an element is not to wait for those of the next steps
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
        self._account.hold(sum(self._at_hand.values()) + (nbytes if steps > want else 0))
        self.cuts = self.cuts or steps > want
        quick = time.perf_counter() - began < _SECONDS and nbytes < _BYTES
        self._at_once = min(_MORE * steps, _STEPS_EACH * len(self._cursors)) if quick else steps // 2
        return made

    def _deal_all(self, choices: Choices, dealt: _Dealt) -> int:
        """Deal the steps and return how many there are; fewer than chosen where the stream ends."""
        at = 0
        while True:
            ends = np.flatnonzero(choices.picks[at:] == END)
            stop = at + int(ends[0]) if len(ends) else len(choices.picks)
            found = self._deal(choices.picks, at, stop, dealt)
            if found is None:
                self._ended = self._ended or len(ends) > 0
                return stop
            at, source = found
            self._dry.add(source)
            self._cursors[source].close()
            if self._on_empty in ("error", "repeat"):
                dealt.errors[at] = self._dry_error(source, self._count + at)
            if self._on_empty != "continue" or len(self._dry) == len(self._cursors):
                self._ended = True
                return at + (at in dealt.errors)
            choices.ran_dry(source, at)

    def _deal(self, picks: np.ndarray, start: int, stop: int, dealt: _Dealt) -> tuple[int, int] | None:
        """Take the elements of the steps from `start` to `stop`, or up to one whose source has ended: (step, source).

        The step that needs more than is at hand comes first; nothing is taken for steps behind it before that is here.
        """
        queues = self._queues(picks, start, stop)
        waiting = [(at, source) for source, queue in queues.items() if (at := queue.uncovered()) is not None]
        heapq.heapify(waiting)
        while waiting:
            at, source = heapq.heappop(waiting)
            queue = queues[source]
            dealt.take(source, queue, queue.taken + queue.cursor.available())
            try:
                more = queue.cursor.fill(len(queue.steps))
                self._at_hand[source] = footprint(queue.cursor.peek()) if more else 0
            except Exception as error:
                dealt.errors[at] = failed(error)
                queue.taken += 1
                more = True
            if not more:
                for other, behind in queues.items():
                    dealt.take(other, behind, int(np.searchsorted(behind.steps, at)))
                return at, source
            following = queue.uncovered()
            if following is not None:
                heapq.heappush(waiting, (following, source))
        for source, queue in queues.items():
            dealt.take(source, queue, len(queue.steps))
        return None

    def _queues(self, picks: np.ndarray, start: int, stop: int) -> dict[int, _Queue]:
        window = picks[start:stop]
        order = np.argsort(window.astype(np.int16) if len(self._cursors) < 1 << 15 else window, kind="stable")
        counts = np.bincount(window[window >= 0], minlength=len(self._cursors))
        order += start
        ends = (len(window) - counts.sum() + np.cumsum(counts)).tolist()
        cursors, sizes = self._cursors, counts.tolist()
        return {
            source: _Queue(cursors[source], order[end - size : end])
            for source, (end, size) in enumerate(zip(ends, sizes, strict=True))
            if size
        }

    def _joined(self, dealt: _Dealt, errors: dict[int, Exception]) -> Stretch:
        kept = []
        strange: dict[int, tuple[int, Block]] = {}
        for source, steps, part in sorted(dealt.parts, key=lambda part: int(part[1][0])):
            if self._agreement.admits(part):
                kept.append((steps, part))
            else:
                strange |= dict.fromkeys(steps.tolist(), (source, part))
        block, nests = together([Stretch(block) for _, block in kept])
        given = np.concatenate([steps for steps, _ in kept]) if kept else np.empty(0, np.int64)
        if block is not None and len(kept) > 1:
            order = _order(given)
            block = block.take(order)
            nests = None if nests is None else tuple(nests[i] for i in order.tolist())
        if not (errors or strange):
            return Stretch(block, nests=nests)
        wrong = np.array(sorted([*errors, *strange]), np.int64)
        places = np.searchsorted(np.sort(given), wrong) + np.arange(len(wrong))
        failures: list[tuple[int, Exception]] = []
        for place, at in zip(places.tolist(), wrong.tolist(), strict=True):
            if at in strange:
                context = Context(self.label, self.where, self._count + place)
                failures.append((place, self._agreement.error(*strange[at], context)))
            else:
                failures.append((place, errors[at]))
        return Stretch(block, tuple(failures), nests)

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
    """Which of some steps, each there once, comes first, second and so on."""
    first = int(steps.min())
    if int(steps.max()) - first >= 2 * len(steps):
        return np.argsort(steps)
    order = np.full(int(steps.max()) - first + 1, -1)
    order[steps - first] = np.arange(len(steps))
    return order[order >= 0] if len(order) > len(steps) else order
