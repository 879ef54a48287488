"""The C library's memory: freed arrays are kept for the next element, and not given back to the system after each."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from functools import cache

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
