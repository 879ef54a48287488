"""Memory that this process and its worker processes share.

`Region` is one piece of it, without a name. `Fork` handles a fork of this process.

A region is created once, sent to its worker as an open file, mapped on both sides, and then used for Block after Block.
This process reads the results of a worker in place: arrays lie over the region, which is free again when the last array
is gone. A region belongs to one worker, so a killed worker cannot damage data of others.
"""

from __future__ import annotations

import itertools
import mmap
import os
import select
import socket
import sys
import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterable
from contextlib import suppress
from functools import cache, partial

import numpy as np

from penstock.block.footprint import leased


class RegionOwner:
    """The worker that owns regions, as recorded in this process."""

    def __init__(self) -> None:
        self.alive = True
        self.idle = 0  # regions that wait for reuse
        self.dropped: list[int] = []  # numbers of regions that the worker has to unmap


class Region:
    """One piece of shared memory."""

    __slots__ = ("_mapping", "array", "descriptor", "lent", "nbytes", "number", "owner", "retired")

    def __init__(self, owner: RegionOwner, number: int, nbytes: int) -> None:
        self.owner = owner
        self.number = number
        self.nbytes = nbytes
        self.lent = False  # True while arrays lie over it
        self.retired = False  # True if a forked child may still read it: never reused
        self.descriptor: int | None = created(nbytes)
        self._mapping, self.array = mapped(self.descriptor, nbytes)

    def sent(self) -> None:
        """Close the file after the owner has received it: the mappings keep the memory alive."""
        descriptor, self.descriptor = self.descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def empty(self) -> None:
        """Free the memory, even while the owner still maps it, and this process's mapping."""
        self.sent()
        if hasattr(mmap, "MADV_REMOVE"):
            with suppress(OSError):  # a file system without holes
                self._mapping.madvise(mmap.MADV_REMOVE)
        del self._mapping, self.array  # a mapping holds an open file, and references to the region may remain

    def __del__(self) -> None:
        if getattr(self, "descriptor", None) is not None:
            self.sent()


def mapped(descriptor: int, nbytes: int) -> tuple[mmap.mmap, np.ndarray]:
    """Return the mapping and a writable array of bytes over it. The file may be closed."""
    if sys.version_info >= (3, 13):
        mapping = mmap.mmap(descriptor, nbytes, trackfd=False)
    else:
        mapping = mmap.mmap(descriptor, nbytes)
    return mapping, np.frombuffer(mapping, np.uint8)


def created(nbytes: int) -> int:
    """Return an open file without a name, filled with so many zero bytes."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("penstock")
        try:
            os.ftruncate(descriptor, nbytes)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor
    import tempfile

    with tempfile.TemporaryFile() as file:  # the file is unlinked from the start
        file.write(bytes(nbytes))  # allocates the disk space now; otherwise a full disk would cause a bus error later
        file.flush()
        return os.dup(file.fileno())


_PATIENCE = 10.0  # seconds that a child may take to copy the memory it sees


class Fork:
    """Gives a forked child its own copy of the shared memory that it can see.

    The parent waits until the copy is complete, so that its later writes do not reach the child.
    """

    def __init__(self, memories: Iterable[SharedMemory]) -> None:
        self._memories = memories
        self._held: list[SharedMemory] = []
        self._copied: tuple[int, int] | None = None  # a pipe

    def before(self) -> None:
        self._held = list(self._memories)
        for memory in self._held:
            memory.hold()
        if any(memory.is_read() for memory in self._held):
            self._copied = os.pipe()

    def in_parent(self) -> None:
        held, self._held = self._held, []
        if self._copied is not None:
            (near, far), self._copied = self._copied, None
            os.close(far)
            select.select([near], [], [], _PATIENCE)  # returns when the child closes its end
            os.close(near)
        for memory in held:
            memory.go_on()

    def in_child(self) -> None:
        held, self._held = self._held, []
        for memory in held:
            memory.leave_to_parent()
        if self._copied is not None:
            pipe, self._copied = self._copied, None
            for descriptor in pipe:
                os.close(descriptor)

    def watch(self) -> None:
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(before=self.before, after_in_parent=self.in_parent, after_in_child=self.in_child)


def made_private(array: np.ndarray) -> None:
    """Replace shared memory by private memory with the same content at the same address."""
    import ctypes

    content = array.copy()
    map_memory = ctypes.CDLL(None).mmap
    map_memory.restype = ctypes.c_void_p
    map_memory.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    fixed = 0x10  # MAP_FIXED, on Linux and macOS
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | fixed
    place = map_memory(array.ctypes.data, array.nbytes, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
    if place == array.ctypes.data:
        array[:] = content


_SMALLEST = 1 << 16  # bytes of a region
_LOOSE = 4  # an idle region may be so many times larger than requested
_IDLE = 1 << 28  # bytes of regions that wait for reuse
_IDLE_REGIONS = 16  # idle regions of one owner; each is an open file
_MOST = 1 << 30  # bytes in total
_MOST_REGIONS = 512


def _rounded(nbytes: int) -> int:
    """Round up to 1, 1.25, 1.5 or 1.75 times a power of two: few sizes and little waste."""
    step = max(1, 1 << max(nbytes - 1, 0).bit_length() >> 3)
    return max(-(-nbytes // step) * step, _SMALLEST)


def _descriptors() -> int:
    """Return the number of files that this process may open."""
    try:
        import resource
    except ImportError:
        return 256
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


class SharedMemory:
    """The regions of this process's workers: in use, or idle. Bounded in bytes and in number. Thread-safe."""

    def __init__(self, memory: int = 1 << 34) -> None:
        """Create an empty pool; `memory` is the bytes that the machine grants."""
        self._idle_limit = min(_IDLE, memory // 32)
        self._limit = min(_MOST, memory // 8)
        self._most = min(_MOST_REGIONS, max(_descriptors() // 4, 16))
        self._begin()
        _all.add(self)
        _watch_forks()

    def _begin(self) -> None:
        # an array may die inside this class's own critical section, by garbage collection
        self._lock = threading.RLock()
        self._numbers = itertools.count()
        self._used: set[Region] = set()
        self._idle: OrderedDict[int, Region] = OrderedDict()  # by number, the longest idle first
        self._used_bytes = self._idle_bytes = 0

    def take(self, owner: RegionOwner, nbytes: int) -> Region | None:
        """Return a region of at least so many bytes for this worker, or None if there is no room."""
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

    def _found(self, owner: RegionOwner, nbytes: int) -> Region | None:
        """Return the smallest suitable idle region of the owner, or None."""
        idle = list(self._idle.values())  # a copy, because a dying array may change the dict during the loop
        fitting = [r for r in idle if r.owner is owner and nbytes <= r.nbytes <= _LOOSE * nbytes]
        found = min(fitting, key=_size, default=None)
        if found is not None:
            self._no_longer_idle(found)
        return found

    def _no_longer_idle(self, region: Region) -> bool:
        """Remove a region from the idle ones; return False if it is not idle."""
        if self._idle.pop(region.number, None) is None:
            return False
        self._idle_bytes -= region.nbytes
        region.owner.idle -= 1
        return True

    def _drop(self, region: Region) -> None:
        """Forget an idle region, and have its owner forget it."""
        if self._no_longer_idle(region):
            region.empty()
            region.owner.dropped.append(region.number)

    def give_back(self, region: Region) -> None:
        """Return a region that is no longer used."""
        with self._lock:
            if region not in self._used:
                return  # a region of the process that this one was forked from
            self._used.discard(region)
            self._used_bytes -= region.nbytes
            region.lent = False
            if not region.owner.alive:
                return
            self._idle[region.number] = region
            self._idle_bytes += region.nbytes
            region.owner.idle += 1
            if region.retired:
                self._drop(region)
            if region.owner.idle > _IDLE_REGIONS:
                self._drop(next(other for other in list(self._idle.values()) if other.owner is region.owner))
            while self._idle_bytes > self._idle_limit:
                self._drop(next(iter(self._idle.values())))

    def lend(self, region: Region) -> np.ndarray:
        """Return the region as an array. The region is returned when the array and all its views are gone."""
        region.lent = True
        return leased(region.array, partial(self.give_back, region))

    def scarce(self) -> bool:
        """Return True if so much is in use that results should be copied elsewhere if possible."""
        return 2 * self._used_bytes > self._limit or 2 * len(self._used) > self._most

    def forget(self, owner: RegionOwner) -> None:
        """Forget the regions of a worker that has ended. Lent regions stay until their readers are done."""
        with self._lock:
            owner.alive = False
            for region in [region for region in list(self._used) if region.owner is owner and not region.lent]:
                self._used.discard(region)
                self._used_bytes -= region.nbytes
            for region in [region for region in list(self._idle.values()) if region.owner is owner]:
                self._drop(region)

    def clear(self) -> None:
        """Free the idle regions."""
        with self._lock:
            while self._idle:
                self._drop(next(iter(self._idle.values())))

    def bytes(self) -> tuple[int, int]:
        """Return the bytes (in use, idle)."""
        return self._used_bytes, self._idle_bytes

    # -- before and after a fork

    def hold(self) -> None:
        self._lock.acquire()

    def is_read(self) -> bool:
        """Return True if arrays lie over shared memory."""
        return any(region.lent for region in list(self._used))

    def go_on(self) -> None:
        """Resume in the parent. Regions that the child may read are never reused."""
        for region in list(self._used):
            region.retired = True
        self._lock.release()

    def leave_to_parent(self) -> None:
        """Detach in the child: workers and regions stay with the parent; arrays over them become private."""
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
    """Return the bytes shared with worker processes: (in use, idle)."""
    pairs = [memory.bytes() for memory in list(_all)]
    return sum(used for used, _ in pairs), sum(idle for _, idle in pairs)
