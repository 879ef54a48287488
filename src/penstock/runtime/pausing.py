"""pausing: how stages wait for what happens outside of the process."""

from __future__ import annotations

import time

from penstock.physical.lower import Pause, Wait
from penstock.runtime.scheduler import Scheduler, Scope, on_worker
from penstock.runtime.segment import Aborted


def pausing(scheduler: Scheduler, scope: Scope) -> Pause:
    """A function that waits so many seconds, or as `wait` does, while another thread works for a worker that calls it.

    It raises Aborted when the run of `scope` has been closed: who closes it waits for its workers to come out.
    """

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
