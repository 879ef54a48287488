"""Memory that this process and its worker processes both see.

A region is created once, sent to its worker as an open file, mapped on both sides, and then used for Block after Block.
What a worker wrote is read here in place: arrays lie over the region, which is free again when the last of them is
gone. A region belongs to one worker, so that what a killed one was writing into is nobody else's.
"""

from __future__ import annotations

import itertools
import socket
import threading
import weakref
from collections import OrderedDict
from functools import cache, partial

import numpy as np

from penstock.block.fork import Fork, made_private
from penstock.block.lease import leased
from penstock.block.region import Owner, Region

_SMALLEST = 1 << 16  # bytes of a region
_LOOSE = 4  # times the bytes wanted that an idle region may have
_IDLE = 1 << 28  # bytes that may wait for their next use
_MOST = 1 << 30  # bytes in all
_MOST_REGIONS = 512


def _rounded(nbytes: int) -> int:
    """The next of 1, 1.25, 1.5, 1.75 times a power of two: few sizes, and little unused."""
    step = max(1, 1 << max(nbytes - 1, 0).bit_length() >> 3)
    return max(-(-nbytes // step) * step, _SMALLEST)


def _descriptors() -> int:
    """Open files that this process may have."""
    try:
        import resource
    except ImportError:
        return 256
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


class SharedMemory:
    """The regions of this process's workers: in use, or idle. Bounded in bytes and in number. Thread-safe."""

    def __init__(self, memory: int = 1 << 34) -> None:
        """`memory` is what the machine grants."""
        self._idle_limit = min(_IDLE, memory // 32)
        self._limit = min(_MOST, memory // 8)
        self._most = min(_MOST_REGIONS, max(_descriptors() // 4, 16))
        self._begin()
        _all.add(self)
        _watch_forks()

    def _begin(self) -> None:
        self._lock = threading.RLock()  # an array may die inside our own critical section, by garbage collection
        self._numbers = itertools.count()
        self._used: set[Region] = set()
        self._idle: OrderedDict[int, Region] = OrderedDict()  # by number, the one longest idle first
        self._used_bytes = self._idle_bytes = 0

    def take(self, owner: Owner, nbytes: int) -> Region | None:
        """A region of at least so many bytes, for this worker; None where there is no more room."""
        if not hasattr(socket, "send_fds"):
            return None
        with self._lock:
            region = self._found(owner, nbytes)
            if region is None:
                size = _rounded(nbytes)
                while self._idle and self._over(size, len(self._idle)):
                    self._drop(next(iter(self._idle.values())))
                if self._over(size, 0):
                    return None
                try:
                    region = Region(owner, next(self._numbers), size)
                except OSError:
                    return None
            self._used.add(region)
            self._used_bytes += region.nbytes
            return region

    def _over(self, more: int, idle: int) -> bool:
        too_many = len(self._used) + idle >= self._most
        return too_many or self._used_bytes + self._idle_bytes + more > self._limit

    def _found(self, owner: Owner, nbytes: int) -> Region | None:
        """The smallest of the owner's idle regions that will do."""
        idle = list(self._idle.values())  # an array may die, and change it, meanwhile
        fitting = [r for r in idle if r.owner is owner and nbytes <= r.nbytes <= _LOOSE * nbytes]
        found = min(fitting, key=_size, default=None)
        if found is not None:
            del self._idle[found.number]
            self._idle_bytes -= found.nbytes
        return found

    def _drop(self, region: Region) -> None:
        """Forget an idle region, and have its owner forget it."""
        if self._idle.pop(region.number, None) is None:
            return
        self._idle_bytes -= region.nbytes
        region.empty()
        region.owner.dropped.append(region.number)

    def give_back(self, region: Region) -> None:
        """Nobody uses it any more."""
        with self._lock:
            if region not in self._used:
                return  # of the process that this one was forked from
            self._used.discard(region)
            self._used_bytes -= region.nbytes
            region.lent = False
            if not region.owner.alive:
                return
            self._idle[region.number] = region
            self._idle_bytes += region.nbytes
            if region.retired:
                self._drop(region)
            while self._idle_bytes > self._idle_limit:
                self._drop(next(iter(self._idle.values())))

    def lend(self, region: Region) -> np.ndarray:
        """The region as an array; it is given back when that and all views of it are gone."""
        region.lent = True
        return leased(region.array, partial(self.give_back, region))

    def scarce(self) -> bool:
        """Whether so much is in use that what can be copied elsewhere should be."""
        return 2 * self._used_bytes > self._limit or 2 * len(self._used) > self._most

    def forget(self, owner: Owner) -> None:
        """The worker is gone. What it wrote stays for those who read it."""
        with self._lock:
            owner.alive = False
            for region in [region for region in list(self._used) if region.owner is owner and not region.lent]:
                self._used.discard(region)
                self._used_bytes -= region.nbytes
            for region in [region for region in list(self._idle.values()) if region.owner is owner]:
                self._drop(region)

    def clear(self) -> None:
        """Let go of the idle regions."""
        with self._lock:
            while self._idle:
                self._drop(next(iter(self._idle.values())))

    def bytes(self) -> tuple[int, int]:
        """(in use, idle)."""
        return self._used_bytes, self._idle_bytes

    # -- around a fork

    def hold(self) -> None:
        self._lock.acquire()

    def is_read(self) -> bool:
        """Whether arrays lie over shared memory."""
        return any(region.lent for region in list(self._used))

    def go_on(self) -> None:
        """In the parent: what the child may read is never written again."""
        for region in list(self._used):
            region.retired = True
        self._lock.release()

    def leave_to_parent(self) -> None:
        """In the child: workers and regions are the parent's; arrays over them become the child's own."""
        used = list(self._used)
        self._begin()
        for region in used:
            region.sent()
            made_private(region.array)


def _size(region: Region) -> int:
    return region.nbytes


_all: weakref.WeakSet[SharedMemory] = weakref.WeakSet()


@cache
def _watch_forks() -> None:
    Fork(_all).watch()


def shared_bytes() -> tuple[int, int]:
    """Bytes of memory shared with worker processes: (in use, idle)."""
    pairs = [memory.bytes() for memory in list(_all)]
    return sum(used for used, _ in pairs), sum(idle for _, idle in pairs)
