"""Footprint: the bytes of memory that Blocks keep alive. This may be more than the bytes of their elements.

Memory that is already counted elsewhere is left out. `MemoryLease` marks memory that is lent to arrays and freed when
the last of them is gone.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Callable
from typing import Any

import numpy as np

from penstock.block.arena import ALIGNMENT
from penstock.block.block import Block
from penstock.block.column import BytesColumn, DenseColumn, ListColumn
from penstock.block.file_mapping import Mapping


class CountedMemory(np.ndarray):
    """The owner in the `base` chain of every array over a piece of memory. `footprint` recognises such memory by it."""


def counted_memory(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Return an uninitialised array. Views of it have no footprint.

    It is aligned like batches: a copy from an address 16 bytes after a cache line takes a third longer.

    >>> from penstock.block.footprint import Footprints
    >>> whole, alive = counted_memory((100,), np.float64), Footprints()
    >>> alive.add(whole[:10])
    >>> alive.nbytes
    0
    """
    nbytes = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.empty(nbytes + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    owner = memory[start : start + nbytes].view(dtype).reshape(shape).view(CountedMemory)
    # numpy shortens a base chain up to the last change of type. Without the intermediate view, the array would not have
    # this owner.
    return owner[:].view(np.ndarray)


def is_counted(array: np.ndarray) -> bool:
    """Return True if an array lies in memory of `counted_memory`.

    >>> is_counted(counted_memory((100,), np.float64)[:10]), is_counted(np.zeros(100)[:10])
    (True, False)
    """
    base = array.base
    while isinstance(base, np.ndarray) and not isinstance(base, CountedMemory):
        base = base.base
    return isinstance(base, CountedMemory)


class MemoryLease(np.ndarray):
    """The owner at the end of the `base` chain of every array over lent memory. Its finaliser ends the loan."""

    _then: Callable[[], None] | None = None

    def __array_finalize__(self, obj: Any) -> None:
        """Keep the class default: a view of a lease owns no memory."""

    def __del__(self) -> None:
        if self._then is not None:
            self._then()


def leased(memory: np.ndarray, then: Callable[[], None]) -> np.ndarray:
    """Return `memory` as a plain array. When the array and all its views are gone, `then` is called, in any thread.

    >>> freed = []
    >>> part = leased(np.zeros(8, np.uint8), lambda: freed.append("memory"))[2:4].view(np.uint16)
    >>> freed
    []
    >>> del part
    >>> freed
    ['memory']
    """
    lease = memory.view(MemoryLease)
    lease._then = then
    # numpy shortens a base chain up to the last change of type. Without the intermediate view, the base would be
    # `memory` itself.
    return lease[:].view(np.ndarray)


_NOTHING = object()
_OBJECT = 64  # bytes assumed for an object of unknown size, as in columns


def footprint(block: Block | None) -> int:
    """Return the bytes that a Block keeps alive, or 0 for None: each array counts whole and once.

    Pages of mapped files count as 0: the system can reclaim them. Memory shared with another process counts, although
    it is mapped. Memory counted by a memory cache does not count again.

    >>> whole = Block.single(DenseColumn(np.zeros((100, 8))))
    >>> footprint(whole), footprint(whole.slice(0, 1)), whole.slice(0, 1).nbytes
    (6400, 6400, 64)
    """
    if block is None:
        return 0
    alive = Footprints()
    alive.add_block(block)
    return alive.nbytes


class Footprints:
    """The bytes that several values keep alive together. Shared memory counts once.

    >>> whole, alive = np.zeros(100), Footprints()
    >>> for part in (whole[:10], whole[10:]):
    ...     alive.add(part)
    >>> alive.nbytes
    800
    >>> alive.remove(whole[10:])
    >>> alive.nbytes
    800
    """

    __slots__ = ("_owners", "_weightless", "nbytes")

    def __init__(self) -> None:
        self._weightless: Any = _NOTHING  # the memory that contains the latest value of size 0
        # per owner: the number of values that keep it alive, and its bytes
        self._owners: dict[int, tuple[int, int]] = {}
        self.nbytes = 0

    def add(self, value: Any) -> None:
        """Count a value. It must stay alive until it is removed."""
        if getattr(value, "base", None) is self._weightless:
            return
        key, nbytes = _owner(value)
        if not nbytes and isinstance(value, np.ndarray):
            if value.base is not None:
                self._weightless = value.base
            return
        count, known = self._owners.get(key, (0, nbytes))
        self._owners[key] = count + 1, known
        if not count:
            self.nbytes += nbytes

    def remove(self, value: Any) -> None:
        """Remove a value that was added."""
        if getattr(value, "base", None) is self._weightless:
            return
        key, nbytes = _owner(value)
        if not nbytes and isinstance(value, np.ndarray):
            return
        count, nbytes = self._owners[key]
        if count > 1:
            self._owners[key] = count - 1, nbytes
        else:
            del self._owners[key]
            self.nbytes -= nbytes

    def add_block(self, block: Block) -> None:
        """Count all arrays of a Block."""
        for column in block.columns:
            if isinstance(column, DenseColumn):
                self.add(column.array)
            elif isinstance(column, BytesColumn):
                for buffer in column.buffers:
                    self.add(buffer)
                self.nbytes += column.starts.nbytes + column.lengths.nbytes
            elif isinstance(column, ListColumn):
                for item in column.items:
                    self.add(item)


def _owner(value: Any) -> tuple[int, int]:
    """Return the identity of the memory that contains a value, and the bytes that it keeps alive."""
    if not isinstance(value, np.ndarray):
        return id(value), getattr(value, "nbytes", _OBJECT)
    base, lent = value, False
    while isinstance(base.base, np.ndarray):
        base = base.base
        lent = lent or isinstance(base, MemoryLease)
        if isinstance(base, CountedMemory):
            return id(base), 0
    below = base.base
    if isinstance(below, memoryview):
        below = below.obj
    if isinstance(below, (mmap.mmap, Mapping)):
        return id(below), base.nbytes if lent else 0
    return (id(below), len(below)) if isinstance(below, (bytes, bytearray)) else (id(base), base.nbytes)
