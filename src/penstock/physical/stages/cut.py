"""Take, skip and shard: some of the elements, chosen by their number."""

from __future__ import annotations

import numpy as np

from penstock.block.block import Block
from penstock.physical.stage import Cursor, Stage, State


class Take(Stage):
    """The first `count` elements; nothing behind them is asked for."""

    def __init__(self, upstream: Stage, count: int, label: str, where: str | None) -> None:
        super().__init__(label, (upstream,), where)
        self._cursor = Cursor(upstream)
        self._left = count

    def next(self, want: int) -> Block | None:
        if self._left <= 0:
            return None
        try:
            more = self._cursor.fill(min(want, self._left))
        except Exception:
            self._left -= 1
            raise
        if not more:
            return None
        block = self._cursor.take_available(self._left)
        self._left -= block.size
        return block

    def can_skip(self) -> bool:
        return self._cursor.stage.can_skip()

    def skip(self, count: int) -> int:
        passed = self._cursor.skip(min(count, self._left))
        self._left -= passed
        return passed

    def state(self) -> State:
        return [self._cursor.state(), self._left]

    def restore(self, state: State) -> None:
        below, self._left = state
        self._cursor.restore(below)

    def close(self) -> None:
        self._cursor.close()


class Skip(Stage):
    """All but the first `count` elements; a negative count leaves none."""

    def __init__(self, upstream: Stage, count: int, label: str, where: str | None) -> None:
        super().__init__(label, (upstream,), where)
        self._upstream = upstream
        self._left = count

    def next(self, want: int) -> Block | None:
        if self._left < 0:
            return None
        while True:
            try:
                block = self._upstream.next(max(want, min(self._left, 1 << 12)))
            except Exception:
                if not self._left:
                    raise
                self._left -= 1
                continue
            if block is None:
                return None
            if self._left < block.size:
                start, self._left = self._left, 0
                return block.slice(start, block.size)
            self._left -= block.size

    def can_skip(self) -> bool:
        return self._upstream.can_skip()

    def skip(self, count: int) -> int:
        if self._left < 0:
            return 0
        before, self._left = self._left, 0
        return max(self._upstream.skip(before + count) - before, 0)

    def state(self) -> State:
        return [self._upstream.state(), self._left]

    def restore(self, state: State) -> None:
        below, self._left = state
        self._upstream.restore(below)


class Shard(Stage):
    """Every `num_shards`-th element, beginning with number `index`."""

    def __init__(self, upstream: Stage, num_shards: int, index: int, label: str, where: str | None) -> None:
        super().__init__(label, (upstream,), where)
        self._upstream = upstream
        self._stride = num_shards
        self._ahead = index  # elements until the next one of ours

    def next(self, want: int) -> Block | None:
        while True:
            try:
                ask = want * self._stride if not self._upstream.seen else self._ahead + 1 + (want - 1) * self._stride
                block = self._upstream.next(ask)
            except Exception:
                ours = self._ahead == 0
                self._ahead = self._stride - 1 if ours else self._ahead - 1
                if ours:
                    raise
                continue
            if block is None:
                return None
            rows = np.arange(self._ahead, block.size, self._stride)
            self._ahead += len(rows) * self._stride - block.size
            if len(rows):
                return block.take(rows)

    def can_skip(self) -> bool:
        return self._upstream.can_skip()

    def skip(self, count: int) -> int:
        passed = self._upstream.skip(count * self._stride)
        return max(-(-(passed - self._ahead) // self._stride), 0)

    def state(self) -> State:
        return [self._upstream.state(), self._ahead]

    def restore(self, state: State) -> None:
        below, self._ahead = state
        self._upstream.restore(below)
