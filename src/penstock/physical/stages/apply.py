"""Apply: transforms run by whoever pulls, one Block after the other; the plain form of every parallel segment."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.block.numbers import Numbers
from penstock.physical.chained import Chained, ChainedStage, Place, Portioned, ratios_of
from penstock.physical.stage import Stage, State
from penstock.physical.stretch import Stretch
from penstock.physical.transform import RunAll, Transform, run_all


class Apply(ChainedStage):
    """Maps and filters in the pulling thread."""

    def __init__(self, upstream: Stage, transforms: Sequence[Transform], run: RunAll = run_all, epoch: int = 0) -> None:
        last = transforms[-1]
        super().__init__(" · ".join(t.label for t in transforms), (upstream,), last.where)
        self._upstream = upstream
        self.transforms = transforms
        self._run = run
        self._epoch = epoch
        self.ratios = self._ratios = ratios_of(transforms)
        self._count: int | None = 0  # None behind a filter that another run had in the same stage

    def make(self, want: int) -> Stretch | None:
        first = self._count
        try:
            block = self._upstream.next(want)
        except Exception:
            self._passed(1)
            raise
        if block is None:
            return None
        self._passed(block.size)
        return self._run(self.transforms, block, Numbers(first, self._epoch), None)

    def _passed(self, count: int) -> None:
        if self._count is not None:
            self._count += count

    def can_skip(self) -> bool:
        return self._upstream.can_skip() and all(transform.one_to_one for transform in self.transforms)

    def pass_over(self, count: int) -> int:
        passed = self._upstream.skip(count)
        self._passed(passed)
        return passed

    def place(self) -> State:
        return [self._upstream.state(), self._count]

    def go_to(self, place: State) -> None:
        below, self._count = place
        self._upstream.restore(below)

    def chained(self, place: State, skip: int) -> State:
        below, count = place
        return Chained(below, 0, count, self._ratios, skip)

    def go_on(self, place: Place) -> int:
        self.go_to([place.below, None if place.count is None else place.count - place.first])
        return place.first + place.skip

    def part(self, count: int) -> None:
        self._upstream = Apply(self._upstream, self.transforms[:count], self._run, self._epoch)
        self.inputs = (self._upstream,)
        self.transforms = self.transforms[count:]
        self._ratios = self._ratios[count:]

    def portion(self) -> None:
        self._upstream = Portioned.over(self._upstream)
        self.inputs = (self._upstream,)
