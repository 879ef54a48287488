"""What the threads that are no workers compute, as Linux counts it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Container, Mapping
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
