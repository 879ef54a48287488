"""Switching sets the switch interval: how long a thread keeps the interpreter while other threads wait for it."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

from penstock.forked import in_child, new_rlock

SHORT = 0.0005  # seconds: the interval that an iteration wants while workers wait
_NAPS = 3
_NAP = 1e-6  # seconds, which take about 60 µs; shorter sleeps would not release the interpreter
_LONG_IN_A_ROW = 3  # slow measurements in a row; a single one may come from a busy core
_SHORT_IN_A_ROW = 10
_BUSY = 0.25  # cores that other threads than workers use; a training loop that only takes elements uses 0.2

_LOCK = new_rlock()  # reentrant: a garbage collection inside may close an abandoned iteration
_OPEN: dict[int, float] = {}  # intervals that iterations want, in seconds
_SET: list[float] = []  # the interval before the first iteration, and the present one
_turns = 0  # requested changes that are not made yet


@dataclass
class _Seen:
    """Measurements of all iterations of the process, because some iterations are too short for their own."""

    long: int = 0  # number of last waits in a row that were long
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
    """The switch interval that one iteration wants for the process: at most `seconds`, from `open` to `close`.

    With None, measurements decide. Suppose that threads wait as long as the interval for the interpreter, and other
    threads than workers compute. Then such a thread runs Python code without a pause, and the iterations want `SHORT`.
    If many workers wait only for each other, the interval stays. The reason is that each waiting worker wakes up after
    an interval to demand the interpreter. With `SHORT`, 64 workers use twice the CPU time. An iteration that is not
    `tuned` changes nothing.

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
        """Release the interpreter, and measure the time until this thread has it again.

        `outside` is the number of cores that other threads than workers used recently. None: not known.
        """
        if self._measured:
            longest = 0.0
            for _ in range(_NAPS):  # a waiting thread may have no core at first
                start = time.perf_counter()
                time.sleep(_NAP)
                longest = max(longest, time.perf_counter() - start)
            self.waited(longest, outside)

    def waited(self, seconds: float, outside: float | None = None) -> None:
        """Record the time that a thread waited for the interpreter."""
        if self._measured:
            with _LOCK:
                SEEN.add(seconds, outside)
                self._want(SHORT if SEEN.busy else None)

    def close(self) -> None:
        """Withdraw the wish of this iteration. The last iteration restores the original interval. Idempotent."""
        with _LOCK:
            self._want(None)
            self._closed = True

    def _want(self, seconds: float | None) -> None:
        with _LOCK:
            if _OPEN.get(id(self)) == seconds or self._closed:  # another thread may have closed it
                return
            if seconds is None:
                del _OPEN[id(self)]
            else:
                _OPEN[id(self)] = seconds
            _turn()


def _turn() -> None:
    global _turns
    _turns += 1
    if _turns > 1:  # called by a garbage collection inside the loop below
        return
    while _turns:
        seen = _turns
        _settle()
        _turns -= seen


def _settle() -> None:
    now = sys.getswitchinterval()
    if not _SET or now != _SET[1]:  # other code has set the interval
        _SET[:] = [now, now]
    wishes = list(_OPEN.values())
    sys.setswitchinterval(min([_SET[0], *wishes]))
    _SET[1] = sys.getswitchinterval()  # rounded to a microsecond
    if not wishes:
        _SET.clear()


@in_child
def _begin_anew() -> None:
    """Forget all iterations in a forked child, which has none of them."""
    global _turns
    _turns = 0
    if _OPEN:
        _OPEN.clear()
        _turn()
