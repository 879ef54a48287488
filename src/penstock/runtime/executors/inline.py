"""The inline executor: everything happens in the consumer's thread, when it asks. The reference for all others."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.physical.executor import BatchTask, Executor
from penstock.physical.stage import Stage, State, StretchStage
from penstock.physical.stretch import Stretch
from penstock.physical.transform import Transform
from penstock.runtime.segment import Work
from penstock.runtime.work import reading_ahead, work_of


class Direct(StretchStage):
    """A segment without workers: the same work, one task after the other, and a state that segments understand."""

    def __init__(self, work: Work) -> None:
        super().__init__(work.label, (work.upstream,), work.where)
        self._work = work

    def make(self, want: int) -> Stretch | None:
        while (task := self._work.pull()) is not None:
            made = self._work.run(task)
            if made is not None:
                return made
        return None

    def can_skip(self) -> bool:
        return self._work.can_skip()

    def pass_over(self, count: int) -> int:
        return self._work.skip(count)

    def place(self) -> State:
        return [self._work.state(), [], []]

    def go_to(self, place: State) -> None:
        below, done, first = place
        self._work.restore(below, [tuple(span) for span in done], [tuple(span) for span in first])

    def close(self) -> None:
        self._work.close()


class InlineExecutor(Executor):
    """Segments do their work when asked; nothing is read ahead, no thread is started."""

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
        return Direct(work_of(upstream, transforms, batch, ordered=ordered))

    def ahead(
        self, upstream: Stage, *, max_elements: int, label: str, where: str | None, depth: int, share: int = 1
    ) -> Stage:
        return upstream if isinstance(upstream, Direct) else Direct(reading_ahead(upstream, max_elements, label, where))
