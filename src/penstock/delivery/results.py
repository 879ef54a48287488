"""What became of a range, as it travels back; the arrays of large results go through memory that both sides map."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np

from penstock.block.shared_memory import Owner, Region, SharedMemory, mapped
from penstock.block.transport import pack, unpack
from penstock.physical.stretch import Stretch, join
from penstock.runtime.machine.granted import granted_memory
from penstock.runtime.processes.link import Link, Message, Packed
from penstock.runtime.processes.worker import sendable, sendable_alone


def packed(parts: Sequence[Stretch]) -> Packed:
    """Elements and failures; an element that cannot be pickled becomes a failure that says so."""
    ready = [sendable(part) for part in parts]
    try:
        return Packed.of(*pack(_plain(ready)))
    except Exception:
        ready = [join([sendable_alone(part.slice(at, at + 1)) for at in range(part.size)]) for part in ready]
        return Packed.of(*pack(_plain(ready)))


def unpacked(content: Any, buffers: Sequence[Any]) -> list[Stretch]:
    """The same, over the buffers without a copy."""
    return [Stretch(block, failures) for block, failures in unpack(content, buffers)]


def _plain(parts: Sequence[Stretch]) -> list[tuple[Any, ...]]:
    return [(part.block, part.failures) for part in parts]


# The consumer lends a worker regions of its pool, one for each range that it asks for, as `runtime.processes` does:
# they are mapped once and used again when the consumer holds no array over them any more. What does not fit, or finds
# the pool used up, gets a piece of memory of its own. Over the socket arrays would be copied four times. Regions have
# no names: whichever side is killed, the system frees them with the other's last use. A worker without a socket to the
# consumer, an actor of Ray's on its machine, opens them where the system shows a process's open files.

_LEAST = 1 << 18  # bytes from which memory that both map is worth its calls


@cache
def _pool() -> SharedMemory:
    return SharedMemory(granted_memory())


class Lent:
    """The consumer's side of one worker: the regions that it has been lent. Used by one thread at a time.

    `lend` has the worker map a region, and `unmap` the one of a number be forgotten by it.
    """

    def __init__(self, lend: Callable[[Region], None], unmap: Callable[[int], object]) -> None:
        self._lend = lend
        self._unmap = unmap
        self._owner = Owner()
        self._mapped: dict[int, Region] = {}  # by the worker
        self._offered: dict[Any, Region] = {}  # by what they are for

    def offer(self, key: Any, nbytes: int) -> int:
        """The number of a region for the result that is called `key`, of about so many bytes; -1 for none."""
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
        """Put the arrays of a result into the message's body, or take the region back that it has not used."""
        region = self._offered.pop(key, None)
        if region is None:
            return
        region.sent()
        if message.region != region.number:
            _pool().give_back(region)
            return
        message.body, message.region = _pool().lend(region), -1

    def end(self) -> None:
        """The worker is gone, or not needed any more. What it wrote stays for those who read it."""
        _pool().forget(self._owner)


class Regions:
    """The worker's side of one consumer."""

    def __init__(self) -> None:
        self._arrays: dict[int, np.ndarray] = {}

    def map(self, number: int, nbytes: int, descriptor: int) -> None:
        """Be lent a region: an open file, which is closed."""
        try:
            self._arrays[number] = mapped(descriptor, nbytes)[1]
        finally:
            os.close(descriptor)

    def unmap(self, number: int) -> None:
        self._arrays.pop(number, None)

    def open(self, number: int, nbytes: int, path: str, mark: bytes) -> None:
        """Be lent a region by a process of this machine, at a path of `path_of`, which begins with `mark`.

        Where that cannot be opened, or is another file as the number of the process is another container's, the region
        stays unknown.
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

    def write(self, packed: Packed, offered: int) -> bool:
        """Put the arrays into the region that was offered. False where none was, or they do not fit."""
        memory = self._arrays.get(offered)
        if memory is None or not _LEAST <= packed.nbytes <= memory.nbytes:
            return False
        packed.write(memory)
        return True


def path_of(region: Region) -> tuple[str, bytes]:
    """Where another process of this user and machine opens a new region of ours, and what it begins with there."""
    mark = os.urandom(16)
    region.array[: len(mark)] = np.frombuffer(mark, np.uint8)
    return f"/proc/{os.getpid()}/fd/{region.descriptor}", mark


def send(link: Link, head: tuple[Any, ...], packed: Packed, region: int = -1) -> None:
    """As `link.send`, with large arrays that are in no region in memory of their own."""
    if region < 0 and packed.nbytes >= _LEAST and hasattr(os, "memfd_create"):
        with suppress(OSError):  # no memory of that kind, or no open file left: the socket does
            descriptor = _written(packed)
            try:
                link.send(head, packed, 0, descriptor)
                return
            finally:
                os.close(descriptor)
    link.send(head, packed, region)


def received(link: Link) -> Message:
    """As `link.receive`, with the arrays in the message's body wherever they came, but for a region that was lent."""
    message = link.receive()
    if message.descriptor is not None:
        try:
            # a copy of one's own as soon as it is written to: a forked child does not see what its parent writes
            memory = mmap.mmap(message.descriptor, message.nbytes, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
        finally:
            os.close(message.descriptor)
        message.body, message.descriptor, message.region = np.frombuffer(memory, np.uint8), None, -1
    return message


def _written(packed: Packed) -> int:
    descriptor = os.memfd_create("penstock")
    try:
        os.ftruncate(descriptor, packed.nbytes)
        with mmap.mmap(descriptor, packed.nbytes) as memory:
            packed.write(np.frombuffer(memory, np.uint8))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
