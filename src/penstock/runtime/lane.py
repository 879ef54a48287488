"""Lane: one place in a plan where workers run ahead. Its segments share knobs, and the lane adds up their counts.

A segment lives for one iteration over its part of the plan. A repetition makes new segments, and an interleave makes
one per input. The lane stays, with all measurements.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING
from weakref import WeakSet

from penstock.errors import InvalidArgumentError
from penstock.physical.transform import RunAll, Transforms
from penstock.runtime.autotune.figures import Flow, Knobs, TunerLimits
from penstock.runtime.counts import Counts, Sums

if TYPE_CHECKING:
    from penstock.runtime.memory.budget import MemoryWindow
    from penstock.runtime.processes.task import ProcessTask
    from penstock.runtime.segment import Segment


class Gate:
    """Admits up to `most` workers, or any number if `most` is None. Thread-safe.

    A worker that waits for the result of a segment would help the segment. If the gate is closed, the worker sleeps.
    `leave` returns the workers to wake when the gate opens again.

    >>> gate = Gate(1)
    >>> gate.enter(), gate.enter(), gate.is_open
    (True, False, False)
    >>> gate.leave(), gate.is_open
    ((), True)
    """

    def __init__(self, most: int | None) -> None:
        self.is_bounded = most is not None
        self.is_open = most is None or most > 0  # True if another worker may come in; read without a lock
        self._most = most
        self._inside = 0  # counted only with a limit
        self._lock = threading.RLock()  # reentrant: a garbage collection inside may close an abandoned run
        self._waiters: list[Segment] = []

    def enter(self) -> bool:
        """Let a worker in, and return True, unless the gate is closed."""
        if self._most is None:
            return True
        with self._lock:
            if not self.is_open:
                return False
            self._inside += 1
            self.is_open = self._inside < self._most
            return True

    def leave(self) -> Sequence[Segment] | None:
        """Let a worker out. Return the workers to wake, or None if the gate was not closed."""
        if self._most is None:
            return None
        with self._lock:
            self._inside -= 1
            self.is_open = self._inside < self._most
            return tuple(self._waiters) if self._inside == self._most - 1 else None

    def set(self, most: int) -> None:
        """Set the limit, if there is one. Workers inside stay until they are done."""
        if self._most is None:
            return
        with self._lock:
            self._most = most
            self.is_open = self._inside < most
            waiters = tuple(self._waiters)
        for waiter in waiters:
            waiter.nudge()

    def watch(self, waiter: Segment) -> None:
        """Add a waiting worker to be woken when the gate opens."""
        with self._lock:
            self._waiters.append(waiter)

    def unwatch(self, waiter: Segment) -> None:
        with self._lock:
            self._waiters.remove(waiter)


class ExecutorChoice:
    """The choice of the executor for all segments of one lane. Thread-safe.

    `ask` returns the executors that may be chosen, or none while they are not known. `limits` calls `ask` until it
    returns executors, and not before the first use, because the analysis of a function takes time. Without `ask`,
    `limits` lists the executors.
    """

    def __init__(self, limits: TunerLimits, ask: Callable[[], tuple[str, ...]] | None = None) -> None:
        self.obstacle: str | None = None  # reason why functions cannot run in worker processes, after a try
        self.here: RunAll | None = None  # runs the transforms in this process
        self._limits = limits
        self._ask = ask
        self._tasks: dict[Hashable, ProcessTask | None] = {}
        self._lock = threading.RLock()  # reentrant: a garbage collection inside may close an abandoned run

    @property
    def limits(self) -> TunerLimits:
        """The range in which the tuner may choose."""
        if self._ask is not None:
            with self._lock:  # a worker with its first Block and a sampling thread may call at the same time
                if self._ask is not None and (executors := self._ask()):
                    self._limits = replace(self._limits, executors=executors)
                    self._ask = None
        return self._limits

    def settle(self) -> None:
        """Find out which executors may be chosen."""
        assert self.limits

    def task(self, transforms: Transforms, make: Callable[[Transforms], ProcessTask]) -> ProcessTask | None:
        """Return the transforms as a task of worker processes, sent once, or None if they cannot be sent."""
        if "process" not in self.limits.executors:  # any more
            return None
        kin = tuple(transform.kin() for transform in transforms)
        if kin not in self._tasks:
            with self._lock:
                if kin not in self._tasks:
                    self._tasks[kin] = self._sent(transforms, make)
        return self._tasks[kin]

    def _sent(self, transforms: Transforms, make: Callable[[Transforms], ProcessTask]) -> ProcessTask | None:
        try:
            return make(transforms)
        except InvalidArgumentError as error:
            if not self.stay(error.message):
                raise
            return None

    def stay(self, obstacle: str | None = None) -> bool:
        """Let functions run in this process only, unless the user asked for processes. Return True on success."""
        if "thread" not in self.limits.executors:
            return False
        self._limits = replace(self._limits, executors=("thread",))
        self.obstacle = self.obstacle or obstacle
        return True

    def cpu_seconds(self) -> float:
        """Return the CPU seconds outside the workers of the lane: of processes, and of threads with a time limit."""
        tasks = sum(task.cpu_seconds for task in list(self._tasks.values()) if task is not None)
        return tasks + float(getattr(self.here, "cpu_seconds", 0.0))


_RESULTS = 1.5  # room for results per worker, complete or in progress: a worker without room is idle
_MOST_CALLS = 256  # most threads for parallel segments of one line, such as the sources that a function makes


class Lane:
    """The knobs of one place, and the sums of its segments. Thread-safe.

    - `gate`: Limits the workers of all segments together if the lane is `bounded`; otherwise each segment has a limit.
    - `choice`: Decides the executor of the transforms.
    - `window`: Limits the bytes of waiting results of all segments.
    - `reads`: True if pulling is the work itself.
    """

    def __init__(
        self,
        name: str,
        label: str,
        knobs: Knobs,
        limits: TunerLimits,
        window: MemoryWindow,
        *,
        where: str | None = None,
        bounded: bool = True,
        reads: bool = False,
        executors: Callable[[], tuple[str, ...]] | None = None,
    ) -> None:
        self.name = name
        self.label = label
        self.where = where
        self.knobs = knobs
        self.reason: str | None = None  # sentence about the knobs
        self.at_once = 1  # Blocks per worker process at once; each needs a waiting thread
        self.want = 1  # elements per Block; the start value of a new segment
        self.elements = 0  # elements of the last segment that ended
        self.is_shared = False  # True if other segments may close the gate
        self.reads = reads
        self.gate = Gate(knobs.parallelism if bounded else None)
        self.choice = ExecutorChoice(limits, executors)
        self.window = window
        self.consumer: Lane | None = None  # takes the results; None: the training loop
        self._divided = 1  # number of segments that divide the window
        self._asked: tuple[float, float, Knobs, int, int] | None = None  # arguments of the last request
        self._segments: WeakSet[Segment] = WeakSet()
        self._lock = threading.RLock()  # reentrant: a garbage collection inside may close an abandoned run
        self._retired = Sums()  # sums of ended segments
        self._told = Sums()  # sums at the last call of `flow`
        window.measure(_weakly(self))

    def join(self, segment: Segment) -> None:
        """Add a segment. All segments divide the window."""
        with self._lock:
            self._segments.add(segment)
            self._divided = len(self._segments)
            self.is_shared = self._divided > 1 and self.gate.is_bounded

    def retire(self, segment: Segment) -> None:
        """Remove a segment that has ended, and keep its sums. Idempotent."""
        with self._lock:
            if segment in self._segments:
                self._segments.discard(segment)
                self._retired = self._retired.plus(segment.counts.sums())
                if not self._segments:
                    self.window.ask(0)
                    self._asked = None  # last, because a worker of that segment may ask for more at the same time

    def _counts(self) -> list[Counts]:
        return [segment.counts for segment in list(self._segments)]

    @property
    def held(self) -> int:
        """Bytes that wait for the consumers."""
        with self._lock:
            return sum(counts.held for counts in self._counts())

    @property
    def busy(self) -> int:
        """Number of workers inside."""
        with self._lock:
            return sum(counts.busy for counts in self._counts())

    @property
    def limit(self) -> float:
        """Bytes of results that may wait in one segment."""
        return self.window.limit / self._divided

    @property
    def calls_each(self) -> int:
        """Number of workers that may be inside one segment."""
        return self.knobs.parallelism * self.at_once

    @property
    def calls(self) -> int:
        """Number of workers that may be inside all segments at once. A fixed number holds for each segment."""
        n = self.calls_each
        return n if self.gate.is_bounded else max(n, min(n * self._divided, _MOST_CALLS))

    def ask(self, result: float, wanted: float) -> None:
        """Ask for room for results of `result` bytes each, of which the user wants `wanted` bytes ahead."""
        grounds = result, wanted, self.knobs, self.at_once, self._divided
        if grounds != self._asked:
            self._asked = grounds
            self.window.ask(int(max((_RESULTS * self.calls + self._divided) * result, wanted)))

    def turn(self, knobs: Knobs, reason: str | None) -> None:
        """Set the knobs."""
        with self._lock:
            if knobs.window != self.knobs.window:
                self.window.wish(knobs.window)
            self.knobs, self.reason = knobs, reason
        self.gate.set(knobs.parallelism)

    def flow(self) -> Flow:
        """Return the measurements since the last call."""
        limits = self.choice.limits
        with self._lock:
            now = self._now()
            counts = self._counts()
            between = [each.held_between() for each in counts]
            found = replace(
                self._difference(now, self._told, limits),
                held_most=sum(most for most, _ in between),
                held_least=sum(least for _, least in between),
                busy_most=sum(each.busy_most() for each in counts),
            )
            self._told = now
            return found

    def total(self) -> Flow:
        """Return the measurements since the beginning."""
        limits = self.choice.limits
        with self._lock:
            return replace(self._difference(self._now(), Sums(), limits), held_most=self.held)

    def _now(self) -> Sums:
        now, sums = time.perf_counter(), self._retired.plus(Sums(run_cpu=self.choice.cpu_seconds()))
        for counts in self._counts():
            sums = sums.plus(counts.sums(now))
        return sums

    def _difference(self, now: Sums, before: Sums, limits: TunerLimits) -> Flow:
        done = {name: getattr(now, name) - getattr(before, name) for name in Sums.__slots__}
        consumer = None if self.consumer is None else self.consumer.name
        return Flow(name=self.name, knobs=self.knobs, limits=limits, consumer=consumer, **done)


def _weakly(lane: Lane) -> Callable[[], int]:
    """Return a function for the waiting bytes of a lane that does not keep the lane alive."""
    known = weakref.ref(lane)

    def held() -> int:
        found = known()
        return 0 if found is None else found.held

    return held
