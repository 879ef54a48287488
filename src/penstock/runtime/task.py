"""Task and Work: what workers do for a segment, a piece at a time."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from penstock.physical.chained import Chained, ChainedStage, Place, Ratios
from penstock.physical.stage import Stage, State
from penstock.physical.stretch import Stretch
from penstock.physical.transform import Transform
from penstock.runtime.block_sizer import BlockSizer
from penstock.runtime.counts import CLOCKS
from penstock.runtime.free_order import FreeOrder, Log, OutOfTurn, Ranges


@dataclass(slots=True)
class Task:
    """A piece of work. Several tasks may fill one result: they share its ticket.

    `after` is the upstream state behind the result, with the ticket's last task; `span` the (first, count) of the
    upstream elements this task takes.
    """

    ticket: int
    payload: Any
    after: State
    span: tuple[int, int]


class Work(ABC):
    """What a segment does: `pull` by one worker at a time, `run` by many."""

    label: str
    where: str | None
    upstream: Stage
    transforms: Sequence[Transform] = ()
    sizer: BlockSizer
    start = 0  # upstream elements of the pass that earlier runs have had
    numbered = True  # whether that is known: not behind a filter that an earlier run had in the same stage
    inputs = 1  # upstream elements that an element of the result takes
    most: int | None = None  # results that may be made ahead by the next task, where somebody sees what is made

    @abstractmethod
    def pull(self) -> Task | None:
        """The next task in order, or None at the end. An upstream failure makes a task that fails."""

    @abstractmethod
    def run(self, task: Task) -> Stretch | None:
        """Do it; None while other tasks of the ticket are missing. Failures are part of the stretch, never raised."""

    def again(self, task: Task) -> Stretch:
        """Make the result of a ticket by itself, of which this is the last task."""
        made = self.run(task)
        assert made is not None
        return made

    @abstractmethod
    def observe(self, task: Task, made: Stretch | None, seconds: float, cpu: float) -> None:
        """Learn from a task that `run` has made this of, and what that took: seconds by the clock and of the thread."""

    @abstractmethod
    def state(self) -> State:
        """The state behind all tasks pulled so far."""

    @abstractmethod
    def count(self) -> int:
        """Upstream elements in front of what is pulled next, since the beginning of the pass."""

    @abstractmethod
    def restore(self, state: State, done: Ranges, first: Ranges, start: int) -> None:
        """Continue from a state, without the upstream elements in `done` and beginning with those in `first`.

        `start` is how many elements came before it. Only a segment in free order has such elements; its upstream is a
        `FreeOrder`.
        """

    @abstractmethod
    def ratios(self) -> Ratios | None:
        """As those of `ChainedStage`."""

    def under(self, state: State) -> tuple[State, int]:
        """The upstream state in a state, and how many elements are to be dropped from there."""
        return state, 0

    def at(self, place: Place) -> tuple[State, int, int]:
        """The state for a place, the number of the element there, and how many results are to be dropped then."""
        return place.below, 0 if place.count is None else place.count - place.first, place.first + place.skip

    def part(self, count: int) -> None:
        """As `ChainedStage.part`."""
        message = f"{self.label} is one"
        raise AssertionError(message)

    def portion(self) -> None:
        """As `ChainedStage.portion`."""
        message = f"{self.label} drops by itself"
        raise AssertionError(message)

    def can_skip(self) -> bool:
        """As `Stage.can_skip`."""
        return False

    def skip(self, count: int) -> int:
        """As `Stage.skip`, in results."""
        message = f"{self.label} cannot skip"
        raise AssertionError(message)

    def pinned(self) -> int:
        """How many of the next upstream elements have to be given in their order, because an earlier run did so."""
        return self.upstream.pinned() if isinstance(self.upstream, FreeOrder) else 0

    def close(self) -> None:
        self.upstream.close()


class Worked(ChainedStage):
    """What a segment and its inline form have in common: the states of their work.

    A place is [state of the work, ranges done, ranges that come first, number of the next element of the input]. Only
    free order has such ranges; elsewhere the state is one of steps in a row.
    """

    def __init__(self, work: Work) -> None:
        super().__init__(work.label, (work.upstream,), work.where)
        self.work = work
        self.ratios = work.ratios()

    def made_by(self) -> Sequence[Transform]:
        return self.work.transforms

    def chained(self, place: State, skip: int) -> State:
        assert self.ratios is not None
        state, _, _, count = place
        below, first = self.work.under(state)
        return Chained(below, first, count if self.work.numbered else None, self.ratios, skip, self.work.transforms)

    def go_on(self, place: Place) -> int:
        self.work.numbered = place.count is not None
        state, count, skip = self.work.at(place)
        self.go_to([state, [], [], count])
        return skip

    def part(self, count: int) -> None:
        self.work.part(count)
        self.inputs = (self.work.upstream,)

    def portion(self) -> None:
        self.work.portion()
        self.inputs = (self.work.upstream,)


class Direct(Worked):
    """A segment without workers: the same work, one task after the other, and a state that segments understand.

    Where these may give elements in free order it keeps a log as they do: whoever goes on from here with workers gives
    first what was given here.
    """

    def __init__(self, work: Work) -> None:
        super().__init__(work)
        self._log = Log() if isinstance(work.upstream, FreeOrder) else None
        self.alone = self._log is None

    @property
    def may_grow(self) -> bool:
        return self._log is not None or super().may_grow

    def make(self, want: int) -> Stretch | None:
        if self.seen:
            self.work.most = want
        while (task := self.work.pull()) is not None:
            started = time.perf_counter()
            cpu = CLOCKS.own.cpu(started)
            made = self.work.run(task)
            done = time.perf_counter()
            self.work.observe(task, made, done - started, CLOCKS.own.cpu(done) - cpu)
            if self._log is not None:
                self._log.add(*task.span)
            if made is not None:
                return made
        return None

    def can_skip(self) -> bool:
        return self.work.can_skip()

    def pass_over(self, count: int) -> int:
        return self.work.skip(count)

    def place(self) -> State:
        count = self.work.count()
        if self._log is None:
            return [self.work.state(), (), (), count]
        view = self._log.view(count - self.work.start)
        return [self.work.state(), OutOfTurn(view), view, count]

    def go_to(self, place: State) -> None:
        below, done, first, start = place
        self.work.restore(below, [tuple(span) for span in done], [tuple(span) for span in first], start)

    def close(self) -> None:
        self.work.close()
