"""Agreed: data sets one behind the other, whose elements are of one kind; those of another fail in their places."""

from __future__ import annotations

from penstock.physical.stage import Stage, State, StretchStage
from penstock.physical.stages.agreement import Agreement
from penstock.physical.stretch import Stretch


class Agreed(StretchStage):
    """Hands on what agrees with the first element. For streams whose specs are not known beforehand."""

    def __init__(self, upstream: Stage, label: str, where: str | None, *, any_rank: bool = False) -> None:
        super().__init__(label, (upstream,), where)
        self._upstream = upstream
        self._agreement = Agreement(label, where, known=False, any_rank=any_rank)
        self._count = 0

    def make(self, want: int) -> Stretch | None:
        try:
            block = self._upstream.next(want)
        except Exception:
            self._count += 1
            raise
        if block is None:
            return None
        first = self._count
        self._count += block.size
        if self._agreement.admits(block):
            return Stretch(block)
        # the data sets agree with themselves: what differs is the second
        return Stretch(None, tuple((i, self._agreement.error(1, block, first + i)) for i in range(block.size)))

    def place(self) -> State:
        return [self._upstream.state(), self._count, self._agreement.kind]

    def go_to(self, place: State) -> None:
        below, self._count, self._agreement.kind = place
        self._upstream.restore(below)
