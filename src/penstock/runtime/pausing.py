"""The function with which stages wait for events outside the process."""

from __future__ import annotations

import time

from penstock.physical.lower import Pause, Wait
from penstock.runtime.scheduler import Scope, on_worker
from penstock.runtime.segment import Aborted


def pausing(scope: Scope) -> Pause:
    """Return a function that sleeps, or calls `wait`.

    While a worker waits in it, another thread takes the worker's place.

    The function raises Aborted after the run of `scope` was closed, because the closing thread waits for the workers.
    """
    scheduler = scope.scheduler

    def pause(seconds: float, wait: Wait = time.sleep) -> None:
        worker = on_worker()
        outside = worker and scheduler.come_back()
        if worker:
            scheduler.begin_waiting()
        try:
            wait(seconds)
        finally:
            if worker:
                scheduler.end_waiting()
            if outside:
                scheduler.go_outside(time.perf_counter())
        if scope.closed:
            raise Aborted

    return pause
