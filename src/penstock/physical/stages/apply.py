"""Apply: transforms run by whoever pulls, one Block after the other; the plain form of every parallel segment."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.block.block import Block
from penstock.physical.stage import Stage, State
from penstock.physical.transform import Transform, run_all


class Apply(Stage):
    """Maps and filters in the pulling thread. Each input Block becomes at most one output Block."""

    def __init__(self, upstream: Stage, transforms: Sequence[Transform]) -> None:
        last = transforms[-1]
        super().__init__(" · ".join(t.label for t in transforms), (upstream,), last.where)
        self._upstream = upstream
        self._transforms = transforms
        self._count = 0
        self._error: BaseException | None = None

    def next(self, want: int) -> Block | None:
        while self._error is None:
            block = self._upstream.next(want)
            if block is None:
                return None
            outcome = run_all(self._transforms, block, self._count)
            self._count += block.size
            self._error = outcome.error
            if outcome.block is not None:
                return outcome.block
        error, self._error = self._error, None
        raise error

    def state(self) -> State:
        return [self._upstream.state(), self._count]

    def restore(self, state: State) -> None:
        below, self._count = state
        self._upstream.restore(below)
