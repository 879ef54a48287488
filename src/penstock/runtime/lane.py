"""Lane: one place in a plan where workers run ahead. Its segments share knobs, and what they did is added up here.

A segment lives for one pass over its part of the plan. A repetition makes new ones, and an interleave one per input;
the lane stays, and with it what was learnt.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol
from weakref import WeakSet

from penstock.block.block import Block
from penstock.errors import InvalidArgumentError
from penstock.physical.stretch import Stretch
from penstock.physical.transform import RunAll, Transform
from penstock.runtime.autotune.figures import Flow, Knobs, Limits


class Clock:
    """Of one thread: time spent in upstream segments during the pull at hand, and the lane it pulls for."""

    __slots__ = ("aside", "aside_cpu", "lane")

    def __init__(self) -> None:
        self.aside = 0.0
        self.aside_cpu = 0.0
        self.lane: Lane | None = None


class _Clocks(threading.local):
    def __init__(self) -> None:
        self.own = Clock()


_CLOCKS = _Clocks()


def clock() -> Clock:
    """The calling thread's."""
    return _CLOCKS.own


@dataclass(slots=True, eq=False)
class Wait:
    """A consumer waits since then (seconds of `time.perf_counter`), or has been counted until then."""

    since: float


@dataclass(slots=True)
class Spent:
    """On one step of a worker: seconds by wall and by CPU, and the elements that it took."""

    pull: float = 0.0
    pull_cpu: float = 0.0
    waiting: float = 0.0
    run: float = 0.0
    run_cpu: float = 0.0
    inputs: int = 0


@dataclass(slots=True)
class _Sums:
    """What grows while the lane works."""

    inputs: int = 0
    elements: int = 0
    results: int = 0
    nbytes: int = 0
    run_seconds: float = 0.0
    run_cpu: float = 0.0
    pull_seconds: float = 0.0
    pull_cpu: float = 0.0
    waiting: float = 0.0
    starved: float = 0.0
    full: float = 0.0


class Watcher(Protocol):
    """A segment, as its lane sees it."""

    def nudge(self) -> None: ...


class Window(Protocol):
    """How many bytes of results may be held; changes while a run goes on."""

    @property
    def limit(self) -> float: ...

    def hold(self, nbytes: int) -> None:
        """So many are held now."""

    def wish(self, nbytes: int | None) -> None:
        """So many would help."""


class Task(Protocol):
    """Transforms that worker processes know."""

    cpu_seconds: float  # that they have spent

    def __call__(self, transforms: Sequence[Transform], block: Block, first: int) -> Stretch: ...


class Lane:
    """Knobs and counts of one place. Thread-safe.

    With `bounded` its segments together have no more workers than the knobs say; else each has a bound of its own.
    Where it `reads`, pulling is the work itself.
    `executors` is asked once, when somebody first wants to know, which executors may be chosen: looking through a
    function takes a moment.
    """

    def __init__(
        self,
        name: str,
        label: str,
        knobs: Knobs,
        limits: Limits,
        window: Window,
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
        self.reason: str | None = None  # of the knobs, in words
        self.window = window  # of all its segments together
        self._divided = 1  # among so many
        self._segments: WeakSet[Watcher] = WeakSet()
        self._limits = limits
        self._bounded = bounded
        self._reads = reads
        self._executors = executors
        self.here: RunAll | None = None  # who takes Blocks through its transforms in this process
        self._tasks: dict[Hashable, Task | None] = {}
        self._lock = threading.RLock()  # a garbage collection inside may close an abandoned run
        self._sums = _Sums()
        self._read = _Sums()  # as of the last sample
        self._full_since: float | None = None
        self._full_segments = 0
        self._waits: list[Wait] = []
        self._consumer: str | None = None
        self._watchers: list[Watcher] = []
        self.busy = 0
        self._busy_most = 0
        self.held = 0
        self._held_most = 0
        self._held_least = 0

    def join(self, segment: Watcher) -> None:
        """Another segment works here; all that there are divide the window."""
        with self._lock:
            self._segments.add(segment)
            self._divided = len(self._segments)

    @property
    def limit(self) -> float:
        """Bytes that one of its segments may hold."""
        return self.window.limit / self._divided

    @property
    def limits(self) -> Limits:
        if self._executors is not None:
            self._limits = replace(self._limits, executors=self._executors())
            self._executors = None
        return self._limits

    @property
    def is_prefetch(self) -> bool:
        """Whether its one worker only pulls."""
        return self._reads and not self._bounded

    def settle(self) -> None:
        """Find out which executors may be chosen, unless that is known."""
        assert self.limits

    def open(self) -> bool:
        """Whether another worker may come in; read without a lock."""
        return self.busy < self.knobs.parallelism or not self._bounded

    def enter(self) -> bool:
        with self._lock:
            if not self.open():
                return False
            self.busy += 1
            self._busy_most = max(self._busy_most, self.busy)
            return True

    def leave(self, spent: Spent) -> Sequence[Watcher] | None:
        """A worker goes; those who may have been kept out, or None where nobody was."""
        with self._lock:
            sums = self._sums
            if not self._reads:
                sums.pull_seconds += spent.pull
                sums.pull_cpu += spent.pull_cpu
            sums.waiting += spent.waiting
            sums.run_seconds += spent.pull if self._reads else spent.run
            sums.run_cpu += spent.pull_cpu if self._reads else spent.run_cpu
            sums.inputs += spent.inputs
            self.busy -= 1
            opened = self._bounded and self.busy == self.knobs.parallelism - 1
            return tuple(self._watchers) if opened else None

    def watch(self, segment: Watcher) -> None:
        """Somebody waits for this segment and would help it: to be told when the lane opens."""
        with self._lock:
            self._watchers.append(segment)

    def unwatch(self, segment: Watcher) -> None:
        with self._lock:
            self._watchers.remove(segment)

    def turn(self, knobs: Knobs, reason: str | None) -> None:
        """Set the knobs."""
        with self._lock:
            if knobs.window != self.knobs.window:
                self.window.wish(knobs.window)
            self.knobs, self.reason = knobs, reason
            watchers = list(self._watchers)
        for segment in watchers:
            segment.nudge()

    def stored(self, elements: int, nbytes: int) -> None:
        with self._lock:
            self._sums.results += 1
            self._sums.elements += elements
            self._sums.nbytes += nbytes
            self.held += nbytes
            self._held_most = max(self._held_most, self.held)
            self.window.hold(self.held)

    def taken(self, nbytes: int) -> None:
        with self._lock:
            self.held -= nbytes
            self._held_least = min(self._held_least, self.held)
            self.window.hold(self.held)

    def starve(self, wait: Wait, consumer: Lane | None) -> None:
        """A consumer waits for the next result."""
        with self._lock:
            self._waits.append(wait)
            self._consumer = None if consumer is None else consumer.name

    def feed(self, wait: Wait, now: float) -> None:
        """It waits no longer."""
        with self._lock:
            self._waits.remove(wait)
            self._sums.starved += now - wait.since

    def filled(self, change: int, now: float) -> None:
        """One more of its segments (1) has no room for another result, or one less (-1)."""
        with self._lock:
            self._full_segments += change
            if self._full_since is None:
                self._full_since = now if self._full_segments else None
            elif not self._full_segments:
                self._sums.full += now - self._full_since
                self._full_since = None

    def task(self, transforms: Sequence[Transform], make: Callable[[Sequence[Transform]], Task]) -> Task | None:
        """The transforms as worker processes know them, sent once; None where they cannot be sent."""
        kin = tuple(transform.kin() for transform in transforms)
        if kin not in self._tasks:
            with self._lock:
                if kin not in self._tasks:
                    self._tasks[kin] = self._sent(transforms, make)
        return self._tasks[kin]

    def _sent(self, transforms: Sequence[Transform], make: Callable[[Sequence[Transform]], Task]) -> Task | None:
        try:
            return make(transforms)
        except InvalidArgumentError:
            if "thread" not in self.limits.executors:
                raise
            self._limits = replace(self._limits, executors=("thread",))
            return None

    def away(self) -> float:
        """CPU seconds that were spent for it by others than its workers: processes, and threads with a time limit."""
        tasks = sum(task.cpu_seconds for task in list(self._tasks.values()) if task is not None)
        return tasks + float(getattr(self.here, "cpu_seconds", 0.0))

    def flow(self) -> Flow:
        """What was done since the last call."""
        limits = self.limits
        with self._lock:
            now = self._now()
            found = self._difference(now, self._read, limits)
            self._read = now
            self._busy_most = self.busy
            self._held_most = self._held_least = self.held
            return found

    def total(self) -> Flow:
        """What was done since the beginning."""
        limits = self.limits
        with self._lock:
            return self._difference(self._now(), _Sums(), limits)

    def _now(self) -> _Sums:
        now = time.perf_counter()
        if self._full_since is not None:
            self._sums.full += now - self._full_since
            self._full_since = now
        for wait in self._waits:
            self._sums.starved += now - wait.since
            wait.since = now
        return replace(self._sums, run_cpu=self._sums.run_cpu + self.away())

    def _difference(self, now: _Sums, before: _Sums, limits: Limits) -> Flow:
        return Flow(
            name=self.name,
            knobs=self.knobs,
            limits=limits,
            inputs=now.inputs - before.inputs,
            elements=now.elements - before.elements,
            results=now.results - before.results,
            nbytes=now.nbytes - before.nbytes,
            run_seconds=now.run_seconds - before.run_seconds,
            run_cpu=now.run_cpu - before.run_cpu,
            pull_seconds=now.pull_seconds - before.pull_seconds,
            pull_cpu=now.pull_cpu - before.pull_cpu,
            waiting=now.waiting - before.waiting,
            starved=now.starved - before.starved,
            full=now.full - before.full,
            held_most=self._held_most,
            held_least=self._held_least,
            busy_most=self._busy_most,
            consumer=self._consumer,
        )
