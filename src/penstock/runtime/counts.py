"""Counts: what a segment has done so far, how full it was, and who waited for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.runtime.lane import Lane


@dataclass(slots=True)
class Sums:
    """What grows while a segment works: see `Flow`, which is the difference of two."""

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


# Seconds of what is over, and since when it goes on again. Replaced as a whole, so that nobody sees half of it.
_Time = tuple[float, float | None]
_NONE: _Time = (0.0, None)


def _until(found: _Time, now: float) -> float:
    """Seconds in all."""
    before, since = found
    return before if since is None else before + max(now - since, 0.0)


class Counts:
    """Sums of one segment, and the extremes since its lane last asked.

    The segment writes them under its lock, but for the waits of its consumer, who alone notes these. Anybody reads them
    at any time without one, as of about now: `sums` counts a wait that still goes on, and none twice.

    >>> counts = Counts()
    >>> counts.enter(); counts.made(elements=8, nbytes=64); counts.hold(64); counts.hold(0); counts.leave()
    >>> counts.sums(now=0.0).elements, counts.busy_most(), counts.held_between()
    (8, 1, (64, 0))
    """

    __slots__ = ("_busy_most", "_full", "_least", "_most", "_starved", "_sums", "busy", "held", "is_full")

    def __init__(self) -> None:
        self.busy = 0  # workers inside
        self.held = 0  # bytes made and not taken
        self.is_full = False  # whether there was no room when that was last said
        self._sums = Sums()
        self._busy_most = 0
        self._most = self._least = 0
        self._full = self._starved = _NONE

    # -- written by the segment

    def enter(self) -> None:
        """A worker comes in."""
        self.busy += 1
        if self.busy > self._busy_most:
            self._busy_most = self.busy

    def leave(self) -> None:
        """A worker goes."""
        self.busy -= 1

    def hold(self, nbytes: int) -> None:
        """Note that `nbytes` are held from now on."""
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
        """A worker has done something: `run` and `pull` are seconds by the clock and of CPU, `waiting` by the clock."""
        sums = self._sums
        sums.inputs += inputs
        sums.run_seconds += run[0]
        sums.run_cpu += run[1]
        sums.pull_seconds += pull[0]
        sums.pull_cpu += pull[1]
        sums.waiting += waiting

    def made(self, elements: int, nbytes: int) -> None:
        """A result came out."""
        sums = self._sums
        sums.results += 1
        sums.elements += elements
        sums.nbytes += nbytes

    def full(self, now: float) -> None:
        """There is no room for more, unless that was known already."""
        if not self.is_full:
            self.is_full = True
            self._full = self._full[0], now

    def not_full(self, now: float) -> None:
        """There is room again."""
        if self.is_full:
            self.is_full = False
            self._full = _until(self._full, now), None

    def waited_for(self, now: float) -> None:
        """The consumer waits for a result."""
        self._starved = self._starved[0], now

    def not_waited_for(self, now: float) -> None:
        """It goes on."""
        if self._starved[1] is not None:
            self._starved = _until(self._starved, now), None

    # -- read by anybody

    @property
    def element_bytes(self) -> float:
        """Bytes of an element that came out; 0 before the first."""
        return self._sums.nbytes / self._sums.elements if self._sums.elements else 0.0

    def held_between(self) -> tuple[int, int]:
        """The most and the least bytes held since the last call."""
        found = self._most, self._least
        self._most = self._least = self.held
        return found

    def busy_most(self) -> int:
        """The most workers inside at once since the last call."""
        found, self._busy_most = max(self._busy_most, self.busy), 0
        return found

    def sums(self, now: float | None = None) -> Sums:
        """What was done until now."""
        now = time.perf_counter() if now is None else now
        return replace(self._sums, starved=_until(self._starved, now), full=_until(self._full, now))


_SHORT = 5e-5  # seconds


class Clock:
    """One thread's time in upstream segments during the pull at hand, and the lane it pulls for.

    `queued` is how long its task waited for a worker process that had something else to do first, and `sent` what is to
    be called when that process has it.
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
        """The task is on its way, or need not be waited for."""
        sent, self.sent = self.sent, None
        if sent is not None:
            sent()

    def cpu(self, now: float) -> float:
        """CPU seconds of the thread at `now`, which is now.

        To read them takes most of a microsecond: a short time since the last reading is taken for CPU time.
        """
        since = now - self._read_at
        if 0 <= since < _SHORT:
            return self._read_cpu + since
        self._read_at, self._read_cpu = now, time.thread_time()
        return self._read_cpu


class _Clocks(threading.local):
    """The calling thread's is `own`."""

    def __init__(self) -> None:
        self.own = Clock()


CLOCKS = _Clocks()


class TaskTimes:
    """Times one task of a lane on the calling thread: pulling it, then running it.

    Tasks nest: a worker that waits for an upstream segment works for that meanwhile. What it takes there, and the time
    in which it waits, is told apart from what the task itself takes. `pull` and `run` are seconds by the clock and of
    CPU; `clock` is the thread's.
    """

    __slots__ = ("_cpu", "_outer", "_pulled", "clock", "pull", "run", "started", "waited")

    def __init__(self, lane: Lane) -> None:
        clock = self.clock = CLOCKS.own
        self._outer = clock.aside, clock.aside_cpu, clock.queued, clock.lane
        clock.aside = clock.aside_cpu = clock.queued = 0.0
        clock.lane = lane
        self.pull = self.run = 0.0, 0.0
        self.waited = 0.0  # seconds by the clock
        self.started = time.perf_counter()
        self._cpu = clock.cpu(self.started)
        self._pulled = self.started, self._cpu

    def pulled(self) -> None:
        """The task has been pulled; what follows is running it."""
        clock, now = self.clock, time.perf_counter()
        cpu = clock.cpu(now)
        self.pull = now - self.started - clock.aside, cpu - self._cpu - clock.aside_cpu
        self.waited = clock.aside
        self._pulled = now, cpu
        clock.lane = None

    def stop(self) -> float:
        """The task is done; when that is."""
        clock, now = self.clock, time.perf_counter()
        cpu = clock.cpu(now)
        self.run = now - self._pulled[0] - clock.queued, cpu - self._pulled[1]
        aside, aside_cpu, queued, lane = self._outer
        clock.aside, clock.aside_cpu, clock.queued, clock.lane = aside, aside_cpu + cpu - self._cpu, queued, lane
        return now
