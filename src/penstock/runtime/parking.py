"""ParkingLot: where threads sleep until something changes, and none misses a wake-up."""

from __future__ import annotations

import gc
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol


class ParkingLot:
    """As `threading.Condition`, for a lock that several parking lots share.

    Contract: (1) All calls are made with the lock taken. (2) A registered token is reached by each unpark from then on,
    also by one that this very thread brings about: a garbage collection may close a run anywhere, also between a look
    around and the sleep behind it. So: register, look, then `park` or `unregister`. (3) To unpark costs next to nothing
    while nothing is registered: it is done for every Block, mostly for nobody.

    >>> lock = threading.RLock()
    >>> lot = ParkingLot(lock)
    >>> with lock:
    ...     lot.wait_for(lambda: True), lot.wait_for(lambda: False, timeout=0.01)
    (True, False)
    """

    def __init__(self, lock: threading.RLock) -> None:
        self._lock: Reentrant = lock  # type: ignore[assignment]
        self.registered: deque[threading.Lock] = deque()  # the first is woken first; to be read without the lock

    def wait_for(self, ready: Callable[[], bool], timeout: float | None = None) -> bool:
        """Sleep until `ready()`, which is asked at each wake-up; False if that takes longer than `timeout` seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        token = new_token()
        while True:
            self.register(token)
            try:
                late = deadline is not None and time.monotonic() >= deadline
                found = ready()
            except BaseException:
                self.unregister(token)
                raise
            if found or late:
                self.unregister(token)
                return found
            self.park(token, None if deadline is None else max(deadline - time.monotonic(), 0.0))

    def register(self, token: threading.Lock) -> None:
        """Have the token reached by every unpark from now on."""
        self.registered.append(token)

    def unregister(self, token: threading.Lock) -> None:
        """Have it reached no more, whether it was or not."""
        try:
            self.registered.remove(token)
        except ValueError:
            token.acquire(blocking=False)  # closed already where a Ctrl-C came just behind the unpark

    def park(self, token: threading.Lock, timeout: float | None = None) -> None:
        """Let go of the lock, however often it is taken, until the token is reached, which unregisters it."""
        held = None
        woken = False
        try:
            held = self._lock._release_save()  # as threading.Condition does
            woken = token.acquire(timeout=-1 if timeout is None else timeout)
        finally:
            if held is None:  # a Ctrl-C came between the call and the assignment
                self._lock.acquire()
            else:
                self._lock._acquire_restore(held)
            if not woken:
                self.unregister(token)

    def unpark_all(self) -> None:
        """Wake all that are registered."""
        while self.registered:
            self.unpark_one()

    def unpark_one(self) -> None:
        """Wake the one that was registered first."""
        try:
            self.registered.popleft().release()
        except IndexError:  # nobody: or a garbage collection in here has done it
            return


class Reentrant(Protocol):
    """What a `threading.RLock` has for conditions."""

    def acquire(self) -> bool: ...
    def _release_save(self) -> Any: ...
    def _acquire_restore(self, state: Any) -> None: ...


def new_token() -> threading.Lock:
    """A token for one thread: a lock that is taken, as an unpark releases it."""
    token = threading.Lock()
    token.acquire()
    return token


# A collection calls these two methods with ("start", info) and ("stop", info), so that the last key is the last phase.
# Both are C code: a signal that arrives in a collection raises in the first Python code that runs, and an exception in
# a callback of the collector is lost.
_phases: dict[str, object] = {}
gc.callbacks += [_phases.pop, _phases.__setitem__]


def collecting() -> bool:
    """Return True while a garbage collection runs.

    A finaliser that a collection calls must not wait for other threads: its thread may hold locks that they need.

    >>> collecting()
    False
    """
    return next(reversed(_phases), "stop") == "start"
