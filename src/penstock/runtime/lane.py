"""Lane: one place in a plan where workers run ahead; its segments share knobs, and what they did is added up here.

A segment lives for one pass over its part of the plan. A repetition makes new ones, and an interleave one per input;
the lane stays, and with it what was learnt.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Protocol
from weakref import WeakSet

from penstock.block.block import Block
from penstock.block.numbers import Numbers
from penstock.errors import InvalidArgumentError
from penstock.physical.stretch import Stretch
from penstock.physical.transform import RunAll, Transform
from penstock.runtime.autotune.figures import Flow, Knobs, Limits
from penstock.runtime.counts import Counts, Sums


class Waiter(Protocol):
    """A worker that waits for a segment from which the gate may keep others out."""

    def nudge(self) -> None:
        """The gate has opened."""


class Gate:
    """Lets in as many workers as `most` says; any number where it is None. Thread-safe.

    A worker that waits for its segment's result would help with it. Kept out by the gate it sleeps, and `leave` gives
    those who have to be told that they may come in again.

    >>> gate = Gate(1)
    >>> gate.enter(), gate.enter(), gate.is_open
    (True, False, False)
    >>> gate.leave(), gate.is_open
    ((), True)
    """

    def __init__(self, most: int | None) -> None:
        self.is_bounded = most is not None
        self.is_open = most is None or most > 0  # whether another worker may come in; read without a lock
        self._most = most
        self._inside = 0  # counted where there is a bound
        self._lock = threading.RLock()  # a garbage collection inside may close an abandoned run
        self._waiters: list[Waiter] = []

    def enter(self) -> bool:
        """A worker comes in, if it may."""
        if self._most is None:
            return True
        with self._lock:
            if not self.is_open:
                return False
            self._inside += 1
            self.is_open = self._inside < self._most
            return True

    def leave(self) -> Sequence[Waiter] | None:
        """A worker goes; those who may have been kept out, or None where nobody was."""
        if self._most is None:
            return None
        with self._lock:
            self._inside -= 1
            self.is_open = self._inside < self._most
            return tuple(self._waiters) if self._inside == self._most - 1 else None

    def set(self, most: int) -> None:
        """Let in so many from now on, where there is a bound; those inside stay until they are done."""
        if self._most is None:
            return
        with self._lock:
            self._most = most
            self.is_open = self._inside < most
            waiters = tuple(self._waiters)
        for waiter in waiters:
            waiter.nudge()

    def watch(self, waiter: Waiter) -> None:
        """Somebody waits, to be told when the gate opens."""
        with self._lock:
            self._waiters.append(waiter)

    def unwatch(self, waiter: Waiter) -> None:
        with self._lock:
            self._waiters.remove(waiter)


class Task(Protocol):
    """Transforms that worker processes know."""

    cpu_seconds: float  # that they have spent

    def __call__(self, transforms: Sequence[Transform], block: Block, numbers: Numbers) -> Stretch: ...


class ExecutorChoice:
    """The choice for all segments of one lane. Thread-safe.

    `ask` tells the executors that may be chosen, and is asked once, when somebody first wants to know: looking through
    a function takes a moment. Without it `limits` name them.
    """

    def __init__(self, limits: Limits, ask: Callable[[], tuple[str, ...]] | None = None) -> None:
        self.obstacle: str | None = None  # why functions cannot be in worker processes, which were tried
        self.here: RunAll | None = None  # who takes Blocks through the transforms in this process
        self._limits = limits
        self._ask = ask
        self._tasks: dict[Hashable, Task | None] = {}
        self._lock = threading.RLock()  # a garbage collection inside may close an abandoned run

    @property
    def limits(self) -> Limits:
        """Between which the tuner may choose."""
        if self._ask is not None:
            with self._lock:  # a worker with its first Block and whoever samples the lane may ask at once
                if self._ask is not None:
                    self._limits = replace(self._limits, executors=self._ask())
                    self._ask = None
        return self._limits

    def settle(self) -> None:
        """Find out which executors may be chosen, unless that is known."""
        assert self.limits

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
        """Functions stay in this process, unless the user wants it otherwise; whether they do."""
        if "thread" not in self.limits.executors:
            return False
        self._limits = replace(self._limits, executors=("thread",))
        self.obstacle = self.obstacle or obstacle
        return True

    def cpu_seconds(self) -> float:
        """CPU seconds that others than the lane's workers spent: processes, and threads with a time limit."""
        tasks = sum(task.cpu_seconds for task in list(self._tasks.values()) if task is not None)
        return tasks + float(getattr(self.here, "cpu_seconds", 0.0))


_RESULTS = 1.5  # for each worker, that there is room for, made or in the making: who finds none stands idle
_MOST_CALLS = 256  # threads for segments that stand side by side on one line, as the sources that a function makes do


class Member(Protocol):
    """A segment, as its lane sees it."""

    @property
    def counts(self) -> Counts: ...


class Window(Protocol):
    """How many bytes of results may be held; changes while a run goes on."""

    @property
    def limit(self) -> float: ...

    def measure(self, held: Callable[[], int]) -> None:
        """Take the function that tells how many bytes are held."""

    def ask(self, nbytes: int) -> None:
        """What its workers make, or the user wants ahead, comes to so many bytes."""

    def wish(self, nbytes: int | None) -> None:
        """Note that `nbytes` would help."""


class Lane:
    """The knobs of one place, and the sums of its segments. Thread-safe.

    Its `gate` keeps the workers of all segments together to what the knobs say where it is `bounded`; else each segment
    has a bound of its own. `choice` knows which executors its transforms may have, `window` how many bytes of results
    all segments may hold. Where it `reads`, pulling is the work itself.
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
        self.at_once = 1  # Blocks that each worker process may have: as many threads ask and wait
        self.want = 1  # elements that its Blocks are asked for; where a new segment begins
        self.elements = 0  # that the last segment to end here has had
        self.is_shared = False  # whether a segment may be kept out by others
        self.reads = reads
        self.gate = Gate(knobs.parallelism if bounded else None)
        self.choice = ExecutorChoice(limits, executors)
        self.window = window
        self.consumer: Lane | None = None  # that takes its results; None: the user's loop
        self._divided = 1  # the window, among so many
        self._asked: tuple[float, float, Knobs, int, int] | None = None  # what the last request followed from
        self._segments: WeakSet[Member] = WeakSet()
        self._lock = threading.RLock()  # a garbage collection inside may close an abandoned run
        self._retired = Sums()  # of segments that have ended
        self._told = Sums()  # as of the last `flow`
        window.measure(_weakly(self))

    def join(self, segment: Member) -> None:
        """Another segment works here; all that there are divide the window."""
        with self._lock:
            self._segments.add(segment)
            self._divided = len(self._segments)
            self.is_shared = self._divided > 1 and self.gate.is_bounded

    def retire(self, segment: Member) -> None:
        """A segment has ended: what it has counted stays. Idempotent."""
        with self._lock:
            if segment in self._segments:
                self._segments.discard(segment)
                self._retired.add(segment.counts.sums())
                if not self._segments:
                    self.window.ask(0)
                    self._asked = None  # behind it: a worker of that segment may be asking for more just now

    def _counts(self) -> list[Counts]:
        return [segment.counts for segment in list(self._segments)]

    @property
    def held(self) -> int:
        """Bytes made and not taken."""
        with self._lock:
            return sum(counts.held for counts in self._counts())

    @property
    def busy(self) -> int:
        """Workers inside."""
        with self._lock:
            return sum(counts.busy for counts in self._counts())

    @property
    def limit(self) -> float:
        """Bytes that one of its segments may hold."""
        return self.window.limit / self._divided

    @property
    def calls_each(self) -> int:
        """Workers that may be inside one of its segments."""
        return self.knobs.parallelism * self.at_once

    @property
    def calls(self) -> int:
        """Workers that may be inside all of its segments at once: of a few, as many as each was told to have."""
        n = self.calls_each
        return n if self.gate.is_bounded else max(n, min(n * self._divided, _MOST_CALLS))

    def ask(self, result: float, wanted: float) -> None:
        """Results of so many bytes are made, and the user wants so many bytes of them ahead: there shall be room."""
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
        """What was done since the last call."""
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
        """What was done since the beginning."""
        limits = self.choice.limits
        with self._lock:
            return replace(self._difference(self._now(), Sums(), limits), held_most=self.held)

    def _now(self) -> Sums:
        now, sums = time.perf_counter(), replace(self._retired)
        for counts in self._counts():
            sums.add(counts.sums(now))
        sums.run_cpu += self.choice.cpu_seconds()
        return sums

    def _difference(self, now: Sums, before: Sums, limits: Limits) -> Flow:
        done = {name: getattr(now, name) - getattr(before, name) for name in Sums.__slots__}
        consumer = None if self.consumer is None else self.consumer.name
        return Flow(name=self.name, knobs=self.knobs, limits=limits, consumer=consumer, **done)


def _weakly(lane: Lane) -> Callable[[], int]:
    """What a lane holds, for those whom it holds."""
    known = weakref.ref(lane)

    def held() -> int:
        found = known()
        return 0 if found is None else found.held

    return held
