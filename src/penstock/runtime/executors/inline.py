"""The inline executor: everything happens in the consumer's thread, when it asks. The reference for all others."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.options import Options
from penstock.physical.executor import BatchTask, Executor, Reader
from penstock.physical.stage import Stage
from penstock.physical.transform import RunAll, Transform
from penstock.runtime.task import Direct
from penstock.runtime.transform_runner import transforms_here
from penstock.runtime.work import reading_ahead, work_of


class InlineReader(Reader):
    """Reads when asked."""

    def __init__(self, executor: InlineExecutor, label: str, where: str | None) -> None:
        self._executor = executor
        self._label = label
        self._where = where

    def ahead(self, upstream: Stage) -> Stage:
        return self._executor.ahead(upstream, max_elements=-1, label=self._label, where=self._where, depth=0)

    def early(self) -> int:
        return 0


class InlineExecutor(Executor):
    """Segments do their work when asked; nothing is read ahead, no worker is started."""

    def __init__(self, options: Options | None = None) -> None:
        self._options = options or Options()

    def segment(
        self,
        upstream: Stage,
        transforms: Sequence[Transform],
        *,
        parallelism: int,
        ordered: bool,
        depth: int,
        batch: BatchTask | None = None,
        executor: str = "auto",
        epoch: int = 0,
    ) -> Stage:
        return Direct(work_of(upstream, transforms, batch, ordered=ordered, epoch=epoch, run=self.run_all(transforms)))

    def ahead(self, upstream: Stage, *, max_elements: int, label: str, where: str | None, depth: int) -> Stage:
        return upstream if isinstance(upstream, Direct) else Direct(reading_ahead(upstream, max_elements, label, where))

    def reader(self, *, at_once: int, cycle_length: int, label: str, where: str | None, depth: int) -> Reader:
        return InlineReader(self, label, where)

    def inline(self) -> Executor:
        return self

    def run_all(self, transforms: Sequence[Transform], executor: str = "auto") -> RunAll:
        return transforms_here(self._options.element_timeout)
