"""Started: a worker process that has begun, after some attempts if need be."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

from penstock.errors import PenstockError
from penstock.runtime.processes.failures import not_started
from penstock.runtime.processes.handle import Worker
from penstock.runtime.processes.link import Late

PATIENCE = 1.0  # seconds that processes get to end by themselves
_ATTEMPTS = 3  # where a process fails by itself: it will again
_FROM_OUTSIDE = 30  # where somebody ends it, which says nothing about the next one
_FIRST_PAUSE, _LONGEST_PAUSE = 0.01, 0.5  # seconds before the next attempt: memory may have run out for a moment
_SENT = {-getattr(signal, name) for name in ("SIGKILL", "SIGTERM", "SIGHUP") if hasattr(signal, name)}  # statuses


def started(make: Callable[[], Worker], wanted: Callable[[], bool], *, wait: bool = True) -> Worker:
    """A new worker, ready for its first task if it is to `wait` for that.

    No further attempt is made when nobody wants it any more. Raises FailedPreconditionError where none can be had.
    """
    by_itself = from_outside = 0
    pause = _FIRST_PAUSE
    while True:
        found = _attempt(make, wait=wait)
        if isinstance(found, Worker):
            return found
        error, sent = found
        by_itself += not sent
        from_outside += sent
        if by_itself == _ATTEMPTS or from_outside == _FROM_OUTSIDE or not wanted():
            raise error
        if sent:
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)


def _attempt(make: Callable[[], Worker], *, wait: bool) -> Worker | tuple[PenstockError, bool]:
    """A worker, or why there is none, and whether that came from outside: by a signal that ends or stops processes."""
    try:
        worker = make()
    except Exception as error:
        return not_started(error, None), False
    if not wait:
        return worker
    try:
        worker.wait_until_ready()
    except Exception as error:
        late = isinstance(error, Late)
        stopped = late and worker.process.stopped()
        code = worker.end(0.0 if late else PATIENCE)
        return not_started(error, code), stopped or (code in _SENT and not late)
    return worker
