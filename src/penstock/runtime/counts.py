"""Counts: measurements of a segment: its work, its waiting results, and the waits of its consumer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from operator import add, attrgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.runtime.lane import Lane


@dataclass(slots=True)
class Sums:
    """The sums of a segment, which only grow. A `Flow` is the difference of two Sums."""

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

    def plus(self, other: Sums) -> Sums:
        return Sums(*map(add, _values(self), _values(other)))


_values = attrgetter(*Sums.__slots__)  # several times faster than a loop: a short file has sums of its own

# Seconds of past waits, and the start of a present wait. The tuple is replaced as a whole, so that each reader sees a
# consistent pair.
_Time = tuple[float, float | None]
_NONE: _Time = (0.0, None)


def _until(found: _Time, now: float) -> float:
    """Return all seconds up to `now`."""
    before, since = found
    return before if since is None else before + max(now - since, 0.0)


class Counts:
    """The sums of one segment, and its extremes since the last call of its lane.

    The segment writes them under its lock. Only the consumer writes its own waits. Any thread may read them without a
    lock, and gets approximate present values. `sums` includes a wait that still lasts, and counts no wait twice.

    >>> counts = Counts()
    >>> counts.enter(); counts.made(elements=8, nbytes=64); counts.hold(64); counts.hold(0); counts.leave()
    >>> counts.sums(now=0.0).elements, counts.busy_most(), counts.held_between()
    (8, 1, (64, 0))
    """

    __slots__ = ("_busy_most", "_full", "_least", "_most", "_starved", "_sums", "busy", "held", "is_full")

    def __init__(self) -> None:
        self.busy = 0  # workers inside
        self.held = 0  # bytes that wait for the consumer
        self.is_full = False  # True if there was no room at the last report
        self._sums = Sums()
        self._busy_most = 0
        self._most = self._least = 0
        self._full = self._starved = _NONE

    # -- written by the segment

    def enter(self) -> None:
        """Count a worker that comes in."""
        self.busy += 1
        if self.busy > self._busy_most:
            self._busy_most = self.busy

    def leave(self) -> None:
        """Count a worker that leaves."""
        self.busy -= 1

    def hold(self, nbytes: int) -> None:
        """Set the number of bytes that wait for the consumer."""
        self.held = nbytes
        if nbytes > self._most:
            self._most = nbytes
        if nbytes < self._least:
            self._least = nbytes

    def worked(
        self,
        inputs: int,
        run: tuple[float, float] = (0.0, 0.0),
        pull: tuple[float, float] = (0.0, 0.0),
        waiting: float = 0.0,
    ) -> None:
        """Add the work of a worker. `run` and `pull` are wall and CPU seconds, and `waiting` is wall seconds."""
        sums = self._sums
        sums.inputs += inputs
        sums.run_seconds += run[0]
        sums.run_cpu += run[1]
        sums.pull_seconds += pull[0]
        sums.pull_cpu += pull[1]
        sums.waiting += waiting

    def made(self, elements: int, nbytes: int) -> None:
        """Count a result."""
        sums = self._sums
        sums.results += 1
        sums.elements += elements
        sums.nbytes += nbytes

    def full(self, now: float) -> None:
        """Record that there is no room for more results."""
        if not self.is_full:
            self.is_full = True
            self._full = self._full[0], now

    def not_full(self, now: float) -> None:
        """Record that there is room again."""
        if self.is_full:
            self.is_full = False
            self._full = _until(self._full, now), None

    def waited_for(self, now: float) -> None:
        """Record that the consumer waits for a result."""
        self._starved = self._starved[0], now

    def not_waited_for(self, now: float) -> None:
        """Record that the consumer continues."""
        if self._starved[1] is not None:
            self._starved = _until(self._starved, now), None

    # -- read by any thread

    @property
    def element_bytes(self) -> float:
        """Bytes per computed element, or 0 before the first."""
        return self._sums.nbytes / self._sums.elements if self._sums.elements else 0.0

    def held_between(self) -> tuple[int, int]:
        """Return the most and the least waiting bytes since the last call."""
        found = self._most, self._least
        self._most = self._least = self.held
        return found

    def busy_most(self) -> int:
        """Return the most workers inside at once since the last call."""
        found, self._busy_most = max(self._busy_most, self.busy), 0
        return found

    def sums(self, now: float | None = None) -> Sums:
        """Return the sums up to `now`."""
        now = time.perf_counter() if now is None else now
        return self._sums.plus(Sums(starved=_until(self._starved, now), full=_until(self._full, now)))


_SHORT = 5e-5  # seconds


class Clock:
    """The time of one thread in upstream segments during the present pull, and the lane of this pull.

    `queued` is the time that its task waited for a busy worker process. `sent` is a function that is called when that
    process has the task.
    """

    __slots__ = ("_read_at", "_read_cpu", "aside", "aside_cpu", "lane", "queued", "sent")

    def __init__(self) -> None:
        self.aside = 0.0
        self.aside_cpu = 0.0
        self.queued = 0.0
        self.lane: Lane | None = None
        self.sent: Callable[[], None] | None = None
        self._read_at = -1.0
        self._read_cpu = 0.0

    def has_sent(self) -> None:
        """Call `sent`, because the task is on its way or needs no wait."""
        sent, self.sent = self.sent, None
        if sent is not None:
            sent()

    def cpu(self, now: float) -> float:
        """Return the CPU seconds of the thread. `now` must be the present time.

        A reading takes almost a microsecond. Shortly after a reading, the elapsed time therefore counts as CPU time.
        """
        since = now - self._read_at
        if 0 <= since < _SHORT:
            return self._read_cpu + since
        self._read_at, self._read_cpu = now, time.thread_time()
        return self._read_cpu


class _ThreadClock(threading.local):
    """The clock of the calling thread, as `own`."""

    def __init__(self) -> None:
        self.own = Clock()


CLOCKS = _ThreadClock()


class TaskTimes:
    """Measures one task of a lane on the calling thread: its pull, then its run.

    Tasks nest: a worker that waits for an upstream segment works for that segment during the wait. The time of the
    inner work, and of the wait, is separate from the time of the task. `pull` and `run` are wall and CPU seconds, and
    `clock` is the clock of the thread.
    """

    __slots__ = ("_cpu", "_outer", "_pulled", "clock", "pull", "run", "started", "waited")

    def __init__(self, lane: Lane) -> None:
        clock = self.clock = CLOCKS.own
        self._outer = clock.aside, clock.aside_cpu, clock.queued, clock.lane
        clock.aside = clock.aside_cpu = clock.queued = 0.0
        clock.lane = lane
        self.pull = self.run = 0.0, 0.0
        self.waited = 0.0  # wall seconds
        self.started = time.perf_counter()
        self._cpu = clock.cpu(self.started)
        self._pulled = self.started, self._cpu

    def pulled(self) -> None:
        """Record the end of the pull. The run follows."""
        clock, now = self.clock, time.perf_counter()
        cpu = clock.cpu(now)
        self.pull = now - self.started - clock.aside, cpu - self._cpu - clock.aside_cpu
        self.waited = clock.aside
        self._pulled = now, cpu
        clock.lane = None

    def stop(self) -> float:
        """Record the end of the task, and return the time of this end."""
        clock, now = self.clock, time.perf_counter()
        cpu = clock.cpu(now)
        self.run = now - self._pulled[0] - clock.queued, cpu - self._pulled[1]
        aside, aside_cpu, queued, lane = self._outer
        clock.aside, clock.aside_cpu, clock.queued, clock.lane = aside, aside_cpu + cpu - self._cpu, queued, lane
        return now
