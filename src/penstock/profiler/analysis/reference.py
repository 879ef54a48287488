"""Reference: work of which it is known that it waits for nothing and lets go of the interpreter's lock.

What it loses beside its CPU time, the machine gives to others; so do the steps that are measured next to it. And a
thread that wants the lock while it runs is late for want of a core alone.
"""

from __future__ import annotations

import hashlib
import time

import numpy as np

from penstock.profiler.analysis.meter import Key, Meter

REFERENCE = Key(0, "reference")
_CONTENT = bytes(1 << 18)
_SECONDS = 0.004  # at a time
_PAUSE = 0.05  # seconds between
_COPIED = 1 << 23  # bytes


class Reference:
    """Runs now and then in the thread that is measured."""

    def __init__(self, meter: Meter) -> None:
        self._hash = meter.measured(lambda: hashlib.sha256(_CONTENT), REFERENCE)
        self._next = 0.0
        self._ratios: list[float] = []  # of wall to CPU time, for each time that it ran

    def run_when_due(self) -> None:
        if time.perf_counter() >= self._next:
            self.run()

    def run(self, seconds: float = _SECONDS) -> None:
        began, worked = time.perf_counter(), time.thread_time()
        until = began + seconds
        while time.perf_counter() < until:
            self._hash()
        now, cpu = time.perf_counter(), time.thread_time() - worked
        if cpu > 0:
            self._ratios.append((now - began) / cpu)
        self._next = now + _PAUSE

    def copy_speed(self) -> float:
        """Bytes a second that a thread copies from one array into another, both larger than the nearest caches."""
        source, target = np.ones(_COPIED, np.uint8), np.ones(_COPIED, np.uint8)
        best = float("inf")
        for _ in range(3):
            began = time.thread_time()
            np.copyto(target, source)
            best = min(best, time.thread_time() - began)
        return _COPIED / max(best, 1e-9)

    def slowed(self) -> float:
        """Seconds that a second of CPU time takes here; a few long interruptions say nothing about the rest."""
        usual = sorted(self._ratios)[: max(len(self._ratios) * 9 // 10, 1)]
        return max(sum(usual) / len(usual), 1.0) if usual else 1.0
