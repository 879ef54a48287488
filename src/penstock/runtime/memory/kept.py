"""Memory that the process keeps for reuse. It belongs to no run and counts in every budget.

While no iteration runs, freed memory of past iterations is returned to the system (`Trimmer`).
"""

from __future__ import annotations

import _thread
import ctypes
import sys
import time
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Generic, Protocol, TypeVar

from penstock.block.arena import ARENA
from penstock.block.shared_memory import shared_bytes
from penstock.forked import new_lock
from penstock.runtime.machine.malloc import FreeInHeaps, is_left_alone, most_resident, resident
from penstock.sources.arrow_pieces import RECENT


class Reserved:
    """An amount of memory: `nbytes` are in use, and `reserved` are subtracted from the budget.

    `reserved` is never less than `nbytes` after the notified budgets have divided again.
    """

    nbytes = 0
    reserved = 0
    _least = 0

    def move(self, nbytes: int) -> bool:
        """Set the used bytes. Return True if the reservation must change. Any thread may call it, without a lock.

        A negative count, for example from a damaged file, counts as 0.
        """
        self.nbytes = nbytes = max(nbytes, 0)
        return not self._least <= nbytes <= self.reserved

    def reserve(self, grain: int) -> int:
        """Reserve again: an eighth and `grain` bytes more than are used, so that small growth needs no new reservation.

        The loop ends, because the reservation is never less than the count that it is based on.
        """
        while True:
            nbytes = self.nbytes
            self.reserved = nbytes + (nbytes >> 3) + grain if nbytes else 0
            self._least = nbytes - (nbytes >> 2) - 2 * grain
            if self.nbytes <= self.reserved:  # otherwise `move` ran between, and compared with the old reservation
                return self.reserved


T = TypeVar("T")


class Weakly(Generic[T]):
    """Objects with weak references, oldest first. `gone` is called when one of them dies.

    Thread-safe without a lock, because objects die in garbage collections, which may begin inside any critical section.
    """

    def __init__(self, gone: Callable[[], None] = lambda: None) -> None:
        self._gone = gone
        self._known: dict[int, weakref.ref[T]] = {}

    def add(self, item: T) -> None:
        key, known, gone, over = id(item), self._known, self._gone, sys.is_finalizing

        def forget(ref: weakref.ref[T]) -> None:
            if known.get(key) is ref:
                known.pop(key, None)
                if not over():  # the modules of `gone` no longer exist at finalisation
                    gone()

        known[key] = weakref.ref(item, forget)

    def remove(self, item: T) -> None:
        ref = self._known.get(id(item))
        if ref is not None and ref() is item:
            self._known.pop(id(item), None)
            self._gone()

    def listed(self) -> list[T]:
        """Return the objects that are alive."""
        refs = list(self._known.values())  # in one step: a collection inside dict.copy() may change the dict
        return [item for ref in refs if (item := ref()) is not None]


STAYS = 1 << 28  # bytes that a pool may keep without large results, and while no iteration runs
_NOTHING: Mapping[str, int] = MappingProxyType({})


class MemoryPool(Protocol):
    """A pool that keeps memory. Its methods are called without a lock, from any thread."""

    def bound(self, nbytes: int) -> None:
        """Keep at most `nbytes`."""

    def watch(self, changed: Callable[[int], None]) -> None:
        """Call `changed` with the kept bytes after every change."""


class Follower:
    """A budget that is notified of changes. `most` is the number of bytes that each pool may keep."""

    def __init__(self, changed: Callable[[], None], most: int) -> None:
        self.changed = changed
        self.most = most


class _Gauge(Reserved):
    def __init__(self, kind: str, pool: MemoryPool) -> None:
        self.kind = kind
        self.pool = pool


@dataclass(frozen=True)
class _Polled:
    nbytes: Callable[[], int]
    now: Callable[[], int]  # a more precise value, which may take longer
    share: int


class KeptMemory:
    """The pools of the process, and the living budgets. Each pool keeps as much as the smallest budget allows."""

    def __init__(self) -> None:
        self._gauges: list[_Gauge] = []
        self._polled: dict[str, _Polled] = {}
        self._followers: Weakly[Follower] = Weakly(self.bound)
        self._most = STAYS

    def add(self, kind: str, pool: MemoryPool) -> None:
        """Count the kept bytes of a pool."""
        gauge = _Gauge(kind, pool)
        self._gauges.append(gauge)

        def changed(nbytes: int) -> None:
            if gauge.move(nbytes):
                self._reserve(gauge)

        pool.watch(changed)

    def poll(
        self, kind: str, nbytes: Callable[[], int], *, now: Callable[[], int] | None = None, share: int = 8
    ) -> None:
        """Count the bytes of a pool that has its own limit, on demand: up to 1/`share` of a budget.

        `now` returns the present bytes if `nbytes` may return older ones.
        """
        self._polled[kind] = _Polled(nbytes, now or nbytes, share)

    def follow(self, follower: Follower) -> None:
        self._followers.add(follower)
        self.bound()

    def bound(self) -> None:
        """Limit the pools to the bytes that all budgets allow."""
        most = min((follower.most for follower in self._followers.listed()), default=STAYS)
        if most != self._most:
            self._most = most
            for gauge in self._gauges:
                gauge.pool.bound(most)
                self._reserve(gauge)

    def trim(self, nbytes: int) -> None:
        """Free what a pool keeps beyond `nbytes`."""
        for gauge in self._gauges:
            gauge.pool.bound(min(nbytes, self._most))
            gauge.pool.bound(self._most)

    def _reserve(self, gauge: _Gauge) -> None:
        gauge.reserve(self._most >> 8)
        for follower in self._followers.listed():
            follower.changed()

    def polled(self) -> dict[str, int]:
        """Return the present bytes of the pools with their own limits."""
        return {kind: pool.now() for kind, pool in self._polled.items()}

    def reserved(self, total: int, before: Mapping[str, int] = _NOTHING) -> int:
        """Return the bytes to subtract from a budget of `total` bytes.

        The budget can reuse the bytes of `before`, the value of `polled` when it began. Each pool counts at most its
        share, even if it cannot free more or has its own limit. Memory of other data sets thus cannot stop this one.
        """
        bounded = sum(min(gauge.reserved, total >> 3) for gauge in self._gauges)
        further = {kind: max(nbytes - before.get(kind, 0), 0) for kind, nbytes in self._lately()}
        return bounded + sum(min(nbytes, total // self._polled[kind].share) for kind, nbytes in further.items())

    def held(self) -> list[tuple[str, int]]:
        """Return (kind, bytes) of each pool at present."""
        return [*((gauge.kind, gauge.nbytes) for gauge in self._gauges), *self.polled().items()]

    def _lately(self) -> list[tuple[str, int]]:
        return [(kind, pool.nbytes()) for kind, pool in self._polled.items()]


KEPT = KeptMemory()
KEPT.add("for reuse", ARENA)
KEPT.add("row groups", RECENT)
KEPT.poll("shared, for reuse", lambda: shared_bytes()[1])
_HEAPS = FreeInHeaps()  # the heaps of each thread have many small holes, which cannot be returned
KEPT.poll("in heaps, for reuse", _HEAPS, now=_HEAPS.look, share=2)


# The C library keeps freed memory for the next element (`machine/malloc.py`), including holes between used pieces.
# Hundreds of abandoned iterations can leave gigabytes. Nothing is returned between two epochs, because the next epoch
# would pay for every page again.

_PATIENCE = 0.25  # seconds without an iteration


class Trimmer:
    """Returns freed memory to the system after the last iteration.

    `rest` is called when the last iteration ends, in any thread or in the garbage collector, so it never waits. `runs`
    returns True if an iteration runs.
    """

    def __init__(self, runs: Callable[[], bool], *, patience: float = _PATIENCE, stays: int = STAYS) -> None:
        self._runs = runs
        self._patience = patience
        self._stays = stays
        self._free = FreeInHeaps()
        self._waits = new_lock()  # locked while a thread waits
        self._ended = 0  # number of ended iterations

    def rest(self) -> None:
        """Note that no iteration runs now."""
        self._ended += 1
        if _malloc_trim() is None or most_resident() <= self._stays or resident() <= self._stays:
            return
        if self._waits.acquire(blocking=False):
            try:
                _thread.start_new_thread(self._wait, ())  # Thread.start would wait for the thread
            except RuntimeError:  # the system cannot start another thread
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
            with suppress(RuntimeError):  # raised in a forked child, which has a new lock
                self._waits.release()
        if ended != self._ended and not self._runs():
            self.rest()

    def trim(self) -> bool:
        """Return freed memory to the system if there is much. Return True if this was done."""
        KEPT.trim(self._stays)
        trim = _malloc_trim()
        if trim is None or self._free.look() <= self._stays:
            return False
        trim(0)
        return True


@cache
def _malloc_trim() -> Callable[[int], int] | None:
    """Return the function of the GNU C library, or None if it must not be called."""
    if sys.platform != "linux" or is_left_alone():
        return None
    try:
        found: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):  # another C library
        return None
    return found
