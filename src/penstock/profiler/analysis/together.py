"""together: runs a data set as `iter(ds)` does, and measures the rate and the waiting times."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.options import Options
from penstock.plan.node import Node
from penstock.profiler.analysis.alone import isolated
from penstock.profiler.analysis.meter import NOTHING, Costs, Enough, Meter, MeterKey
from penstock.runtime.autotune.figures import Flow, Knobs
from penstock.runtime.lane import Lane
from penstock.runtime.run import Iterator as RunIterator
from penstock.runtime.run import Run, RunSettings

_PERIOD = 0.01  # seconds between two samples


@dataclass(slots=True)
class LaneSamples:
    """Samples of a lane over time."""

    looks: int = 0
    busy: int = 0  # number of busy workers, summed over samples
    held: int = 0  # largest number of bytes
    settings: list[tuple[float, Knobs, str | None]] = field(default_factory=list)  # time, settings, and their reason

    def again(self, lane: Lane) -> None:
        self.looks += 1
        self.busy += lane.busy
        self.held = max(self.held, lane.held)
        self.settings.append((time.perf_counter(), lane.knobs, lane.reason))

    def turned(self) -> float:
        """Return the time of the last change of the number of workers or of the executor."""
        last = 0.0
        for (_, before, _), (at, after, _) in zip(self.settings, self.settings[1:], strict=False):
            if (before.parallelism, before.executor) != (after.parallelism, after.executor):
                last = at
        return last

    def mostly(self, since: float) -> tuple[Knobs, str | None] | None:
        """Return the settings that applied most of the time, and their reason. At the end, a trial may be running."""
        seen = [(knobs, reason) for at, knobs, reason in self.settings if at >= since]
        if not seen:
            return None
        most = Counter((knobs.parallelism, knobs.executor) for knobs, _ in seen).most_common(1)[0][0]
        return [each for each in seen if (each[0].parallelism, each[0].executor) == most][-1]


@contextmanager
def _watched(
    lanes: dict[int, Lane], seconds: float, mark: Callable[[], None], over: Callable[[], None]
) -> Iterator[dict[int, LaneSamples]]:
    """Sample `lanes` (by node) while the block runs. Request marks, and call `over` at the end of the time."""
    looks: dict[int, LaneSamples] = {}
    left = threading.Event()

    def look() -> None:
        began = time.perf_counter()
        marked = 0.0
        try:
            while not left.wait(_PERIOD):
                elapsed = time.perf_counter() - began
                if elapsed >= seconds:
                    return
                if elapsed >= marked + seconds / _MARKS:
                    marked = elapsed
                    mark()
                for node, lane in list(lanes.items()):
                    looks.setdefault(node, LaneSamples()).again(lane)
        finally:
            if not left.is_set():
                over()

    thread = threading.Thread(target=look, name="penstock-watch", daemon=True)
    thread.start()
    try:
        yield looks
    finally:
        left.set()
        thread.join()


_MIDDLE, _LATE = 0.5, 0.8
_MARKS = 20  # number of progress marks


@dataclass(slots=True)
class RunProgress:
    """The progress of a run at some time; `loop` is CPU time of the consumer's thread outside the stages."""

    at: float
    costs: Costs
    flows: dict[int, Flow]  # by node, since the start
    taken: int = 0
    failures: int = 0
    loop: float = 0.0
    cpu: float = 0.0  # CPU seconds of this process and its workers
    between: float = 0.0  # seconds so far between the end of an iteration and the start of the next


@dataclass(slots=True)
class Together:
    """Results of iterations as they run: between two marks, and at the end."""

    meter: Meter
    begin: RunProgress
    end: RunProgress
    costs: Costs  # costs between the marks; for parts without work between them, all costs
    looks: dict[int, LaneSamples] = field(default_factory=dict)  # by node
    passes: int = 0  # number of complete iterations
    epoch: int | None = None  # elements of the first of them
    first_failure: Exception | None = None

    @property
    def elapsed(self) -> float:
        """Seconds of running between the marks."""
        begin, end = self.begin, self.end
        return max(end.at - end.between - (begin.at - begin.between), 1e-9)

    def elements(self, key: MeterKey) -> float:
        """Return the number of output elements between the marks."""
        found = self.end.costs.get(key, NOTHING).elements
        return found - self.begin.costs.get(key, NOTHING).elements

    def flow(self, node: int, field: str) -> float:
        """Return the growth of a count of a node's lane between the marks."""
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
    """Iterate as `iter(ds)` does, for some seconds, in a loop that takes `consumer_seconds` per element.

    A data set that ends earlier is run again with empty caches, unless it yielded nothing.
    """
    meter = Meter(plan)
    loop = _Loop(meter, consumer_seconds)
    runs: list[Run] = []

    def over() -> None:
        meter.stop()
        for run in runs[-1:]:
            run.scope.abort()

    looks: dict[int, LaneSamples] = {}
    try:
        with _watched(meter.lanes, seconds, loop.ask_for_mark, over) as looks:
            for epoch in count() if most_passes is None else range(most_passes):
                with isolated(plan, options) as copy:
                    meter.begin(copy)
                    iterator = RunIterator(copy, options, epoch, RunSettings(dataset=dataset, meter=meter))
                    assert iterator._run is not None
                    runs[:] = [iterator._run]
                    with iterator:
                        gave = loop.take(iterator)
                if not gave or meter.stopped:  # also if `over` was called before this run could be aborted
                    break
    except Enough:
        pass
    last = loop.mark()
    first = _first(loop.marks, last, max((look.turned() for look in looks.values()), default=0.0))
    return Together(
        meter,
        begin=first,
        end=last,
        costs=_since(first.costs, last.costs),
        looks=looks,
        passes=loop.passes,
        epoch=loop.epoch,
        first_failure=loop.first_failure,
    )


def _first(marks: list[RunProgress], last: RunProgress, turned: float) -> RunProgress:
    """Return the mark from which to count, if elements came after it.

    The first half is a warm-up. So is the time before AUTOTUNE's last change, unless that was near the end.
    """
    start = marks[0].at
    middle, late = start + _MIDDLE * (last.at - start), start + _LATE * (last.at - start)
    settled = max(turned, middle) if turned < late else middle
    behind = [mark for mark in marks if settled <= mark.at <= late and mark.taken < last.taken]
    before = [mark for mark in marks if mark.at <= middle and mark.taken < last.taken]
    return behind[0] if behind else before[-1] if before else marks[0]


def _since(before: Costs, after: Costs) -> Costs:
    """Return the costs after subtraction of earlier ones; for keys without new elements, all costs."""
    return {
        key: cost - before[key] if key in before and cost.elements > before[key].elements else cost
        for key, cost in after.items()
    }


def _clocks() -> NDArray[np.float64]:
    """Return the seconds of wall time, of CPU time of this thread, and of CPU time of this process."""
    return np.array((time.perf_counter(), time.thread_time(), time.process_time()))


class _Loop:
    """Takes elements and records its progress. Work between iterations does not count."""

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
        self._between = np.zeros(3)  # of `_clocks`, between iterations
        self._left: NDArray[np.float64] | None = None  # `_clocks` at the end of the latest iteration
        self.marks = [self.mark()]

    def ask_for_mark(self) -> None:
        self._asked = True

    def mark(self) -> RunProgress:
        now = time.thread_time()
        loop = now - self._meter.cpu_of_this_thread() - self._marking
        between = self._between if self._left is None else self._between + (_clocks() - self._left)
        wall, thread, process = between.tolist()
        found = RunProgress(
            time.perf_counter(),
            self._meter.costs(),
            self._meter.flows(),
            self.taken,
            self._failures,
            loop - thread,
            time.process_time() + self._meter.away() - process,
            wall,
        )
        self._marking += time.thread_time() - now
        return found

    def take(self, iterator: RunIterator) -> bool:
        """Run a whole iteration, or as much as time allows; return True if an element came."""
        if self._left is not None:
            self._between += _clocks() - self._left
            self._left = None
        before = self.taken - self._failures
        self._take(iterator)
        self._left = _clocks()
        if not self._meter.stopped:
            self.passes += 1
            self.epoch = self.taken if self.epoch is None else self.epoch
        return self.taken - self._failures > before

    def _take(self, iterator: RunIterator) -> None:
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
