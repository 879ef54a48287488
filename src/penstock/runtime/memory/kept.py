"""Kept: memory that the process keeps for use again, which belongs to no run and counts in every budget.

Once no pass runs, what passes have freed goes back to the system (`Trimmer`).
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
    """`nbytes` are held, `reserved` are taken off the budget: never less, as soon as those told have looked again."""

    nbytes = 0
    reserved = 0
    _least = 0

    def move(self, nbytes: int) -> bool:
        """Note that `nbytes` are held; whether that has to be reserved anew. Any thread, without a lock.

        Nobody holds less than nothing: a count below 0, as of a damaged file, is one of nothing.
        """
        self.nbytes = nbytes = max(nbytes, 0)
        return not self._least <= nbytes <= self.reserved

    def reserve(self, grain: int) -> int:
        """Reserve anew; may grow by an eighth and `grain` bytes before `move` says so.

        It comes to an end, since what is reserved is never less than the count it was made of.
        """
        while True:
            nbytes = self.nbytes
            self.reserved = nbytes + (nbytes >> 3) + grain if nbytes else 0
            self._least = nbytes - (nbytes >> 2) - 2 * grain
            if self.nbytes <= self.reserved:  # else `move` came between, and compared with what was reserved before
                return self.reserved


T = TypeVar("T")


class Weakly(Generic[T]):
    """Objects without a hold on them, in the order in which they came; `gone` is called when one of them dies.

    Thread-safe without a lock: objects die in garbage collections, which may begin inside any critical section.
    """

    def __init__(self, gone: Callable[[], None] = lambda: None) -> None:
        self._gone = gone
        self._known: dict[int, weakref.ref[T]] = {}

    def add(self, item: T) -> None:
        key, known, gone, over = id(item), self._known, self._gone, sys.is_finalizing

        def forget(ref: weakref.ref[T]) -> None:
            if known.get(key) is ref:
                known.pop(key, None)
                if not over():  # what would be called has lost its modules by then
                    gone()

        known[key] = weakref.ref(item, forget)

    def remove(self, item: T) -> None:
        ref = self._known.get(id(item))
        if ref is not None and ref() is item:
            self._known.pop(id(item), None)
            self._gone()

    def listed(self) -> list[T]:
        """The objects that are alive."""
        refs = list(self._known.values())  # in one step: a collection inside dict.copy() may change what is copied
        return [item for ref in refs if (item := ref()) is not None]


_MOST = 1 << 28  # bytes that a pool keeps, however large the budgets are
_NOTHING: Mapping[str, int] = MappingProxyType({})


class Pool(Protocol):
    """Something that keeps memory: called without a lock, from any thread."""

    def bound(self, nbytes: int) -> None:
        """Keep no more than so many bytes."""

    def watch(self, changed: Callable[[int], None]) -> None:
        """Call `changed` with the bytes kept after every change."""


class Follower:
    """A budget that is told of changes, and says how much each pool may keep."""

    def __init__(self, changed: Callable[[], None], most: int) -> None:
        self.changed = changed
        self.most = most


class _Gauge(Reserved):
    def __init__(self, kind: str, pool: Pool) -> None:
        self.kind = kind
        self.pool = pool


@dataclass(frozen=True)
class _Polled:
    nbytes: Callable[[], int]
    now: Callable[[], int]  # which may take longer
    share: int


class Kept:
    """The pools of the process, and the budgets living. Each pool keeps what the smallest of these allows."""

    def __init__(self) -> None:
        self._gauges: list[_Gauge] = []
        self._polled: dict[str, _Polled] = {}
        self._followers: Weakly[Follower] = Weakly(self.bound)
        self._most = _MOST

    def add(self, kind: str, pool: Pool) -> None:
        """Count what a pool keeps."""
        gauge = _Gauge(kind, pool)
        self._gauges.append(gauge)

        def changed(nbytes: int) -> None:
            if gauge.move(nbytes):
                self._reserve(gauge)

        pool.watch(changed)

    def poll(
        self, kind: str, nbytes: Callable[[], int], *, now: Callable[[], int] | None = None, share: int = 8
    ) -> None:
        """Count what a pool with a bound of its own keeps, when somebody looks: up to a `share`th of a budget.

        `now` tells it where `nbytes` may be of a short time ago.
        """
        self._polled[kind] = _Polled(nbytes, now or nbytes, share)

    def follow(self, follower: Follower) -> None:
        self._followers.add(follower)
        self.bound()

    def bound(self) -> None:
        """Have the pools keep what all budgets allow."""
        most = min([_MOST, *(follower.most for follower in self._followers.listed())])
        if most != self._most:
            self._most = most
            for gauge in self._gauges:
                gauge.pool.bound(most)
                self._reserve(gauge)

    def _reserve(self, gauge: _Gauge) -> None:
        gauge.reserve(self._most >> 8)
        for follower in self._followers.listed():
            follower.changed()

    def polled(self) -> dict[str, int]:
        """What the pools with bounds of their own keep now."""
        return {kind: pool.now() for kind, pool in self._polled.items()}

    def reserved(self, total: int, before: Mapping[str, int] = _NOTHING) -> int:
        """Bytes to be taken off a budget of so many that began when `before` was `polled`: it can use that again.

        At most its share for each pool, though it may keep more: what it cannot let go of, or one with a bound of its
        own. What other data sets have left there shall not stop this one.
        """
        bounded = sum(min(gauge.reserved, total >> 3) for gauge in self._gauges)
        further = {kind: max(nbytes - before.get(kind, 0), 0) for kind, nbytes in self._lately()}
        return bounded + sum(min(nbytes, total // self._polled[kind].share) for kind, nbytes in further.items())

    def held(self) -> list[tuple[str, int]]:
        """(kind, bytes) of each pool, as of now."""
        return [*((gauge.kind, gauge.nbytes) for gauge in self._gauges), *self.polled().items()]

    def _lately(self) -> list[tuple[str, int]]:
        return [(kind, pool.nbytes()) for kind, pool in self._polled.items()]


KEPT = Kept()
KEPT.add("for reuse", ARENA)
KEPT.add("row groups", RECENT)
KEPT.poll("shared, for reuse", lambda: shared_bytes()[1])
_HEAPS = FreeInHeaps()  # each thread's own: holes in them are many, and cannot go
KEPT.poll("in heaps, for reuse", _HEAPS, now=_HEAPS.look, share=2)


# The C library keeps freed memory for the next element (`machine/malloc.py`), also what lies between pieces that are
# still used: after some hundreds of passes that were dropped half-way that can be gigabytes. Between two epochs nothing
# is given back, as the next one would pay for every page again.

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
        if _malloc_trim() is None or most_resident() <= self._stays or resident() <= self._stays:
            return
        if self._waits.acquire(blocking=False):
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
