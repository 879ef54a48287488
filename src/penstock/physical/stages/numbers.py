"""Numbers: 0, 1, 2, … for a plan that is read by number."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from penstock.block.block import Block
from penstock.block.column import DenseColumn
from penstock.physical.drain import drain
from penstock.physical.fatal import fatal
from penstock.physical.stage import Stage, State


class Numbers(Stage):
    """The numbers below `size()`, which is asked for when the first is wanted.

    Before that a pass is made over each of the streams that `fill` opens: caches, which keep whole passes only. Where
    the size is not known, as a file cannot be counted, no element has a place, and the run ends.
    """

    def __init__(
        self, size: Callable[[], int], fill: Sequence[Callable[[], Stage]], label: str, where: str | None
    ) -> None:
        super().__init__(label, (), where)
        self._size_of = size
        self._fill = list(fill)
        self._size = -1
        self._at = 0

    def next(self, want: int) -> Block | None:
        if self._size < 0:
            self._prepare()
        stop = min(self._at + want, self._size)
        if stop <= self._at:
            return None
        numbers = np.arange(self._at, stop, dtype=np.int64)
        self._at = stop
        return Block.single(DenseColumn(numbers))

    def _prepare(self) -> None:
        while self._fill:
            stream = self._fill.pop()()
            try:
                drain(stream, stream.label)
            finally:
                stream.close()
        try:
            self._size = self._size_of()
        except Exception as error:
            raise fatal(error, self.label, self.where) from error

    def can_skip(self) -> bool:
        return True

    def skip(self, count: int) -> int:
        if self._size < 0:
            self._prepare()
        at = self._at
        self._at = max(min(at + count, self._size), at)
        return self._at - at

    def state(self) -> State:
        return self._at

    def restore(self, state: State) -> None:
        self._at = state
