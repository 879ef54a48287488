"""What this process may use: cores and memory as granted by affinity and control groups, not as installed."""

from __future__ import annotations

import math
import os
from functools import cache
from pathlib import Path

from penstock.options import Options

_CGROUP = Path("/sys/fs/cgroup")


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None


def _quota(root: Path) -> float | None:
    """Cores a CPU quota grants (cgroup v2 `cpu.max`, v1 `cpu.cfs_*`), or None without one."""
    text = _read(root / "cpu.max")
    if text is not None:
        limit, _, period = text.partition(" ")
        return None if limit == "max" else int(limit) / int(period or 100_000)
    limit_v1, period_v1 = _read(root / "cpu/cpu.cfs_quota_us"), _read(root / "cpu/cpu.cfs_period_us")
    if limit_v1 is None or period_v1 is None or int(limit_v1) <= 0:
        return None
    return int(limit_v1) / int(period_v1)


@cache
def granted_cpus(root: Path = _CGROUP) -> int:
    """Number of CPU workers: the affinity mask, cut down to the control group's quota (rounded up)."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    quota = _quota(root)
    return cores if quota is None else max(1, min(cores, math.ceil(quota)))


@cache
def granted_memory(root: Path = _CGROUP) -> int:
    """Bytes of memory: what is installed, cut down to the control group's limit."""
    installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 8 << 30
    limits = [_read(root / "memory.max"), _read(root / "memory/memory.limit_in_bytes")]
    return min([installed, *(int(limit) for limit in limits if limit is not None and limit.isdigit())])


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
