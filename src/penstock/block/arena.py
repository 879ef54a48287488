"""Memory for batches, which is reused after its last reader has released it.

The first access to a fresh page costs about 2 µs. For a batch of images, this is a large part of the time of decoding.
Buffers therefore return to a pool. A buffer returns when the last array over it is gone, never by its position in a
ring: JAX on the CPU aliases numpy memory, and autograd does not see writes of numpy.
"""

from __future__ import annotations

import _thread
import signal
from collections import deque
from collections.abc import Callable, Generator
from typing import Any

import numpy as np

from penstock.errors import NO_MEMORY, ResourceExhaustedError
from penstock.forked import in_child, new_rlock
from penstock.hints import size_text

ALIGNMENT = 64  # bytes: a cache line; JAX needs it to use an array without a copy
SMALLEST = 1 << 16  # bytes: for smaller arrays, the system's allocator is as fast as a pool


class _Lease(np.ndarray):
    """The owner of a buffer. Every array over the buffer has it at the end of its `base` chain.

    Its finaliser frees the buffer.

    numpy stops shortening a `base` chain where the type changes, so views of views keep this object alive.
    """

    _finaliser: Generator[None] | None = None

    def __array_finalize__(self, obj: Any) -> None:
        """Keep the class default: a view of a lease owns no memory."""


def _finaliser(arena: Arena, raw: np.ndarray) -> Generator[None]:
    """Return the buffer to the arena when this generator is closed, also by its end of life.

    Python drops an exception of a finaliser, so Ctrl-C would be lost. It may come before the first line of a method
    `__del__`; a generator continues inside its `try`.
    """
    try:
        yield
    finally:
        try:
            arena._give_back(raw)
        except KeyboardInterrupt:
            _CTRL_C.simulated  # noqa: B018


class _Signal(int):
    # a property: after a call, Python acts on signals, and would raise KeyboardInterrupt in the finaliser again
    simulated = property(_thread.interrupt_main)


_CTRL_C = _Signal(signal.SIGINT)


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
        # the finaliser of a lease may run inside this class's own critical section, during garbage collection
        self._lock = new_rlock()
        self._inside = False  # True inside the critical section; read and written under the lock
        in_child(self._count_anew)

    def empty(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """Return an uninitialised array. Its memory returns to the pool when the array and all its views are gone.

        Raises:
            ResourceExhaustedError: If there is not enough memory.
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
        except (MemoryError, ValueError) as error:  # more memory than there is, or a size that numpy cannot express
            message = f"There is no memory for an array of {dtype} with shape {shape}: {size_text(nbytes)}."
            raise ResourceExhaustedError(message, hint=NO_MEMORY) from error
        lease = raw.view(_Lease)
        lease._finaliser = _finaliser(self, raw)
        next(lease._finaliser)
        return lease[:nbytes].view(np.ndarray).view(dtype).reshape(shape)

    def _take(self, nbytes: int) -> np.ndarray:
        with self._lock:
            if not self._inside:
                self._inside = True
                try:
                    found = self._idle_one(nbytes)
                except BaseException:  # a signal
                    self._count_anew()
                    raise
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
            self._idle[nbytes] = idle  # move this size to the end: sizes no longer requested come first
        self._idle_bytes -= nbytes
        self._changed(self._idle_bytes)
        return raw

    def _give_back(self, raw: np.ndarray) -> None:
        with self._lock:
            if self._inside:
                return  # a reentrant call: the memory is freed instead of pooled
            self._inside = True
            try:
                self._idle.setdefault(raw.nbytes, deque()).append(raw)
                self._idle_bytes += raw.nbytes
                self._trim()
            except BaseException:  # a signal
                self._count_anew()
                raise
            self._inside = False

    def _trim(self) -> None:
        while self._idle_bytes > self._idle_limit:  # sizes that were not requested for the longest time go first
            size = next(iter(self._idle))
            self._idle[size].popleft()
            self._idle_bytes -= size
            if not self._idle[size]:
                del self._idle[size]
        self._changed(self._idle_bytes)

    def bound(self, nbytes: int) -> None:
        """Set the limit of idle bytes. Never wait: if another thread is inside, buffers are freed a little later."""
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
        """Call `changed` with the number of idle bytes whenever it changes, from any thread; `changed` must be fast."""
        self._changed = changed
        changed(self._idle_bytes)

    def _count_anew(self) -> None:
        """Repair the counts after a signal, and in a forked child: a thread of the parent may have been inside."""
        self._inside = False
        self._idle = {size: idle for size, idle in self._idle.items() if idle}
        self._idle_bytes = sum(size * len(idle) for size, idle in self._idle.items())

    def idle_bytes(self) -> int:
        """Return the bytes of buffers that wait for reuse."""
        return self._idle_bytes

    def clear(self) -> None:
        """Free the idle buffers."""
        with self._lock:
            self._idle.clear()
            self._idle_bytes = 0
            self._changed(0)


def _nobody(nbytes: int) -> None:
    """Do nothing: the default for `watch`."""


ARENA = Arena()
