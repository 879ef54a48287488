"""The memory of the C library: it keeps freed arrays for the next element instead of returning them page by page.

The module also counts the free memory that the library keeps.
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
_LARGEST = 1 << 25  # largest M_MMAP_THRESHOLD in bytes
_KEPT = 1 << 24  # bytes that may stay free at the end of a heap; one thread, or a few, use a heap
KEPT_ALONE = 2 * _LARGEST  # the same if one thread does all the work; the default of the C library
_SHARE = 32  # fraction of the free memory, if there is little
_SHARE_OF_BUDGET = 64
_SETTINGS = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES")


def keep_freed_memory(budget: int | None = None, *, kept: int = _KEPT) -> bool:
    """Make the GNU C library reuse arrays of up to 32 MiB. Return True on success.

    By default, the library maps each such array again. Each page then costs about a microsecond on its first write.
    This is half of the time of a function that makes some arrays of a few megabytes. The library keeps at most `kept`
    bytes per thread, which is little in relation to `budget`, the bytes of all buffers. Arrays larger than `kept` still
    get new pages. The function does nothing if the user has set one of the library's variables, such as
    MALLOC_TRIM_THRESHOLD_.

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
    """Return True if the user has set one of the variables of the C library."""
    return any(os.environ.get(name) for name in _SETTINGS)


@cache
def _mallopt() -> Callable[[int, int], int] | None:
    """Return the function of the C library, or None if it must not be called."""
    if sys.platform != "linux" or is_left_alone():
        return None
    try:
        found: Callable[[int, int], int] = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return None
    return found


@cache
def _left() -> int:
    """Return the bytes of memory that were free when the first run began."""
    return available_memory()


_HELD_SHARE = 100  # largest share of the time for this measurement: heaps of many small pieces take milliseconds
_SOON = 0.05  # shortest time in seconds for which a measurement is valid
_FIELDS = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"


class _Mallinfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in _FIELDS.split()]


class FreeInHeaps:
    """Number of free bytes in the heaps of the GNU C library, or 0 for other libraries. Any thread may call it.

    Source: mallinfo2(3).
    """

    def __init__(self) -> None:
        self._nbytes = 0
        self._due = 0.0

    def __call__(self) -> int:
        """Return the bytes of the last measurement, or of a new one if it is due."""
        return self._nbytes if time.perf_counter() < self._due else self.look()

    def look(self) -> int:
        """Measure now."""
        look = _mallinfo2()
        if look is not None:
            began = time.perf_counter()
            self._due = began + _SOON
            # pages that were returned to the system count as free in fordblks
            self._nbytes = min(look().fordblks, resident() or sys.maxsize)
            ended = time.perf_counter()
            self._due = ended + max(_SOON, _HELD_SHARE * (ended - began))
        return self._nbytes


def resident() -> int:
    """Return the bytes of memory that this process uses, or 0 if not known.

    >>> resident() >= 0
    True
    """
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - by far the fastest way
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def most_resident() -> int:
    """Return the largest number of bytes of memory that this process has used, on Linux.

    The call takes a tenth of the time of `resident`.

    >>> most_resident() > 0
    True
    """
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10 or sys.maxsize  # 0: not known


@cache
def _mallinfo2() -> Callable[[], Any] | None:
    """Return the function of the C library, which glibc has since 2.33."""
    if sys.platform != "linux":
        return None
    try:
        found: Any = ctypes.CDLL(None).mallinfo2
    except (OSError, AttributeError):
        return None
    found.restype = _Mallinfo
    return cast(Callable[[], Any], found)
