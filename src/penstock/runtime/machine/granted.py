"""What this process may use: cores and memory as granted by affinity and control groups, not as installed.

And how busy the machine is, as Linux counts it.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import weakref
from collections.abc import Container, Mapping
from functools import cache
from pathlib import Path

from penstock.cgroup import ROOT, cpu_quota, cpuset, machine_left, memory_left, memory_limit
from penstock.options import Options

_ASSUMED = 8 << 30  # bytes of memory of a system that does not say


@cache
def granted_cores(root: Path = ROOT) -> float:
    """Cores' worth of time for this process: those it may run on, cut down to its control groups' set and quota.

    A quota may be a fraction: 0.5 is every second moment of one core.
    """
    cores, allowed, quota = _cores(), cpuset(root), cpu_quota(root)
    if allowed is not None:
        cores = min(cores, len(allowed))
    return float(cores) if quota is None else min(float(cores), quota)


def granted_cpus(root: Path = ROOT) -> int:
    """Number of CPU workers: the granted cores, rounded up."""
    return max(1, math.ceil(granted_cores(root)))


@cache
def granted_memory(root: Path = ROOT) -> int:
    """Bytes of memory: what is installed, cut down to the control groups' limits."""
    installed, limit = _installed(), memory_limit(root)
    return installed if limit is None else min(installed, limit)


def available_memory(root: Path = ROOT) -> int:
    """Bytes that this process could take now: the least that the machine and its control groups leave.

    Caches of files that were not used lately count as free. Where the system does not say what is free, half of what
    is granted.
    """
    free, left = _free(root), memory_left(root)
    found = [amount for amount in (free, left) if amount is not None]
    return min(found) if free is not None else min([*found, granted_memory(root) // 2])


def _cores() -> int:
    """Cores that this process may run on."""
    count = getattr(os, "process_cpu_count", None)  # from Python 3.13, which lets its user set it
    if count is not None:
        return count() or 1
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def _installed() -> int:
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in getattr(os, "sysconf_names", ()):
        return max(os.sysconf("SC_PHYS_PAGES"), 0) * os.sysconf("SC_PAGE_SIZE") or _ASSUMED
    windows = _windows()
    return _ASSUMED if windows is None else windows[0]


def _free(root: Path) -> int | None:
    """Bytes that the machine could give without swapping, or None where it does not say."""
    left = machine_left(root)
    if left is not None:
        return left
    windows = _windows()
    return None if windows is None else windows[1]


def _windows() -> tuple[int, int] | None:
    """Bytes of memory that Windows has and that are free, or None elsewhere."""
    import ctypes

    library = getattr(ctypes, "windll", None)
    if library is None:
        return None
    status = (ctypes.c_uint64 * 8)(64)  # MEMORYSTATUSEX: its length, then what is installed, what is free, and others
    if not library.kernel32.GlobalMemoryStatusEx(ctypes.byref(status)):
        return None
    return int(status[1]), int(status[2])


def autotuned_workers(options: Options, cpus: int) -> int:
    """Workers that AUTOTUNE means on a machine that grants `cpus` cores."""
    autotune = options.autotune
    if not autotune.enabled:
        return 1
    workers = autotune.cpu_budget or options.threading.private_threadpool_size or cpus
    return at_most(options, max(workers, autotune.min_parallelism or 1))


def at_most(options: Options, workers: int) -> int:
    """As many workers as wanted, or as the options allow."""
    bounds = (options.autotune.cpu_budget, options.threading.private_threadpool_size)
    return min([workers, *(bound for bound in bounds if bound)])


# It counts what threads that are no workers take, how long threads wait for a core, and cores without work.

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
