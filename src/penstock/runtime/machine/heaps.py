"""What the C library has been given back, and keeps: memory that the process holds and nobody uses."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Callable
from functools import cache
from typing import Any, cast

_SHARE = 100  # of the time, at most, goes into looking: heaps in many small pieces take milliseconds
_SOON = 0.05  # seconds for which an answer holds in any case
_FIELDS = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"


class _Mallinfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in _FIELDS.split()]


class FreeInHeaps:
    """Bytes that are free in the heaps of the GNU C library; 0 where it is another one. Any thread, without a lock.

    Source: mallinfo2(3).
    """

    def __init__(self) -> None:
        self._nbytes = 0
        self._due = 0.0

    def __call__(self) -> int:
        """As of the last look, where another one would be too soon."""
        return self._nbytes if time.perf_counter() < self._due else self.look()

    def look(self) -> int:
        """As of now."""
        look = _mallinfo2()
        if look is not None:
            began = time.perf_counter()
            self._due = began + _SOON
            self._nbytes = min(look().fordblks, resident() or sys.maxsize)  # what was given back counts as free there
            ended = time.perf_counter()
            self._due = ended + max(_SOON, _SHARE * (ended - began))
        return self._nbytes


def resident() -> int:
    """Bytes of memory that this process has; 0 where nobody knows.

    >>> resident() >= 0
    True
    """
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - by far the quickest way
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


@cache
def _mallinfo2() -> Callable[[], Any] | None:
    """The function of the C library, which glibc has from 2.33 on."""
    if sys.platform != "linux":
        return None
    try:
        found: Any = ctypes.CDLL(None).mallinfo2
    except (OSError, AttributeError):
        return None
    found.restype = _Mallinfo
    return cast(Callable[[], Any], found)
