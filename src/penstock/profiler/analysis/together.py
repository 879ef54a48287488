"""together: a pass as `iter(ds)` makes it. It tells what is reached, and who waits for whom."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from penstock.options import Options
from penstock.plan.node import Node
from penstock.profiler.analysis.isolated import isolated
from penstock.profiler.analysis.meter import NOTHING, Costs, Enough, Key, Meter
from penstock.profiler.analysis.watch import Look, Watch
from penstock.runtime.autotune.figures import Flow
from penstock.runtime.run import Iterator, Run, Settings

_MIDDLE, _LATE = 0.5, 0.8
_MARKS = 20  # times at which it is looked how far it is


@dataclass(slots=True)
class Mark:
    """How far a pass was at some time; `loop` is CPU time of the thread that takes elements, outside the stages."""

    at: float
    costs: Costs
    flows: dict[int, Flow]  # by node, since the beginning
    taken: int = 0
    failures: int = 0
    loop: float = 0.0
    cpu: float = 0.0  # of this process and its workers
    between: float = 0.0  # seconds up to here in which one pass was over and the next had not begun


@dataclass(slots=True)
class Together:
    """What passes as they run showed: between two marks, and at the end."""

    meter: Meter
    begin: Mark
    end: Mark
    costs: Costs  # between the marks; of what did nothing there, all
    looks: dict[int, Look] = field(default_factory=dict)  # by node
    passes: int = 0  # that came to their end
    epoch: int | None = None  # elements of the first of them
    first_failure: Exception | None = None

    @property
    def elapsed(self) -> float:
        """Seconds of running between the marks."""
        begin, end = self.begin, self.end
        return max(end.at - end.between - (begin.at - begin.between), 1e-9)

    def elements(self, key: Key) -> float:
        """How many elements went out between the marks."""
        found = self.end.costs.get(key, NOTHING).elements
        return found - self.begin.costs.get(key, NOTHING).elements

    def flow(self, node: int, field: str) -> float:
        """How much a count of a node's lane grew between the marks."""
        before, after = self.begin.flows.get(node), self.end.flows.get(node)
        return (getattr(after, field) if after else 0.0) - (getattr(before, field) if before else 0.0)


def together(
    plan: Node,
    options: Options,
    seconds: float,
    consumer_seconds: float,
    dataset: Callable[[Node], Any],
    most_passes: int | None = None,
) -> Together:
    """Passes as `iter(ds)` makes them, for some seconds, in a loop that takes so long for an element.

    A data set that ends before is run again, with caches that are empty again, unless it gave nothing.
    """
    meter = Meter(plan)
    loop = _Loop(meter, consumer_seconds)
    runs: list[Run] = []

    def over() -> None:
        meter.stop()
        for run in runs[-1:]:
            run.scope.abort()

    watch = Watch(meter.lanes, seconds, seconds / _MARKS, loop.ask_for_mark, over)
    try:
        with watch:
            for epoch in count() if most_passes is None else range(most_passes):
                with isolated(plan, options) as copy:
                    meter.begin(copy)
                    iterator = Iterator(copy, options, epoch, Settings(dataset=dataset, meter=meter))
                    assert iterator._run is not None
                    runs[:] = [iterator._run]
                    with iterator:
                        gave = loop.take(iterator)
                if not gave or meter.stopped:  # also if `over` came before this run was there to be aborted
                    break
    except Enough:
        pass
    last = loop.mark()
    first = _first(loop.marks, last, max((look.turned() for look in watch.looks.values()), default=0.0))
    return Together(
        meter,
        begin=first,
        end=last,
        costs=_since(first.costs, last.costs),
        looks=watch.looks,
        passes=loop.passes,
        epoch=loop.epoch,
        first_failure=loop.first_failure,
    )


def _first(marks: list[Mark], last: Mark, turned: float) -> Mark:
    """From where to count, if something came after it.

    What comes before the middle is running in, and so is what comes before AUTOTUNE's last change, unless that was at
    the end.
    """
    start = marks[0].at
    middle, late = start + _MIDDLE * (last.at - start), start + _LATE * (last.at - start)
    settled = max(turned, middle) if turned < late else middle
    behind = [mark for mark in marks if settled <= mark.at <= late and mark.taken < last.taken]
    before = [mark for mark in marks if mark.at <= middle and mark.taken < last.taken]
    return behind[0] if behind else before[-1] if before else marks[0]


def _since(before: Costs, after: Costs) -> Costs:
    """What was added; where nothing was, all."""
    return {
        key: cost - before[key] if key in before and cost.elements > before[key].elements else cost
        for key, cost in after.items()
    }


@dataclass(frozen=True, slots=True)
class _Clocks:
    """Seconds of wall time, and of CPU time of this thread and of this process."""

    wall: float = 0.0
    thread: float = 0.0
    process: float = 0.0

    @classmethod
    def now(cls) -> _Clocks:
        return cls(time.perf_counter(), time.thread_time(), time.process_time())

    def __add__(self, other: _Clocks) -> _Clocks:
        return _Clocks(self.wall + other.wall, self.thread + other.thread, self.process + other.process)

    def __sub__(self, other: _Clocks) -> _Clocks:
        return _Clocks(self.wall - other.wall, self.thread - other.thread, self.process - other.process)


class _Loop:
    """Takes elements, and notes now and then how far it is. What is done between passes does not count."""

    def __init__(self, meter: Meter, consumer_seconds: float) -> None:
        self.taken = 0
        self.first_failure: Exception | None = None
        self._failures = 0
        self._marking = 0.0
        self._meter = meter
        self._pause = consumer_seconds
        self._asked = False
        self.passes = 0
        self.epoch: int | None = None
        self._between = _Clocks()
        self._left: _Clocks | None = None  # when the latest pass was over
        self.marks = [self.mark()]

    def ask_for_mark(self) -> None:
        self._asked = True

    def mark(self) -> Mark:
        now = time.thread_time()
        loop = now - self._meter.cpu_of_this_thread() - self._marking
        between = self._between if self._left is None else self._between + (_Clocks.now() - self._left)
        found = Mark(
            time.perf_counter(),
            self._meter.costs(),
            self._meter.flows(),
            self.taken,
            self._failures,
            loop - between.thread,
            time.process_time() + self._meter.away() - between.process,
            between.wall,
        )
        self._marking += time.thread_time() - now
        return found

    def take(self, iterator: Iterator) -> bool:
        """Make a whole pass, or what there is time for; whether any element came."""
        if self._left is not None:
            self._between += _Clocks.now() - self._left
            self._left = None
        before = self.taken - self._failures
        self._take(iterator)
        self._left = _Clocks.now()
        if not self._meter.stopped:
            self.passes += 1
            self.epoch = self.taken if self.epoch is None else self.epoch
        return self.taken - self._failures > before

    def _take(self, iterator: Iterator) -> None:
        while True:
            try:
                for _ in iterator:
                    self.taken += 1
                    if self._pause:
                        time.sleep(self._pause)
                    if self._asked:
                        self._asked = False
                        self.marks.append(self.mark())
                    if self._meter.stopped:
                        return
            except Exception as error:
                self.taken += 1
                self._failures += 1
                self.first_failure = self.first_failure or error
                if self._meter.stopped:
                    return
            else:
                return
