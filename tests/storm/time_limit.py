"""TimeLimit: a bound on the CPU time and the wall time of a case."""

import os
import time

from tests.storm.worker import Wrong


class TimeLimit:
    """Starts when it is created. Other programs affect the clock, not the CPU time of a process and its children."""

    def __init__(self, cpu_seconds, seconds):
        self._cpu_seconds, self._seconds = cpu_seconds, seconds
        self._cpu_started, self._started = _cpu(), time.monotonic()

    def check(self):
        """Raise Wrong if it took longer."""
        cpu, clock = _cpu() - self._cpu_started, time.monotonic() - self._started
        if cpu > self._cpu_seconds or clock > self._seconds:
            raise Wrong(f"it took {cpu:.0f} seconds of CPU time, {clock:.0f} in all")


def _cpu():
    return sum(os.times()[:4])  # of children that have ended
