"""Shuffle: a uniform pick from a buffer, in an order that follows from a key alone."""

from __future__ import annotations

import sys
from collections import deque
from types import ModuleType

import numpy as np

from penstock.block.block import Block
from penstock.block.rows import Rows
from penstock.compiled import Compiled
from penstock.keys import draws
from penstock.physical.kernels import reference
from penstock.physical.stage import Cursor, Stage, State

_NATIVE = Compiled("penstock.physical.kernels.native")
_WORTH_COMPILING = 1 << 16  # elements from which loading numba (0.3 s once per process) pays


class Shuffle(Stage):
    """tf.data's reservoir: output number n is a uniform pick of `buffer_size` slots, refilled by the next input.

    The state holds no elements, only counts and the upstream state from which the buffer's elements come again; which
    those are is found by passing their numbers through the same picks. Draw number n depends on the key and n only.
    """

    def __init__(self, upstream: Stage, buffer_size: int, key: int, label: str, where: str | None) -> None:
        super().__init__(label, (upstream,), where)
        self._cursor = Cursor(upstream)
        self._size = buffer_size
        self._key = key
        self._rows: Rows | None = None
        self._numbers = np.empty(0, np.int64)  # number of the input element in each filled slot
        self._pulled = 0  # input elements taken
        self._past: deque[tuple[int, State]] = deque()  # (number of the next element, upstream state) before each pull
        self._given = 0
        self._drain: np.ndarray | None = None  # slots in the order in which they empty, once the input has ended
        self._drained = 0
        self._tidy_at = 64

    def next(self, want: int) -> Block | None:
        if self._drain is None:
            self._fill()
        if self._drain is None:
            block = self._pull(want)
            if block is not None:
                return self._exchange(block)
            self._begin_drain()
        return self._empty(want)

    def _pull(self, count: int) -> Block | None:
        self._past.append((self._pulled, self._cursor.state()))
        if len(self._past) > self._tidy_at:
            self._tidy()
        if not self._cursor.fill(count):
            return None
        block = self._cursor.take_available(count)
        self._pulled += block.size
        return block

    def _tidy(self) -> None:
        """Forget upstream states that no element in the buffer needs to come again."""
        oldest = int(self._numbers.min()) if len(self._numbers) else self._pulled
        while len(self._past) > 1 and self._past[1][0] <= oldest:
            self._past.popleft()
        self._tidy_at = 2 * len(self._past) + 64

    def _fill(self) -> None:
        while len(self._numbers) < self._size:
            missing = self._size - len(self._numbers)
            start = self._pulled
            block = self._pull(min(missing, 4096))
            if block is None:
                self._begin_drain()
                return
            if self._rows is None:
                self._rows = Rows(self._size)
            at = len(self._numbers)
            self._rows.put(np.arange(at, at + block.size), block)
            self._numbers = np.concatenate([self._numbers, np.arange(start, start + block.size)])

    def _exchange(self, block: Block) -> Block:
        assert self._rows is not None
        picks = draws(self._key, self._given, block.size, self._size)
        source, slots, rows = self._kernels().reservoir(picks, self._size)
        out = self._rows.gather(source, block)
        self._rows.put(slots, block, rows)
        self._numbers[slots] = self._pulled - block.size + rows
        self._given += block.size
        return out

    def _begin_drain(self) -> None:
        left = len(self._numbers)
        picks = draws(self._key, self._given, left, np.arange(left, 0, -1))
        self._drain = self._kernels().drain(picks)

    def _empty(self, want: int) -> Block | None:
        assert self._drain is not None
        slots = self._drain[self._drained : self._drained + want]
        if not len(slots):
            self._rows = None
            return None
        assert self._rows is not None
        self._drained += len(slots)
        return self._rows.gather(slots)

    def _kernels(self) -> ModuleType:
        native = _NATIVE.ready() if "numba" in sys.modules or self._given > _WORTH_COMPILING else None
        return reference if native is None else native

    def state(self) -> State:
        if not self._past:
            return [self._cursor.state(), 0, 0, 0, 0]
        number, below = self._past[0]
        return [below, number, self._pulled, self._given, self._drained]

    def restore(self, state: State) -> None:
        below, number, pulled, self._given, drained = state
        self._cursor.restore(below)
        if not pulled:
            return
        self._past.append((number, below))
        self._numbers = self._simulated(pulled)
        self._refill(number, pulled)
        if drained:
            self._begin_drain()
            self._drained = drained

    def _simulated(self, pulled: int) -> np.ndarray:
        """Which input elements are in the slots after `pulled` of them came."""
        numbers = np.arange(min(pulled, self._size))
        for start in range(0, self._given, 1 << 16):
            count = min(1 << 16, self._given - start)
            _, slots, rows = self._kernels().reservoir(draws(self._key, start, count, self._size), self._size)
            numbers[slots] = self._size + start + rows
        return numbers

    def _refill(self, number: int, pulled: int) -> None:
        """Read the slots' elements again, from element `number` on; the ones that had left are passed over."""
        order = np.argsort(self._numbers, kind="stable")
        ordered = self._numbers[order]
        self._rows = Rows(self._size)
        while number < pulled:
            if not self._cursor.fill(pulled - number):
                break
            block = self._cursor.take_available(pulled - number)
            low, high = np.searchsorted(ordered, [number, number + block.size])
            if high > low:
                self._rows.put(order[low:high], block, ordered[low:high] - number)
            number += block.size
        self._pulled = pulled

    def close(self) -> None:
        self._rows = None
        self._cursor.close()
