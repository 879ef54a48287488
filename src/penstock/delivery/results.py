"""Results of a range in their packed form. The arrays of large results go through memory that both sides map."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np

from penstock.block.shared_memory import Region, RegionOwner, SharedMemory, mapped
from penstock.block.transport import pack, unpack
from penstock.physical.stretch import Stretch, join
from penstock.runtime.machine.granted import granted_memory
from penstock.runtime.processes.link import Link, Message, Pickled
from penstock.runtime.processes.worker import sendable, sendable_alone


def packed(parts: Sequence[Stretch]) -> Pickled:
    """Pack elements and failures. An element that cannot be pickled becomes a failure with the reason."""
    ready = [sendable(part) for part in parts]
    try:
        return Pickled.of(*pack(_plain(ready)))
    except Exception:
        ready = [join([sendable_alone(part.slice(at, at + 1)) for at in range(part.size)]) for part in ready]
        return Pickled.of(*pack(_plain(ready)))


def unpacked(content: Any, buffers: Sequence[Any]) -> list[Stretch]:
    """Return the unpacked stretches. Their arrays are views of the buffers."""
    return [Stretch(block, failures) for block, failures in unpack(content, buffers)]


def _plain(parts: Sequence[Stretch]) -> list[tuple[Any, ...]]:
    return [(part.block, part.failures) for part in parts]


# The consumer lends a worker regions of its pool, one per requested range, as `runtime.processes` does. A region is
# mapped once, and used again when the consumer has no arrays over it. A result that is too large, or comes when the
# pool is full, gets its own memory. A socket would copy arrays four times. Regions have no names, so the system frees
# them when both sides have ended. A worker without a socket, such as a Ray actor on the same machine, opens them in
# /proc.

_LEAST = 1 << 18  # bytes; sharing memory for a smaller result costs more than it saves


@cache
def _pool() -> SharedMemory:
    return SharedMemory(granted_memory())


class Lent:
    """The consumer's side of the regions that are lent to one worker. One thread at a time uses it.

    `lend` makes the worker map a region. `unmap` makes it forget the region with a number.
    """

    def __init__(self, lend: Callable[[Region], None], unmap: Callable[[int], object]) -> None:
        self._lend = lend
        self._unmap = unmap
        self._owner = RegionOwner()
        self._mapped: dict[int, Region] = {}  # regions that the worker has mapped
        self._offered: dict[Any, Region] = {}  # lent regions, by the key of the result

    def offer(self, key: Any, nbytes: int) -> int:
        """Return the number of a region for the result with `key`, of about `nbytes` bytes, or -1."""
        memory = _pool()
        while self._owner.dropped:
            number = self._owner.dropped.pop()
            if self._mapped.pop(number, None) is not None:
                self._unmap(number)
        if nbytes < _LEAST or memory.scarce() or key in self._offered:
            return -1
        region = memory.take(self._owner, nbytes)
        if region is None:
            return -1
        self._offered[key] = region
        if region.number not in self._mapped:
            self._lend(region)
            self._mapped[region.number] = region
        return region.number

    def settle(self, key: Any, message: Message) -> None:
        """Attach the arrays in a region to the message's body. An unused region returns to the pool."""
        region = self._offered.pop(key, None)
        if region is None:
            return
        region.sent()
        if message.region != region.number:
            _pool().give_back(region)
            return
        message.body, message.region = _pool().lend(region), -1

    def end(self) -> None:
        """End lending, because the worker is gone. Arrays in its regions stay valid."""
        _pool().forget(self._owner)


class Regions:
    """The worker's side of the regions of one consumer."""

    def __init__(self) -> None:
        self._arrays: dict[int, np.ndarray] = {}

    def map(self, number: int, nbytes: int, descriptor: int) -> None:
        """Map a region from an open file, and close the file."""
        try:
            self._arrays[number] = mapped(descriptor, nbytes)[1]
        finally:
            os.close(descriptor)

    def unmap(self, number: int) -> None:
        self._arrays.pop(number, None)

    def open(self, number: int, nbytes: int, path: str, mark: bytes) -> None:
        """Map a region of a process on this machine, by a path from `path_of`. The file begins with `mark`.

        The region stays unknown if the file cannot be opened. A process id of another container may lead to another
        file, which has no `mark`.
        """
        with suppress(OSError):
            descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY)
            if os.fstat(descriptor).st_size != nbytes:
                os.close(descriptor)
                return
            self.map(number, nbytes, descriptor)
            if self._arrays[number][: len(mark)].tobytes() != mark:
                self.unmap(number)

    def __contains__(self, number: int) -> bool:
        return number in self._arrays

    def write(self, packed: Pickled, offered: int) -> bool:
        """Write the arrays into an offered region. Return False if there is none, or if they do not fit."""
        memory = self._arrays.get(offered)
        if memory is None or not _LEAST <= packed.nbytes <= memory.nbytes:
            return False
        packed.write(memory)
        return True


def path_of(region: Region) -> tuple[str, bytes]:
    """Return the path where another process of this user opens a new region, and the first bytes of the file."""
    mark = os.urandom(16)
    region.array[: len(mark)] = np.frombuffer(mark, np.uint8)
    return f"/proc/{os.getpid()}/fd/{region.descriptor}", mark


def send(link: Link, head: tuple[Any, ...], packed: Pickled, region: int = -1) -> None:
    """Send like `link.send`, and put large arrays without a region into shared memory."""
    if region < 0 and packed.nbytes >= _LEAST and hasattr(os, "memfd_create"):
        with suppress(OSError):  # if shared memory or file descriptors run out, the socket is used
            descriptor = _written(packed)
            try:
                link.send(head, packed, 0, descriptor)
                return
            finally:
                os.close(descriptor)
    link.send(head, packed, region)


def received(link: Link) -> Message:
    """Receive like `link.receive`, with the arrays in the message's body, except arrays in a lent region."""
    message = link.receive()
    if message.descriptor is not None:
        try:
            # A private mapping is copied on write, so a forked child does not see writes of its parent.
            memory = mmap.mmap(message.descriptor, message.nbytes, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
        finally:
            os.close(message.descriptor)
        message.body, message.descriptor, message.region = np.frombuffer(memory, np.uint8), None, -1
    return message


def _written(packed: Pickled) -> int:
    descriptor = os.memfd_create("penstock")
    try:
        os.ftruncate(descriptor, packed.nbytes)
        with mmap.mmap(descriptor, packed.nbytes) as memory:
            packed.write(np.frombuffer(memory, np.uint8))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
