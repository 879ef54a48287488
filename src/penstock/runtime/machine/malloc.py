"""The C library's memory: freed arrays are kept for the next element, and not given back to the system after each."""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache

from penstock.runtime.machine.granted import available_memory

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD of malloc.h
_LARGEST = 1 << 25  # bytes: the most that M_MMAP_THRESHOLD may be
_KEPT = 1 << 24  # bytes that may stay free at the end of a heap; a heap is that of one thread, or of a few
_SHARE = 32  # of the memory that is left, where that is little
_SETTINGS = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES")


@cache
def keep_freed_memory() -> bool:
    """Have the GNU C library reuse arrays of up to 32 MiB; whether that was done.

    By itself it maps each such array anew, and every page of it costs about a microsecond when it is first written to:
    half the time of a function that makes some arrays of a few megabytes. Who sets one of its variables (such as
    MALLOC_TRIM_THRESHOLD_) has decided otherwise, and is left alone.

    Source: mallopt(3).
    """
    if sys.platform != "linux" or any(os.environ.get(name) for name in _SETTINGS):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return False
    kept = min(_KEPT, available_memory() // _SHARE)
    return bool(mallopt(_MMAP_THRESHOLD, _LARGEST)) and bool(mallopt(_TRIM_THRESHOLD, kept))
