"""The cores and memory that affinity and control groups grant to this process.

Ranks that `torchrun` starts on one machine share its cores and memory. The module also reads the load of the machine on
Linux.
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

_ASSUMED = 8 << 30  # bytes of memory if the system does not report it


def local_ranks() -> int:
    """Return the number of ranks on this machine, as `torchrun` states it in LOCAL_WORLD_SIZE."""
    stated = os.environ.get("LOCAL_WORLD_SIZE", "")
    return max(int(stated), 1) if stated.isdecimal() else 1


@cache
def granted_cores(root: Path = ROOT) -> float:
    """Return the granted cores: the allowed cores, limited by the set and the quota of the control groups.

    A quota may be a fraction: 0.5 is half of the time of one core. Ranks with the same cores get equal shares. A rank
    that was bound to some of the cores keeps all of these.
    """
    cores, allowed, quota = _cores(), cpuset(root), cpu_quota(root)
    machine = (os.cpu_count() or 1) if allowed is None else len(allowed)
    ranks = 1 if cores < machine else local_ranks()
    if allowed is not None:
        cores = min(cores, len(allowed))
    return (cores if quota is None else min(cores, quota)) / ranks


def granted_cpus(root: Path = ROOT) -> int:
    """Return the number of CPU workers: the granted cores, rounded up."""
    return max(1, math.ceil(granted_cores(root)))


@cache
def granted_memory(root: Path = ROOT) -> int:
    """Return the bytes of installed memory, limited by the control groups: an equal share for each rank."""
    installed, limit = _installed(), memory_limit(root)
    return (installed if limit is None else min(installed, limit)) // local_ranks()


def available_memory(root: Path = ROOT) -> int:
    """Return the bytes that this process could take now: its share of what the machine and its control groups leave.

    Pages of the file cache that were not used recently count as free. If the system does not report free memory, half
    of the granted memory counts.
    """
    free, left = _free(root), memory_left(root)
    found = [amount // local_ranks() for amount in (free, left) if amount is not None]
    return min(found) if free is not None else min([*found, granted_memory(root) // 2])


def _cores() -> int:
    """Return the number of cores that this process may run on."""
    count = getattr(os, "process_cpu_count", None)  # from Python 3.13; the user can set it
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
    """Return the bytes that the machine could give without swapping, or None if it does not report them."""
    left = machine_left(root)
    if left is not None:
        return left
    windows = _windows()
    return None if windows is None else windows[1]


def _windows() -> tuple[int, int] | None:
    """Return the installed and the free bytes of memory on Windows, or None on other systems."""
    import ctypes

    library = getattr(ctypes, "windll", None)
    if library is None:
        return None
    # MEMORYSTATUSEX: its length, then installed memory, free memory and other fields
    status = (ctypes.c_uint64 * 8)(64)
    if not library.kernel32.GlobalMemoryStatusEx(ctypes.byref(status)):
        return None
    return int(status[1]), int(status[2])


def autotuned_workers(options: Options, cpus: int) -> int:
    """Return the number of workers that AUTOTUNE starts with on a machine with `cpus` granted cores."""
    autotune = options.autotune
    if not autotune.enabled:
        return 1
    workers = autotune.cpu_budget or options.threading.private_threadpool_size or cpus
    return at_most(options, max(workers, autotune.min_parallelism or 1))


def at_most(options: Options, workers: int) -> int:
    """Return the wanted number of workers, limited by the options."""
    bounds = (options.autotune.cpu_budget, options.threading.private_threadpool_size)
    return min([workers, *(bound for bound in bounds if bound)])


# The rest of this module measures the load: CPU time of other threads, waits for a core, and idle cores.

_TASKS = Path("/proc/self/task")


def outside_cpu(workers: Container[threading.Thread]) -> dict[threading.Thread, float] | None:
    """Return the CPU seconds of each Python thread that is not a worker, or None if the system does not report them.

    Threads of libraries are not included. Python does not know them, and they never hold the interpreter.

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
            except (OSError, IndexError, ValueError):  # the thread has ended, or the system has no such file
                continue
    return found if any(found.values()) else None  # a kernel without this count returns zeros


def share(
    now: Mapping[threading.Thread, float] | None, before: Mapping[threading.Thread, float] | None, seconds: float
) -> float | None:
    """Return the number of cores that the threads used between two readings, or None if it is not known."""
    if now is None or before is None or seconds <= 0:
        return None
    return sum(max(cpu - before.get(thread, 0.0), 0.0) for thread, cpu in now.items()) / seconds


_SCHEDSTAT_BYTES = 64


class Queued:
    """The time that the creating thread has waited for a core. Any thread may read it. A reading takes 2 µs.

    Workers do not read it themselves. A thread that waits for the interpreter's lock, and repeatedly finds it free for
    only a microsecond, never demands the lock.

    >>> Queued().seconds() >= 0
    True
    """

    def __init__(self) -> None:
        self._descriptor: int | None = None
        if sys.platform == "linux":
            try:
                path = f"/proc/self/task/{threading.get_native_id()}/schedstat"
                self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except OSError:  # a system without /proc, or too many open files
                return
            weakref.finalize(self, os.close, self._descriptor)

    def seconds(self) -> float:
        """Return the seconds so far, or 0 if the system does not report them."""
        if self._descriptor is None:
            return 0.0
        try:
            return int(os.pread(self._descriptor, _SCHEDSTAT_BYTES, 0).split()[1]) * 1e-9
        except (OSError, IndexError, ValueError):  # the thread has ended
            return 0.0


_STAT = Path("/proc/stat")
_STAT_BYTES = 1 << 16
_IDLE = (3, 4)  # columns of a processor: idle, and idle during a wait for a disk


def idle_seconds(stat: Path = _STAT) -> float | None:
    """Return the idle seconds of all processors of this process since the machine started.

    None if the system does not report them. The resolution is a hundredth of a second. Source: proc(5).
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
    """Open the file once for the life of the process. Each opening would release the interpreter three times."""
    return os.open(stat, os.O_RDONLY | os.O_CLOEXEC)
