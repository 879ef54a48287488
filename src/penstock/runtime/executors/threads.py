"""The thread executor: segments on the process's pool of workers. The default; kernels release the GIL."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from weakref import WeakKeyDictionary

from penstock.options import Options
from penstock.physical.executor import BatchTask, Executor
from penstock.physical.stage import Stage
from penstock.physical.transform import Transform, run_all
from penstock.plan.node import AUTOTUNE
from penstock.runtime.instrument import Instrument
from penstock.runtime.machine import at_most, autotuned_workers, granted_cpus, granted_memory
from penstock.runtime.scheduler import Scheduler, Scope
from penstock.runtime.segment import Segment, Work
from penstock.runtime.work import RunAll, reading_ahead, work_of

_WINDOW = 1 << 26  # bytes of results a segment may hold


class ThreadExecutor(Executor):
    """Segments with workers from the pool, for one run."""

    def __init__(
        self, scheduler: Scheduler, scope: Scope, instrument: Instrument, options: Options | None = None
    ) -> None:
        self._scheduler = scheduler
        self._scope = scope
        self._instrument = instrument
        self._options = options or Options()
        self._windows = Windows(self._options.autotune.ram_budget)

    def segment(
        self,
        upstream: Stage,
        transforms: Sequence[Transform],
        *,
        parallelism: int,
        ordered: bool,
        depth: int,
        batch: BatchTask | None = None,
    ) -> Stage:
        if parallelism == AUTOTUNE:
            workers = autotuned_workers(self._options, granted_cpus())
        else:
            workers = at_most(self._options, parallelism)
        work = work_of(upstream, transforms, batch, ordered=ordered, run=self.run_all(transforms))
        return self._made(work, workers, depth, ordered=ordered, max_elements=-1)

    def run_all(self, transforms: Sequence[Transform]) -> RunAll:
        """Who takes Blocks through the transforms: the worker itself."""
        return run_all

    def ahead(
        self, upstream: Stage, *, max_elements: int, label: str, where: str | None, depth: int, share: int = 1
    ) -> Stage:
        if isinstance(upstream, Segment):
            return upstream  # it is ahead already, by as much as its window holds
        work = reading_ahead(upstream, max_elements, label, where)
        return self._made(work, 1, depth, ordered=True, max_elements=max_elements, share=share)

    def _made(
        self, work: Work, workers: int, depth: int, *, ordered: bool, max_elements: int, share: int = 1
    ) -> Segment:
        segment = WindowedSegment(
            work,
            self._scheduler,
            self._scope,
            self._instrument,
            parallelism=workers,
            ordered=ordered,
            depth=depth,
            max_bytes=self._windows.of_one // share,
            max_elements=max_elements,
        )
        self._windows.add(segment, share)
        return segment


class WindowedSegment(Segment):
    """A segment whose byte bound may change while it runs."""

    def resize(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes


class Windows:
    """How many bytes each segment of a run may hold: a fixed number, or its part of a budget for all together."""

    def __init__(self, budget: int | None) -> None:
        self._budget = budget
        self._shares: WeakKeyDictionary[WindowedSegment, int] = WeakKeyDictionary()
        self._lock = threading.Lock()  # an interleave's inputs are opened by workers
        self.of_one = min(_WINDOW, granted_memory() // 32) if budget is None else budget

    def add(self, segment: WindowedSegment, share: int) -> None:
        """Make room for another segment, of which `share` divide one part."""
        if self._budget is None:
            return
        with self._lock:
            self._shares[segment] = share
            living = list(self._shares.items())
            parts = sum(1 / other for _, other in living)
            for other, divided in living:
                other.resize(int(self._budget / parts / divided))
