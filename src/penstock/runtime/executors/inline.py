"""The inline executor: everything happens in the consumer's thread, when it asks. The reference for all others."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.block.block import Block
from penstock.physical.executor import BatchTask, Executor
from penstock.physical.stage import Stage, State
from penstock.physical.transform import Transform
from penstock.runtime.segment import Work
from penstock.runtime.work import reading_ahead, work_of


class Direct(Stage):
    """A segment without workers: the same work, one task after the other, and a state that segments understand."""

    def __init__(self, work: Work) -> None:
        super().__init__(work.label, (work.upstream,), work.where)
        self._work = work
        self._before: State = work.state()
        self._error: BaseException | None = None

    def next(self, want: int) -> Block | None:
        while self._error is None:
            task = self._work.pull()
            if task is None:
                return None
            outcome = self._work.run(task)
            if outcome is None:
                continue
            self._error = outcome.error
            if outcome.block is not None:
                self._before = self._work.state()
                return outcome.block
        error, self._error = self._error, None
        raise error

    def state(self) -> State:
        return [self._before, [], []]

    def restore(self, state: State) -> None:
        below, done, first = state
        self._work.restore(below, [tuple(span) for span in done], [tuple(span) for span in first])
        self._before = self._work.state()

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
