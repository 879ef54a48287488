"""Direct: the work of a segment, done by whoever asks."""

from __future__ import annotations

import time

from penstock.physical.stage import State
from penstock.physical.stretch import Stretch
from penstock.runtime.clock import CLOCKS
from penstock.runtime.task import Work
from penstock.runtime.worked import Worked


class Direct(Worked):
    """A segment without workers: the same work, one task after the other, and a state that segments understand."""

    def __init__(self, work: Work) -> None:
        super().__init__(work)

    def make(self, want: int) -> Stretch | None:
        if self.seen:
            self.work.most = want
        while (task := self.work.pull()) is not None:
            started = time.perf_counter()
            cpu = CLOCKS.own.cpu(started)
            made = self.work.run(task)
            done = time.perf_counter()
            self.work.observe(task, made, done - started, CLOCKS.own.cpu(done) - cpu)
            if made is not None:
                return made
        return None

    def can_skip(self) -> bool:
        return self.work.can_skip()

    def pass_over(self, count: int) -> int:
        return self.work.skip(count)

    def place(self) -> State:
        return [self.work.state(), [], [], self.work.count()]

    def go_to(self, place: State) -> None:
        below, done, first, start = place
        self.work.restore(below, [tuple(span) for span in done], [tuple(span) for span in first], start)

    def close(self) -> None:
        self.work.close()
