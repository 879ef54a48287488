"""Switching: how long a thread keeps the interpreter while others wait for it, as long as a run wants it shorter."""

from __future__ import annotations

import sys
import threading

_LOCK = threading.RLock()  # a garbage collection inside may close an abandoned run
_OPEN: dict[int, float] = {}  # what runs want, in seconds
_SET: list[float] = []  # the interval before the first of them, and the one in force


class Switching:
    """From now until `close` the switch interval of the process is at most `seconds`; None leaves it as it is.

    Source: sys.setswitchinterval.
    """

    def __init__(self, seconds: float | None) -> None:
        if seconds is not None:
            with _LOCK:
                _OPEN[id(self)] = seconds
                _turn()

    def close(self) -> None:
        """What the others want counts; without any it is again what it was. Idempotent."""
        with _LOCK:
            if _OPEN.pop(id(self), None) is not None:
                _turn()


def _turn() -> None:
    now = sys.getswitchinterval()
    if not _SET or now != _SET[1]:  # set by somebody else since then, who knows why
        _SET[:] = [now, now]
    wanted = min(_SET[0], *_OPEN.values()) if _OPEN else _SET[0]
    sys.setswitchinterval(wanted)
    _SET[1] = sys.getswitchinterval()  # to the microsecond
    if not _OPEN:
        _SET.clear()
