"""Take, skip, shard and take_while: elements by their number, or those in front of the first that is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from penstock.block.block import Block
from penstock.errors import Context, as_failure
from penstock.physical.key_function import truth, verdicts
from penstock.physical.stage import Cursor, Stage, State, StretchStage
from penstock.physical.stretch import Stretch
from penstock.physical.vectorise import Vectoriser
from penstock.trace.kinds.warn_of_text import warn_of_text


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


class TakeWhile(StretchStage):
    """Ends at the first False. Nothing is asked of upstream behind the Block that holds it."""

    def __init__(
        self, upstream: Stage, predicate: Callable[..., Any], label: str, where: str | None, *, vectorise: bool
    ) -> None:
        super().__init__(label, (upstream,), where)
        self._upstream = upstream
        self._predicate = predicate
        self._vectoriser = Vectoriser(predicate) if vectorise else None
        self._looked = False  # whether the predicate was looked at with its first Block
        self._count = 0
        self._ended = False

    def make(self, want: int) -> Stretch | None:
        if self._ended:
            return None
        first = self._count
        try:
            block = self._upstream.next(want)
        except Exception:
            self._count += 1
            raise
        if block is None:
            return None
        if not self._looked:
            self._looked = True
            warn_of_text(self._predicate, block)
        mask = None if self._vectoriser is None else verdicts(self._vectoriser, block)
        if mask is None:
            return self._per_element(block, first)
        return self._front(block, len(mask) if mask.all() else int(mask.argmin()), ())

    def _per_element(self, block: Block, first: int) -> Stretch:
        predicate, unpacks = self._predicate, block.structure.unpacks
        failures: list[tuple[int, Exception]] = []
        count = 0
        for element in block.elements():
            try:
                if not truth(predicate(*element) if unpacks else predicate(element)):
                    break
            except Exception as raised:
                file, offset = (None, None) if block.origin is None else block.origin.at(count)
                context = Context(self.label, self.where, first + count, file, offset)
                failures.append((count, as_failure(raised, context, element)))
            count += 1
        return self._front(block, count, tuple(failures))

    def _front(self, block: Block, count: int, failures: tuple[tuple[int, Exception], ...]) -> Stretch:
        """The first `count` positions of a Block; fewer than all are the last."""
        self._count += count
        self._ended = count < block.size
        if failures:
            rows = np.delete(np.arange(count), [row for row, _ in failures])
            return Stretch(block.take(rows) if len(rows) else None, failures)
        return Stretch(block.slice(0, count) if count else None)

    def place(self) -> State:
        return [self._upstream.state(), self._count, self._ended]

    def go_to(self, place: State) -> None:
        below, self._count, self._ended = place
        self._upstream.restore(below)
