"""Bell: where threads sleep until something changes, and from which none misses a ring."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol


class Bell:
    """As `threading.Condition`, for a lock that several bells share.

    Contract: (1) All calls are made with the lock taken. (2) Who listens is reached by every ring from then on, also by
    one that this very thread brings about: a garbage collection may close a run anywhere, and so between a look around
    and the sleep behind it. So: listen, look, then `sleep` or `leave`. (3) To ring costs next to nothing while nobody
    listens: it is done for every Block, mostly for nobody.

    >>> lock = threading.RLock()
    >>> bell = Bell(lock)
    >>> with lock:
    ...     bell.wait_for(lambda: True), bell.wait_for(lambda: False, timeout=0.01)
    (True, False)
    """

    def __init__(self, lock: threading.RLock) -> None:
        self._lock: Reentrant = lock  # type: ignore[assignment]
        self.listening: deque[threading.Lock] = deque()  # who first listens is first woken; to be read without the lock

    def wait_for(self, ready: Callable[[], bool], timeout: float | None = None) -> bool:
        """Sleep until `ready()`, which is asked at each ring; False if that takes longer than `timeout` seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        ear = new_ear()
        while True:
            self.listen(ear)
            try:
                late = deadline is not None and time.monotonic() >= deadline
                found = ready()
            except BaseException:
                self.leave(ear)
                raise
            if found or late:
                self.leave(ear)
                return found
            self.sleep(ear, None if deadline is None else max(deadline - time.monotonic(), 0.0))

    def listen(self, ear: threading.Lock) -> None:
        """Be reached by the rings that come."""
        self.listening.append(ear)

    def leave(self, ear: threading.Lock) -> None:
        """Listen no more, rung for or not."""
        try:
            self.listening.remove(ear)
        except ValueError:
            ear.acquire(blocking=False)  # closed already where a Ctrl-C came just behind the ring

    def sleep(self, ear: threading.Lock, timeout: float | None = None) -> None:
        """Let go of the lock, however often it is taken, until there is a ring, which ends the listening."""
        held = None
        rung = False
        try:
            held = self._lock._release_save()  # as threading.Condition does
            rung = ear.acquire(timeout=-1 if timeout is None else timeout)
        finally:
            if held is None:  # a Ctrl-C came between the call and the assignment
                self._lock.acquire()
            else:
                self._lock._acquire_restore(held)
            if not rung:
                self.leave(ear)

    def ring(self) -> None:
        """Wake all who listen."""
        while self.listening:
            self.ring_one()

    def ring_one(self) -> None:
        """Wake who has listened longest."""
        try:
            self.listening.popleft().release()
        except IndexError:  # nobody: or a garbage collection in here has rung
            return


class Reentrant(Protocol):
    """What a `threading.RLock` has for conditions."""

    def acquire(self) -> bool: ...
    def _release_save(self) -> Any: ...
    def _acquire_restore(self, state: Any) -> None: ...


def new_ear() -> threading.Lock:
    """What one thread listens with: closed, as a ring opens it."""
    ear = threading.Lock()
    ear.acquire()
    return ear
