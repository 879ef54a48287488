"""Cores that nobody uses, whoever else is on the machine: what the scheduler of the system had nothing to run on."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

_STAT = Path("/proc/stat")
_BYTES = 1 << 16
_IDLE = (3, 4)  # columns of a processor's line: idle, and idle while something waits for a disk


def idle_seconds(stat: Path = _STAT) -> float | None:
    """Seconds since the machine started that the processors this process may use stood idle, all together.

    None where the system does not tell. It counts in hundredths of a second. Source: proc(5).
    """
    try:
        allowed = os.sched_getaffinity(0)
        ticks = os.sysconf("SC_CLK_TCK")
        lines = os.pread(_opened(stat), _BYTES, 0).decode("ascii").splitlines()
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
