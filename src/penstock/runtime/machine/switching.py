"""Switching: how long a thread keeps the interpreter while others wait for it, as long as a pass wants it shorter."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

from penstock.forked import in_child, new_rlock

SHORT = 0.0005  # seconds: what a pass wants while workers wait
_NAPS = 3
_NAP = 1e-6  # seconds, which come to some 60 µs: less would not let others have the interpreter
_LONG_IN_A_ROW = 3  # looks that found it busy; one may be a core that was not free
_SHORT_IN_A_ROW = 10

_LOCK = new_rlock()  # a garbage collection inside may close an abandoned pass
_OPEN: dict[int, float] = {}  # what passes want, in seconds
_SET: list[float] = []  # the interval before the first of them, and the one in force
_turns = 0  # asked for and not yet made


@dataclass
class _Seen:
    """By all passes of the process: some are too short to see much."""

    long: int = 0  # waits, the last ones
    short: int = 0
    busy: bool = False

    def add(self, seconds: float) -> None:
        long = seconds > sys.getswitchinterval() / 2
        self.long, self.short = (self.long + 1, 0) if long else (0, self.short + 1)
        if self.long == _LONG_IN_A_ROW:
            self.busy = True
        elif self.short == _SHORT_IN_A_ROW:
            self.busy = False


SEEN = _Seen()


class Switching:
    """What one pass wants of the process's switch interval: at most `seconds`, from `open` to `close`.

    None lets it be decided by measurement: while threads that come back to the interpreter wait for it as long as the
    interval, some thread computes in Python without pause, and the passes want `SHORT`. Where nobody waits, that
    changes nothing. A pass that is not `tuned` then leaves it alone.

    Source: sys.setswitchinterval.
    """

    def __init__(self, seconds: float | None, *, tuned: bool = True) -> None:
        self._seconds = seconds
        self._measured = tuned and seconds is None
        self._closed = False

    def open(self) -> None:
        if self._seconds is not None:
            self._want(self._seconds)
        elif self._measured and SEEN.busy:
            self._want(SHORT)

    def measure(self) -> None:
        """Let go of the interpreter, and see how long it takes to have it again."""
        if self._measured:
            longest = 0.0
            for _ in range(_NAPS):  # a thread that wants it may not have a core at once
                start = time.perf_counter()
                time.sleep(_NAP)
                longest = max(longest, time.perf_counter() - start)
            self.waited(longest)

    def waited(self, seconds: float) -> None:
        """A thread that came back to the interpreter had it after so long."""
        if self._measured:
            with _LOCK:
                SEEN.add(seconds)
                self._want(SHORT if SEEN.busy else None)

    def close(self) -> None:
        """What the others want counts; without any it is again what it was. Idempotent."""
        with _LOCK:
            self._want(None)
            self._closed = True

    def _want(self, seconds: float | None) -> None:
        with _LOCK:
            if _OPEN.get(id(self)) == seconds or self._closed:  # the latter by another thread, meanwhile
                return
            if seconds is None:
                del _OPEN[id(self)]
            else:
                _OPEN[id(self)] = seconds
            _turn()


def _turn() -> None:
    global _turns
    _turns += 1
    if _turns > 1:  # a garbage collection inside the loop below has led here
        return
    while _turns:
        seen = _turns
        _settle()
        _turns -= seen


def _settle() -> None:
    now = sys.getswitchinterval()
    if not _SET or now != _SET[1]:  # set by somebody else since then, who knows why
        _SET[:] = [now, now]
    wishes = list(_OPEN.values())
    sys.setswitchinterval(min([_SET[0], *wishes]))
    _SET[1] = sys.getswitchinterval()  # to the microsecond
    if not wishes:
        _SET.clear()


@in_child
def _begin_anew() -> None:
    """None of the passes is there."""
    global _turns
    _turns = 0
    if _OPEN:
        _OPEN.clear()
        _turn()
