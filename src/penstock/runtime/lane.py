"""Lane: one place in a plan where workers run ahead. Its segments share knobs, and what they did is added up here.

A segment lives for one pass over its part of the plan. A repetition makes new ones, and an interleave one per input;
the lane stays, and with it what was learnt.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol
from weakref import WeakSet

from penstock.block.block import Block
from penstock.block.numbers import Numbers
from penstock.errors import InvalidArgumentError
from penstock.physical.stretch import Stretch
from penstock.physical.transform import RunAll, Transform
from penstock.runtime.autotune.figures import Flow, Knobs, Limits


@dataclass(slots=True)
class Sums:
    """What grows while a segment works: see Flow."""

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

    def add(self, other: Sums) -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Member(Protocol):
    """A segment, as its lane sees it. All may be asked at any time, and answer as of about now."""

    def nudge(self) -> None:
        """The lane has opened."""

    def held(self) -> int:
        """Bytes made and not taken."""

    def held_between(self) -> tuple[int, int]:
        """The most and the least of these since the last call."""

    def busy(self) -> int:
        """Workers inside."""

    def busy_most(self) -> int:
        """The most of them at once since the last call."""

    def sums(self, now: float) -> Sums:
        """What it has done so far."""


class Window(Protocol):
    """How many bytes of results may be held; changes while a run goes on."""

    @property
    def limit(self) -> float: ...

    def measure(self, held: Callable[[], int]) -> None:
        """Who knows how many are held."""

    def ask(self, nbytes: int) -> None:
        """What the user wants made ahead comes to so many bytes."""

    def wish(self, nbytes: int | None) -> None:
        """So many would help."""


class Task(Protocol):
    """Transforms that worker processes know."""

    cpu_seconds: float  # that they have spent

    def __call__(self, transforms: Sequence[Transform], block: Block, numbers: Numbers) -> Stretch: ...


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
        self.obstacle: str | None = None  # why its functions cannot be in worker processes, which were tried
        self.want = 1  # elements that its Blocks are asked for; where a new segment begins
        self.window = window  # of all its segments together
        self._divided = 1  # among so many
        self.is_shared = False  # a segment may be kept out by others
        self._segments: WeakSet[Member] = WeakSet()
        self._limits = limits
        self.bounded = bounded
        self.reads = reads  # pulling is the work
        self._executors = executors
        self.here: RunAll | None = None  # who takes Blocks through its transforms in this process
        self._tasks: dict[Hashable, Task | None] = {}
        self._lock = threading.RLock()  # a garbage collection inside may close an abandoned run
        self._retired = Sums()  # of segments that have ended
        self._read = Sums()  # as of the last sample
        self.consumer: Lane | None = None  # that takes its results; None: the user's loop
        self._watchers: list[Member] = []
        self._inside = 0  # workers, counted where the lane is bounded
        window.measure(_weakly(self))

    def join(self, segment: Member) -> None:
        """Another segment works here; all that there are divide the window."""
        with self._lock:
            self._segments.add(segment)
            self._divided = len(self._segments)
            self.is_shared = self.bounded and self._divided > 1

    def retire(self, segment: Member, now: float) -> None:
        """A segment has ended: what it has counted stays. Idempotent."""
        with self._lock:
            if segment in self._segments:
                self._segments.discard(segment)
                self._retired.add(segment.sums(now))

    def _members(self) -> list[Member]:
        return list(self._segments)

    @property
    def held(self) -> int:
        """Bytes made and not taken."""
        with self._lock:
            return sum(segment.held() for segment in self._members())

    @property
    def busy(self) -> int:
        """Workers inside."""
        with self._lock:
            return sum(segment.busy() for segment in self._members())

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

    def settle(self) -> None:
        """Find out which executors may be chosen, unless that is known."""
        assert self.limits

    def open(self) -> bool:
        """Whether another worker may come in; of a bounded lane, and read without a lock."""
        return self._inside < self.knobs.parallelism

    def enter(self) -> bool:
        """A worker comes into a bounded lane, if it may."""
        with self._lock:
            if not self.open():
                return False
            self._inside += 1
            return True

    def leave(self) -> Sequence[Member] | None:
        """A worker goes; those who may have been kept out, or None where nobody was."""
        with self._lock:
            self._inside -= 1
            return tuple(self._watchers) if self._inside == self.knobs.parallelism - 1 else None

    def watch(self, segment: Member) -> None:
        """Somebody waits for this segment and would help it: to be told when the lane opens."""
        with self._lock:
            self._watchers.append(segment)

    def unwatch(self, segment: Member) -> None:
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

    def task(self, transforms: Sequence[Transform], make: Callable[[Sequence[Transform]], Task]) -> Task | None:
        """The transforms as worker processes know them, sent once; None where they cannot be sent."""
        if "process" not in self.limits.executors:  # any more
            return None
        kin = tuple(transform.kin() for transform in transforms)
        if kin not in self._tasks:
            with self._lock:
                if kin not in self._tasks:
                    self._tasks[kin] = self._sent(transforms, make)
        return self._tasks[kin]

    def _sent(self, transforms: Sequence[Transform], make: Callable[[Sequence[Transform]], Task]) -> Task | None:
        try:
            return make(transforms)
        except InvalidArgumentError as error:
            if not self.stay(error.message):
                raise
            return None

    def stay(self, obstacle: str | None = None) -> bool:
        """Its functions stay in this process, unless the user wants it otherwise; whether they do."""
        if "thread" not in self.limits.executors:
            return False
        self._limits = replace(self._limits, executors=("thread",))
        self.obstacle = self.obstacle or obstacle
        return True

    def away(self) -> float:
        """CPU seconds that were spent for it by others than its workers: processes, and threads with a time limit."""
        tasks = sum(task.cpu_seconds for task in list(self._tasks.values()) if task is not None)
        return tasks + float(getattr(self.here, "cpu_seconds", 0.0))

    def flow(self) -> Flow:
        """What was done since the last call."""
        limits = self.limits
        with self._lock:
            now = self._now()
            members = self._members()
            between = [segment.held_between() for segment in members]
            found = replace(
                self._difference(now, self._read, limits),
                held_most=sum(most for most, _ in between),
                held_least=sum(least for _, least in between),
                busy_most=sum(segment.busy_most() for segment in members),
            )
            self._read = now
            return found

    def total(self) -> Flow:
        """What was done since the beginning."""
        limits = self.limits
        with self._lock:
            return replace(self._difference(self._now(), Sums(), limits), held_most=self.held)

    def _now(self) -> Sums:
        now, sums = time.perf_counter(), replace(self._retired)
        for segment in self._members():
            sums.add(segment.sums(now))
        sums.run_cpu += self.away()
        return sums

    def _difference(self, now: Sums, before: Sums, limits: Limits) -> Flow:
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
            consumer=None if self.consumer is None else self.consumer.name,
        )


def _weakly(lane: Lane) -> Callable[[], int]:
    """What a lane holds, for those whom it holds."""
    known = weakref.ref(lane)

    def held() -> int:
        found = known()
        return 0 if found is None else found.held

    return held
