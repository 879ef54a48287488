"""ParkingLot: threads sleep here until something changes, and miss no wake-up."""

from __future__ import annotations

import gc
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

_PASSING = 0.001  # most seconds that a worker waits for a consumer that it has woken


class ParkingLot:
    """Like `threading.Condition`, for a lock that several parking lots share.

    The contract has three rules:

    - The lock is held during all calls.
    - Each unpark wakes a registered token, even if this very thread causes the unpark. A garbage collection may close a
      run anywhere, for example between a check and the sleep after it. Therefore: register, check, then `park` or
      `unregister`.
    - An unpark without registered tokens costs almost nothing, because it happens for every Block.

    >>> lock = threading.RLock()
    >>> lot = ParkingLot(lock)
    >>> with lock:
    ...     lot.wait_for(lambda: True), lot.wait_for(lambda: False, timeout=0.01)
    (True, False)
    """

    def __init__(self, lock: threading.RLock) -> None:
        self._lock: Reentrant = lock  # type: ignore[assignment]
        self.registered: deque[threading.Lock] = deque()  # the first is woken first; may be read without the lock

    def wait_for(self, ready: Callable[[], bool], timeout: float | None = None) -> bool:
        """Sleep until `ready()` is True. It is called at each wake-up. Return False after `timeout` seconds."""
        if ready():
            return True
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
        """Let every unpark wake the token from now on."""
        self.registered.append(token)

    def unregister(self, token: threading.Lock) -> None:
        """Remove the token, even if it has been woken."""
        try:
            self.registered.remove(token)
        except ValueError:
            token.acquire(blocking=False)  # a Ctrl-C directly after the unpark leaves the token closed

    def park(self, token: threading.Lock, timeout: float | None = None) -> None:
        """Release the lock, at any depth, until the token is woken. The wake-up removes the token."""
        held = None
        woken = False
        try:
            held = self._lock._release_save()  # threading.Condition uses the same method
            woken = token.acquire(timeout=-1 if timeout is None else timeout)
        finally:
            if held is None:  # a Ctrl-C came between the call and the assignment
                self._lock.acquire()
            else:
                self._lock._acquire_restore(held)
            if not woken:
                self.unregister(token)

    def unpark_all(self) -> None:
        """Wake all registered tokens."""
        while self.registered:
            self.unpark_one()

    def unpark_one(self) -> None:
        """Wake the token that was registered first."""
        try:
            self.registered.popleft().release()
        except IndexError:  # no token, or a garbage collection in this call has woken it
            return


class HandOver:
    """Lets a consumer run that a worker has woken.

    A function that releases the interpreter lock for moments only takes it back before a waking thread can. The
    consumer would not run until there is no room for results.
    """

    def __init__(self, lock: threading.RLock) -> None:
        self.waiting = ParkingLot(lock)  # consumers that wait for a result or the end
        self._lock = lock
        self._lot = ParkingLot(lock)
        self._caller: int | None = None  # the thread that called, until the consumer runs

    def call(self) -> None:
        """Wake the waiting consumers, under the lock."""
        self._caller = threading.get_ident()
        self.waiting.unpark_all()

    def answer(self) -> None:
        """Note, under the lock, that the consumer runs."""
        if self._caller is not None:
            self._caller = None
            self._lot.unpark_all()

    def wait(self) -> None:
        """Wait until the consumer runs that this thread called, at most a millisecond.

        The thread must not hold objects of the user.
        """
        if self._caller == threading.get_ident():
            with self._lock:
                self._lot.wait_for(lambda: self._caller is None, _PASSING)


class Reentrant(Protocol):
    """The methods of `threading.RLock` that conditions use."""

    def acquire(self) -> bool: ...
    def _release_save(self) -> Any: ...
    def _acquire_restore(self, state: Any) -> None: ...


def new_token() -> threading.Lock:
    """Return a token for one thread: a locked lock, which an unpark releases."""
    token = threading.Lock()
    token.acquire()
    return token


# A collection calls these two methods with ("start", info) and ("stop", info), so the last key is the present phase.
# Both are C code, because a signal during a collection raises in the first Python code that runs. An exception in a
# callback of the collector is lost.
_phases: dict[str, object] = {}
gc.callbacks += [_phases.pop, _phases.__setitem__]


def collecting() -> bool:
    """Return True while a garbage collection runs.

    A finaliser must not wait for other threads, because its own thread may hold locks that they need.

    >>> collecting()
    False
    """
    return list(_phases)[-1:] == ["start"]
