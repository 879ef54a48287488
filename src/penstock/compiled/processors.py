"""processors: how many this process may run on."""

from __future__ import annotations

import os


def processors() -> int:
    """That this process may run on.

    >>> processors() >= 1
    True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
