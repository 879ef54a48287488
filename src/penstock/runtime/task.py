"""Task and Work: the units of work of a segment."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from penstock.physical.chained import Chained, ChainedStage, Ratios, ResumePlace
from penstock.physical.stage import Stage, State
from penstock.physical.stretch import Stretch
from penstock.physical.transform import RunAll, Transforms, run_all
from penstock.plan.node import NamedStep
from penstock.runtime.block_sizer import BlockSizer
from penstock.runtime.counts import CLOCKS
from penstock.runtime.free_order import FreeOrder, Log, OutOfTurn, Ranges


@dataclass(slots=True)
class Task:
    """A unit of work. Several tasks with the same ticket may fill one result.

    - `after`: The upstream state after the result, in the last task of the ticket.
    - `span`: The (first, count) of the upstream elements of this task.
    """

    ticket: int
    payload: Any
    after: State
    span: tuple[int, int]


class Work(ABC):
    """The work of a segment: one worker at a time calls `pull`, and many call `run`."""

    transforms: Transforms = ()
    start = 0  # upstream elements of the iteration that earlier runs have taken
    numbered = True  # False if `start` is unknown, after a filter that an earlier run had in the same stage
    inputs = 1  # upstream elements per element of the result
    over = False  # True if certainly no task follows
    most: int | None = None  # results that the next task may compute if pulling has side effects

    def __init__(
        self,
        upstream: Stage,
        transforms: Transforms,
        sizer: BlockSizer,
        step: NamedStep,
        run: RunAll = run_all,
        epoch: int = 0,
    ) -> None:
        self.upstream = upstream
        self.transforms = transforms
        self.sizer = sizer
        self.label = step.label
        self.where = step.where
        self._run = run
        self._epoch = epoch
        self._count = 0  # upstream elements that tasks have got since `start`
        self._ticket = 0

    @abstractmethod
    def pull(self) -> Task | None:
        """Return the next task in order, or None at the end. An upstream failure makes a task that fails."""

    @abstractmethod
    def run(self, task: Task) -> Stretch | None:
        """Run a task.

        Return None while other tasks of the ticket are missing. Failures are in the result, never raised.
        """

    def again(self, task: Task) -> Stretch:
        """Compute the result of a ticket again. `task` is its last task."""
        made = self.run(task)
        assert made is not None
        return made

    @abstractmethod
    def observe(self, task: Task, made: Stretch | None, seconds: float, cpu: float) -> None:
        """Learn from the result of a task and its cost: seconds of the clock and of the thread."""

    @abstractmethod
    def state(self) -> State:
        """Return the state after all pulled tasks."""

    def count(self) -> int:
        """Return the number of upstream elements before the next pull, since the beginning of the iteration."""
        return self.start + self._count

    @abstractmethod
    def restore(self, state: State, done: Ranges, first: Ranges, start: int) -> None:
        """Continue from a state, without the upstream elements in `done`, and with the elements in `first` first.

        `start` elements came before the state. Only a segment in free order has such ranges; its upstream is a
        `FreeOrder`.
        """

    @abstractmethod
    def ratios(self) -> Ratios | None:
        """Return the ratios, as in `ChainedStage`."""

    def under(self, state: State) -> tuple[State, int]:
        """Return the upstream state in a state, and the number of elements to drop after it."""
        return state, 0

    def at(self, place: ResumePlace) -> tuple[State, int, int]:
        """Return the state for a place, the number of the element there, and the number of results to drop after it."""
        return place.below, 0 if place.count is None else place.count - place.first, place.first + place.skip

    def part(self, count: int) -> None:
        """See `ChainedStage.part`."""
        message = f"{self.label} is one"
        raise AssertionError(message)

    def portion(self) -> None:
        """See `ChainedStage.portion`."""
        message = f"{self.label} drops by itself"
        raise AssertionError(message)

    def can_skip(self) -> bool:
        """See `Stage.can_skip`."""
        return False

    def skip(self, count: int) -> int:
        """See `Stage.skip`. Counts results."""
        message = f"{self.label} cannot skip"
        raise AssertionError(message)

    def pinned(self) -> int:
        """Return the number of next upstream elements that must come in a fixed order, because an earlier run did."""
        return self.upstream.pinned() if isinstance(self.upstream, FreeOrder) else 0

    def close(self) -> None:
        self.upstream.close()


class Worked(ChainedStage):
    """The common part of a segment and its inline form: the states of their work.

    A place is [state of the work, ranges done, ranges that come first, number of the next element of the input]. Only
    free order has such ranges. Otherwise the state is the state of a chain of steps.
    """

    def __init__(self, work: Work) -> None:
        super().__init__(work.label, (work.upstream,), work.where)
        self.work = work
        self.ratios = work.ratios()

    def made_by(self) -> Transforms:
        return self.work.transforms

    def chained(self, place: State, skip: int) -> State:
        assert self.ratios is not None
        state, _, _, count = place
        below, first = self.work.under(state)
        return Chained(below, first, count if self.work.numbered else None, self.ratios, skip, self.work.transforms)

    def go_on(self, place: ResumePlace) -> int:
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
    """A segment without workers: it runs one task after the other, and segments understand its state.

    If segments may return elements in free order, it keeps a log like theirs. A run with workers that resumes here
    first returns the elements that were returned here.
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
