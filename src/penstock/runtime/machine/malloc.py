"""The C library's memory: freed arrays are kept for the next element, and not given back to the system page by page.

What it keeps that nobody uses is counted.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Callable
from functools import cache
from typing import Any, cast

from penstock.runtime.machine.granted import available_memory

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD of malloc.h
_LARGEST = 1 << 25  # bytes: the most that M_MMAP_THRESHOLD may be
_KEPT = 1 << 24  # bytes that may stay free at the end of a heap; a heap is that of one thread, or of a few
KEPT_ALONE = 2 * _LARGEST  # the same where one thread does all the work: as the C library does by itself
_SHARE = 32  # of the memory that is left, where that is little
_SHARE_OF_BUDGET = 64
_SETTINGS = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES")


def keep_freed_memory(budget: int | None = None, *, kept: int = _KEPT) -> bool:
    """Have the GNU C library reuse arrays of up to 32 MiB; whether that was done.

    By itself it maps each such array anew, and every page of it costs about a microsecond when it is first written to:
    half the time of a function that makes some arrays of a few megabytes. What is kept so for each thread, at most
    `kept`, is little beside `budget`, the bytes that buffers may hold; of arrays that are larger than what is kept the
    pages are new each time after all. Who sets one of its variables (such as MALLOC_TRIM_THRESHOLD_) has decided
    otherwise, and is left alone.

    Source: mallopt(3).
    """
    mallopt = _mallopt()
    if mallopt is None:
        return False
    kept = min(kept, _left() // _SHARE)
    if budget is not None:
        kept = min(kept, budget // _SHARE_OF_BUDGET)
    return bool(mallopt(_MMAP_THRESHOLD, _LARGEST)) and bool(mallopt(_TRIM_THRESHOLD, kept))


def is_left_alone() -> bool:
    """Whether somebody has set one of the C library's variables, and so decided for himself."""
    return any(os.environ.get(name) for name in _SETTINGS)


@cache
def _mallopt() -> Callable[[int, int], int] | None:
    """The function of the C library, unless it is not to be called."""
    if sys.platform != "linux" or is_left_alone():
        return None
    try:
        found: Callable[[int, int], int] = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return None
    return found


@cache
def _left() -> int:
    """Bytes of memory that were free when the first run began."""
    return available_memory()


_HELD_SHARE = 100  # of the time, at most, goes into looking: heaps in many small pieces take milliseconds
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
            self._due = ended + max(_SOON, _HELD_SHARE * (ended - began))
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


def most_resident() -> int:
    """Bytes of memory that this process has had at once, on Linux; to ask takes a tenth of the time of `resident`.

    >>> most_resident() > 0
    True
    """
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10 or sys.maxsize  # 0: nobody knows


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
