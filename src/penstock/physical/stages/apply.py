"""Apply: transforms run by whoever pulls, one Block after the other; the plain form of every parallel segment."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.block.numbers import Numbers
from penstock.physical.stage import Stage, State, StretchStage
from penstock.physical.stretch import Stretch
from penstock.physical.transform import RunAll, Transform, run_all


class Apply(StretchStage):
    """Maps and filters in the pulling thread."""

    def __init__(self, upstream: Stage, transforms: Sequence[Transform], run: RunAll = run_all, epoch: int = 0) -> None:
        last = transforms[-1]
        super().__init__(" · ".join(t.label for t in transforms), (upstream,), last.where)
        self._upstream = upstream
        self.transforms = transforms
        self._run = run
        self._epoch = epoch
        self._count = 0

    def make(self, want: int) -> Stretch | None:
        first = self._count
        try:
            block = self._upstream.next(want)
        except Exception:
            self._count += 1
            raise
        if block is None:
            return None
        self._count += block.size
        return self._run(self.transforms, block, Numbers(first, self._epoch), None)

    def can_skip(self) -> bool:
        return self._upstream.can_skip() and all(transform.one_to_one for transform in self.transforms)

    def pass_over(self, count: int) -> int:
        passed = self._upstream.skip(count)
        self._count += passed
        return passed

    def place(self) -> State:
        return [self._upstream.state(), self._count]

    def go_to(self, place: State) -> None:
        below, self._count = place
        self._upstream.restore(below)
