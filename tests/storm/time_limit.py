"""TimeLimit: a case of the storm may take so much of the processors, and so long."""

import os
import time

from tests.storm.worker import Wrong


class TimeLimit:
    """Begins when it is made. Other programs change the clock, but not the CPU time of a process and its children."""

    def __init__(self, cpu_seconds, seconds):
        self._cpu_seconds, self._seconds = cpu_seconds, seconds
        self._cpu_started, self._started = _cpu(), time.monotonic()

    def check(self):
        """Raises Wrong where it took longer."""
        cpu, clock = _cpu() - self._cpu_started, time.monotonic() - self._started
        if cpu > self._cpu_seconds or clock > self._seconds:
            raise Wrong(f"it took {cpu:.0f} seconds of CPU time, {clock:.0f} in all")


def _cpu():
    return sum(os.times()[:4])  # of children, as far as they have ended
