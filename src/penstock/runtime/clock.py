"""Clock: what a thread's time is spent on; TaskTimes: what one task of a segment takes of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.runtime.lane import Lane

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
    CPU.
    """

    __slots__ = ("_clock", "_cpu", "_outer", "_pulled", "pull", "run", "started", "waited")

    def __init__(self, lane: Lane) -> None:
        clock = self._clock = CLOCKS.own
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
        clock, now = self._clock, time.perf_counter()
        cpu = clock.cpu(now)
        self.pull = now - self.started - clock.aside, cpu - self._cpu - clock.aside_cpu
        self.waited = clock.aside
        self._pulled = now, cpu
        clock.lane = None

    def stop(self) -> float:
        """The task is done; when that is."""
        clock, now = self._clock, time.perf_counter()
        cpu = clock.cpu(now)
        self.run = now - self._pulled[0] - clock.queued, cpu - self._pulled[1]
        aside, aside_cpu, queued, lane = self._outer
        clock.aside, clock.aside_cpu, clock.queued, clock.lane = aside, aside_cpu + cpu - self._cpu, queued, lane
        return now
