"""Clock: what a thread's time is spent on."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.runtime.lane import Lane

_SHORT = 5e-5  # seconds


class Clock:
    """Of one thread: time spent in upstream segments during the pull at hand, and the lane it pulls for."""

    __slots__ = ("_read_at", "_read_cpu", "aside", "aside_cpu", "lane")

    def __init__(self) -> None:
        self.aside = 0.0
        self.aside_cpu = 0.0
        self.lane: Lane | None = None
        self._read_at = -1.0
        self._read_cpu = 0.0

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
