"""The inline executor: everything happens in the consumer's thread, when it asks. The reference for all others."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.physical.executor import BatchTask, Executor
from penstock.physical.stage import Stage
from penstock.physical.stages.apply import Apply
from penstock.physical.stages.batch import Batch
from penstock.physical.transform import Transform


class InlineExecutor(Executor):
    """Segments become the plain stages they stand for; nothing is read ahead."""

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
        stage = Apply(upstream, transforms) if transforms else upstream
        if batch is None:
            return stage
        return Batch(stage, batch.size, batch.label, batch.where, drop_remainder=batch.drop_remainder)

    def ahead(
        self, upstream: Stage, *, max_elements: int, label: str, where: str | None, depth: int, share: int = 1
    ) -> Stage:
        return upstream
