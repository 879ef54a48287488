"""How long a thread was ready to run and got no core, as Linux counts it."""

from __future__ import annotations

import os
import sys
import threading
import weakref

_BYTES = 64


class Queued:
    """The time in which the thread that makes it waited for a core; may be asked by any. Takes 2 µs.

    That is why a worker does not ask for itself: a thread that waits for the interpreter's lock and finds it free for a
    microsecond only, again and again, never gets to demand it.

    >>> Queued().seconds() >= 0
    True
    """

    def __init__(self) -> None:
        self._descriptor: int | None = None
        if sys.platform == "linux":
            try:
                path = f"/proc/self/task/{threading.get_native_id()}/schedstat"
                self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except OSError:  # a system without /proc, or no file left to open
                return
            weakref.finalize(self, os.close, self._descriptor)

    def seconds(self) -> float:
        """Seconds so far; 0 where the system does not tell."""
        if self._descriptor is None:
            return 0.0
        try:
            return int(os.pread(self._descriptor, _BYTES, 0).split()[1]) * 1e-9
        except (OSError, IndexError, ValueError):  # the thread has ended
            return 0.0
