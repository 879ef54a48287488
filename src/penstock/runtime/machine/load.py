"""How busy the machine is, as Linux counts it.

It counts what threads that are no workers take, how long threads wait for a core, and cores without work.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Container, Mapping
from functools import cache
from pathlib import Path

_TASKS = Path("/proc/self/task")


def outside_cpu(workers: Container[threading.Thread]) -> dict[threading.Thread, float] | None:
    """CPU seconds so far of each of Python's threads but the workers; None where the system does not tell.

    Threads of libraries, which Python does not know, are not among them: they never hold the interpreter.

    >>> outside_cpu({threading.main_thread()}) is None or threading.main_thread() in outside_cpu(())
    True
    """
    if sys.platform != "linux":
        return None
    found = {}
    for thread in threading.enumerate():
        if thread not in workers:
            try:
                found[thread] = int((_TASKS / str(thread.native_id) / "schedstat").read_bytes().split()[0]) * 1e-9
            except (OSError, IndexError, ValueError):  # it has ended, or the system has no such file
                continue
    return found if any(found.values()) else None  # a kernel that does not count gives zeros


def share(
    now: Mapping[threading.Thread, float] | None, before: Mapping[threading.Thread, float] | None, seconds: float
) -> float | None:
    """Cores that they used in so many seconds; None where that is not known."""
    if now is None or before is None or seconds <= 0:
        return None
    return sum(max(cpu - before.get(thread, 0.0), 0.0) for thread, cpu in now.items()) / seconds


_SCHEDSTAT_BYTES = 64


class Queued:
    """The time in which the thread that makes it waited for a core; may be asked by any. Takes 2 µs.

    That is why a worker does not ask for itself: a thread that waits for the interpreter's lock and finds it free for a
    microsecond only, again and again, never gets to demand it.

    >>> Queued().seconds() >= 0
    True
    """

    def __init__(self) -> None:
        self._descriptor: int | None = None
        if sys.platform == "linux":
            try:
                path = f"/proc/self/task/{threading.get_native_id()}/schedstat"
                self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except OSError:  # a system without /proc, or no file left to open
                return
            weakref.finalize(self, os.close, self._descriptor)

    def seconds(self) -> float:
        """Seconds so far; 0 where the system does not tell."""
        if self._descriptor is None:
            return 0.0
        try:
            return int(os.pread(self._descriptor, _SCHEDSTAT_BYTES, 0).split()[1]) * 1e-9
        except (OSError, IndexError, ValueError):  # the thread has ended
            return 0.0


_STAT = Path("/proc/stat")
_STAT_BYTES = 1 << 16
_IDLE = (3, 4)  # columns of a processor's line: idle, and idle while something waits for a disk


def idle_seconds(stat: Path = _STAT) -> float | None:
    """Seconds since the machine started that the processors this process may use stood idle, all together.

    None where the system does not tell. It counts in hundredths of a second. Source: proc(5).
    """
    try:
        allowed = os.sched_getaffinity(0)
        ticks = os.sysconf("SC_CLK_TCK")
        lines = os.pread(_opened(stat), _STAT_BYTES, 0).decode("ascii").splitlines()
        found = 0
        for line in lines:
            name, *columns = line.split()
            if name.startswith("cpu") and name[3:].isdigit() and int(name[3:]) in allowed:
                found += sum(int(columns[i]) for i in _IDLE)
    except (AttributeError, OSError, ValueError, IndexError):
        return None
    return found / ticks


@cache
def _opened(stat: Path) -> int:
    """The file, open until the process ends: opening it each time lets go of the interpreter three times, not once."""
    return os.open(stat, os.O_RDONLY | os.O_CLOEXEC)
