"""The process executor: as threads, but maps and filters with `num_parallel_calls` run in worker processes."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.physical.transform import Transform, run_all
from penstock.runtime.executors.threads import ThreadExecutor
from penstock.runtime.process_pool import ProcessTask, process_pool
from penstock.runtime.work import RunAll


class ProcessExecutor(ThreadExecutor):
    """Threads pull, batch and wait; the functions of parallel segments run in processes of their own.

    A function is sent with what it closes over, once: what it changes there is seen by calls in the same process only.
    """

    def run_all(self, transforms: Sequence[Transform]) -> RunAll:
        return ProcessTask(process_pool(), transforms) if transforms else run_all
