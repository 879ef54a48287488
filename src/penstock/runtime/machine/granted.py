"""What this process may use: cores and memory as granted by affinity and control groups, not as installed."""

from __future__ import annotations

import math
import os
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
