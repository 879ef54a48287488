"""The thread executor: segments on the process's pool of workers. The default; kernels release the GIL."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.physical.executor import BatchTask, Executor
from penstock.physical.stage import Stage
from penstock.physical.transform import Transform
from penstock.plan.node import AUTOTUNE
from penstock.runtime.instrument import Instrument
from penstock.runtime.machine import granted_cpus, granted_memory
from penstock.runtime.scheduler import Scheduler, Scope
from penstock.runtime.segment import Segment, Work
from penstock.runtime.work import reading_ahead, work_of

_WINDOW = 1 << 26  # bytes of results a segment may hold


class ThreadExecutor(Executor):
    """Segments with workers from the pool, for one run."""

    def __init__(self, scheduler: Scheduler, scope: Scope, instrument: Instrument) -> None:
        self._scheduler = scheduler
        self._scope = scope
        self._instrument = instrument
        self._window = min(_WINDOW, granted_memory() // 32)

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
        workers = granted_cpus() if parallelism == AUTOTUNE else parallelism
        work = work_of(upstream, transforms, batch, ordered=ordered)
        return self._made(work, workers, depth, ordered=ordered, max_elements=-1)

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
        return Segment(
            work,
            self._scheduler,
            self._scope,
            self._instrument,
            parallelism=workers,
            ordered=ordered,
            depth=depth,
            max_bytes=self._window // share,
            max_elements=max_elements,
        )
