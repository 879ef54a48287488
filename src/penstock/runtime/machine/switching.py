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
_BUSY = 0.25  # cores: what threads that are no workers compute then; the loop that takes elements comes to 0.2

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

    def add(self, seconds: float, outside: float | None) -> None:
        long = seconds > sys.getswitchinterval() / 2 and (outside is None or outside > _BUSY)
        self.long, self.short = (self.long + 1, 0) if long else (0, self.short + 1)
        if self.long == _LONG_IN_A_ROW:
            self.busy = True
        elif self.short == _SHORT_IN_A_ROW:
            self.busy = False


SEEN = _Seen()


class Switching:
    """What one pass wants of the process's switch interval: at most `seconds`, from `open` to `close`.

    None lets it be decided by measurement: while threads that come back to the interpreter wait for it as long as the
    interval, and threads that are no workers compute, one of these does so in Python without pause, and the passes want
    `SHORT`. Where it is many workers that wait for each other it stays as it is: each of them that waits wakes up after
    an interval, to ask for the interpreter, and 64 of them take twice the CPU time at `SHORT`. A pass that is not
    `tuned` leaves it alone.

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

    def measure(self, outside: float | None) -> None:
        """Let go of the interpreter, and see how long it takes to have it again.

        `outside` is what threads that are no workers computed lately, in cores; None where that is not known.
        """
        if self._measured:
            longest = 0.0
            for _ in range(_NAPS):  # a thread that wants it may not have a core at once
                start = time.perf_counter()
                time.sleep(_NAP)
                longest = max(longest, time.perf_counter() - start)
            self.waited(longest, outside)

    def waited(self, seconds: float, outside: float | None = None) -> None:
        """A thread that came back to the interpreter had it after so long."""
        if self._measured:
            with _LOCK:
                SEEN.add(seconds, outside)
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
