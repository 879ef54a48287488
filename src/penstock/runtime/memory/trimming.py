"""Trimming: once no pass runs, what passes have freed goes back to the system.

The C library keeps freed memory for the next element (`machine/malloc.py`), also what lies between pieces that are
still used: after some hundreds of passes that were dropped half-way that can be gigabytes. Between two epochs nothing
is given back, as the next one would pay for every page again.
"""

from __future__ import annotations

import _thread
import ctypes
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache

from penstock.forked import new_lock
from penstock.runtime.machine.malloc import FreeInHeaps, is_left_alone, resident

_PATIENCE = 0.25  # seconds without a pass
_STAYS = 1 << 28  # bytes that may stay, as in any other pool


class Trimmer:
    """`rest` is called when the last pass ends, by whichever thread, also by the garbage collector: it never waits.

    `runs` tells whether a pass runs.
    """

    def __init__(self, runs: Callable[[], bool], *, patience: float = _PATIENCE, stays: int = _STAYS) -> None:
        self._runs = runs
        self._patience = patience
        self._stays = stays
        self._free = FreeInHeaps()
        self._waits = new_lock()  # held while a thread waits
        self._ended = 0  # passes

    def rest(self) -> None:
        """No pass runs now."""
        self._ended += 1
        if resident() > self._stays and _malloc_trim() is not None and self._waits.acquire(blocking=False):
            try:
                _thread.start_new_thread(self._wait, ())  # which, unlike a Thread's start, waits for nobody
            except RuntimeError:  # the system gives no more
                self._waits.release()

    def _wait(self) -> None:
        ended = -1
        try:
            while ended != self._ended and not self._runs():
                ended = self._ended
                time.sleep(self._patience)
            if not self._runs():
                self.trim()
        finally:
            with suppress(RuntimeError):  # of a forked child, which began anew
                self._waits.release()
        if ended != self._ended and not self._runs():
            self.rest()

    def trim(self) -> bool:
        """Give freed memory back, if it is much; whether that was done."""
        trim = _malloc_trim()
        if trim is None or self._free.look() <= self._stays:
            return False
        trim(0)
        return True


@cache
def _malloc_trim() -> Callable[[int], int] | None:
    """The function of the GNU C library, unless it is not to be called."""
    if sys.platform != "linux" or is_left_alone():
        return None
    try:
        found: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):  # another C library
        return None
    return found
