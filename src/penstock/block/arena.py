"""Memory for batches, used again once nobody holds it.

A fresh page costs about 2 µs at its first touch, which for a batch of images is a large part of their decoding; so
buffers return to a pool. They return when the last array over them is gone, never by position in a ring: JAX on the
CPU aliases numpy memory and autograd does not see numpy's writes, so memory somebody may still read is never reused.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from penstock.errors import NO_MEMORY, ResourceExhaustedError
from penstock.forked import in_child, new_rlock
from penstock.hints import size_text

ALIGNMENT = 64  # bytes: a cache line, and what JAX needs to take an array without a copy
SMALLEST = 1 << 16  # bytes: below this the allocator is as quick as we are


class _Lease(np.ndarray):
    """The owner that every array over a buffer has at the end of its `base` chain; its death frees the buffer.

    numpy stops shortening a `base` chain at a change of type, so views of views keep this object alive.
    """

    _arena: Arena | None = None
    _raw: np.ndarray | None = None

    def __array_finalize__(self, obj: Any) -> None:
        """A view of a lease is no owner: it keeps the class defaults."""

    def __del__(self) -> None:
        if self._arena is not None and self._raw is not None:
            self._arena._give_back(self._raw)


class Arena:
    """A pool of aligned buffers, keyed by size and bounded in bytes. Thread-safe.

    >>> arena = Arena()
    >>> batch = arena.empty((4, 224, 224, 3), np.float32)
    >>> batch.flags.writeable, batch.ctypes.data % 64
    (True, 0)
    """

    def __init__(self, idle_bytes: int = 1 << 28) -> None:
        self._idle_limit = idle_bytes
        self._idle: dict[int, deque[np.ndarray]] = {}
        self._idle_bytes = 0
        self._changed: Callable[[int], None] = _nobody
        self._lock = new_rlock()  # a lease may die inside our own critical section, during garbage collection
        self._inside = False  # of it; told under the lock
        in_child(self._begin_anew)

    def empty(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """An uninitialised array; its memory is free again when it and all views of it are gone.

        Raises ResourceExhaustedError where there is not so much memory.
        """
        dtype = np.dtype(dtype)
        count = 1
        for extent in shape:
            count *= extent
        nbytes = count * dtype.itemsize
        if nbytes < SMALLEST or dtype.hasobject:
            return np.empty(shape, dtype)
        rounded = -(-nbytes // SMALLEST) * SMALLEST
        try:
            raw = self._take(rounded)
        except (MemoryError, ValueError) as error:  # more than there is, or than numpy can name
            message = f"There is no memory for an array of {dtype} with shape {shape}: {size_text(nbytes)}."
            raise ResourceExhaustedError(message, hint=NO_MEMORY) from error
        lease = raw.view(_Lease)
        lease._arena, lease._raw = self, raw
        array: np.ndarray = lease[:nbytes].view(np.ndarray).view(dtype).reshape(shape)
        return array

    def _take(self, nbytes: int) -> np.ndarray:
        with self._lock:
            if not self._inside:
                self._inside = True
                try:
                    found = self._idle_one(nbytes)
                finally:
                    self._inside = False
                if found is not None:
                    return found
        block = np.empty(nbytes + ALIGNMENT, np.uint8)
        start = -block.ctypes.data % ALIGNMENT
        return block[start : start + nbytes]

    def _idle_one(self, nbytes: int) -> np.ndarray | None:
        idle = self._idle.pop(nbytes, None)
        if not idle:
            return None
        raw = idle.pop()
        if idle:
            self._idle[nbytes] = idle  # behind the sizes that nobody asks for any more
        self._idle_bytes -= nbytes
        self._changed(self._idle_bytes)
        return raw

    def _give_back(self, raw: np.ndarray) -> None:
        with self._lock:
            if self._inside:
                return  # the memory is freed
            self._inside = True
            try:
                self._idle.setdefault(raw.nbytes, deque()).append(raw)
                self._idle_bytes += raw.nbytes
                self._trim()
            finally:
                self._inside = False

    def _trim(self) -> None:
        while self._idle_bytes > self._idle_limit:  # the size that waited longest goes first
            size = next(iter(self._idle))
            self._idle[size].popleft()
            self._idle_bytes -= size
            if not self._idle[size]:
                del self._idle[size]
        self._changed(self._idle_bytes)

    def bound(self, nbytes: int) -> None:
        """Hold no more than so many idle bytes. Never waits: what another thread is busy with goes a little later."""
        self._idle_limit = nbytes
        if self._lock.acquire(blocking=False):
            try:
                if not self._inside:
                    self._inside = True
                    self._trim()
                    self._inside = False
            finally:
                self._lock.release()

    def watch(self, changed: Callable[[int], None]) -> None:
        """Call `changed` with the idle bytes whenever these change, from any thread; it must be quick."""
        self._changed = changed
        changed(self._idle_bytes)

    def _begin_anew(self) -> None:
        """In a forked child: another thread of the parent may have been inside."""
        self._inside = False
        self._idle = {size: idle for size, idle in self._idle.items() if idle}
        self._idle_bytes = sum(size * len(idle) for size, idle in self._idle.items())

    def idle_bytes(self) -> int:
        """Bytes held for reuse and used by nobody."""
        return self._idle_bytes

    def clear(self) -> None:
        """Let go of the idle buffers."""
        with self._lock:
            self._idle.clear()
            self._idle_bytes = 0
            self._changed(0)


def _nobody(nbytes: int) -> None:
    """Nobody is told."""


ARENA = Arena()
