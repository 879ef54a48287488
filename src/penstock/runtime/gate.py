"""Gate: how many workers may be inside the segments of a lane at once."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Protocol


class Waiter(Protocol):
    """A worker that waits for a segment from which the gate may keep others out."""

    def nudge(self) -> None:
        """The gate has opened."""


class Gate:
    """Lets in as many workers as `most` says; any number where it is None. Thread-safe.

    A worker that waits for its segment's result would help with it. Kept out by the gate it sleeps, and `leave` gives
    those who have to be told that they may come in again.

    >>> gate = Gate(1)
    >>> gate.enter(), gate.enter(), gate.is_open
    (True, False, False)
    >>> gate.leave(), gate.is_open
    ((), True)
    """

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._inside = 0  # counted where there is a bound
        self._lock = threading.RLock()  # a garbage collection inside may close an abandoned run
        self._waiters: list[Waiter] = []

    @property
    def is_open(self) -> bool:
        """Whether another worker may come in; read without a lock."""
        return self._most is None or self._inside < self._most

    @property
    def is_bounded(self) -> bool:
        return self._most is not None

    def enter(self) -> bool:
        """A worker comes in, if it may."""
        if self._most is None:
            return True
        with self._lock:
            if not self.is_open:
                return False
            self._inside += 1
            return True

    def leave(self) -> Sequence[Waiter] | None:
        """A worker goes; those who may have been kept out, or None where nobody was."""
        if self._most is None:
            return None
        with self._lock:
            self._inside -= 1
            return tuple(self._waiters) if self._inside == self._most - 1 else None

    def set(self, most: int) -> None:
        """Let in so many from now on, where there is a bound; those inside stay until they are done."""
        if self._most is None:
            return
        with self._lock:
            self._most = most
            waiters = tuple(self._waiters)
        for waiter in waiters:
            waiter.nudge()

    def watch(self, waiter: Waiter) -> None:
        """Somebody waits, to be told when the gate opens."""
        with self._lock:
            self._waiters.append(waiter)

    def unwatch(self, waiter: Waiter) -> None:
        with self._lock:
            self._waiters.remove(waiter)
