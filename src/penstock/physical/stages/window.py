"""`WindowStage` yields neighbouring elements as data sets."""

from __future__ import annotations

import copyreg
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any

import numpy as np

from penstock.block.block import Block
from penstock.block.column import ListColumn
from penstock.block.footprint import footprint
from penstock.block.structure import LEAF
from penstock.errors import Context, annotate
from penstock.physical.memory import Memory
from penstock.physical.stage import Cursor, Stage, State, StretchStage
from penstock.physical.stretch import Stretch, failure, join
from penstock.plan.grouping import Window
from penstock.plan.inputs import Scan
from penstock.plan.node import Node
from penstock.sources.arrays import BlockSource, read_only

_AT_ONCE = 1 << 16  # elements in the windows of one Block


class WindowColumn(ListColumn):
    """Windows over one component: window i consists of the elements `rows[i]` of `whole`.

    Data sets are created on access.

    They share the elements of the Block, whose arrays are read-only.
    """

    __slots__ = ("dataset", "rows", "whole")

    def __init__(self, whole: Block, rows: np.ndarray, dataset: Callable[[Block], Any]) -> None:
        self.whole = whole
        self.rows = rows
        self.dataset = dataset

    def __getattr__(self, name: str) -> Any:
        if name != "items":
            raise AttributeError(name)
        self.items = [self.dataset(self._window(rows)) for rows in self.rows]
        return self.items

    def _window(self, rows: np.ndarray) -> Block:
        first, behind = int(rows[0]), int(rows[-1]) + 1
        if behind - first == len(rows):
            return self.whole.slice(first, behind)
        return self.whole.take(rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def nbytes(self) -> int:
        return 64 * len(self.rows)

    def slice(self, start: int, stop: int) -> WindowColumn:
        return WindowColumn(self.whole, self.rows[start:stop], self.dataset)

    def take(self, rows: np.ndarray) -> WindowColumn:
        return WindowColumn(self.whole, self.rows[rows], self.dataset)


def _as_list(column: WindowColumn) -> tuple[Any, ...]:
    return ListColumn, (column.items,)


copyreg.pickle(WindowColumn, _as_list)


class WindowStage(StretchStage):
    """A window begins at every `shift`-th element and has `size` of them, `stride` apart: one data set for each leaf.

    The elements are not copied for a window; data sets share them. A window with a failed element is that failure. The
    state is a state of the input before the next window, and the number of elements from there to the window.
    """

    def __init__(self, upstream: Stage, node: Window, dataset: Callable[[Node], Any], memory: Memory) -> None:
        super().__init__(node.label, (upstream,), node.where)
        self._account = memory.account("window", node.label, node.where)
        self._nbytes = 0
        self._cursor = Cursor(upstream)
        assert node.shift is not None
        self._size = node.size
        self._shift = node.shift
        self._stride = node.stride
        self._span = (node.size - 1) * node.stride + 1
        self._drop_remainder = node.drop_remainder
        self._dataset = dataset
        self._held: list[Stretch] = []  # the positions from `_base` up to `_top`
        self._fresh = False  # True if `_held` has grown since it was joined
        self._tracebacks: dict[int, TracebackType | None] = {}  # tracebacks of the failures in `_held`
        self._base = 0
        self._top = 0
        self._start = 0  # start of the next window
        self._past: deque[tuple[int, State]] = deque()  # (position, state of the input) before each pull

    def make(self, want: int) -> Stretch | None:
        while self._top - self._start < self._span and self._pull(want):
            pass
        whole = (self._top - self._start - self._span) // self._shift + 1
        if whole > 0:
            return self._windows(min(whole, want, max(_AT_ONCE // self._size, 1)), self._size)
        size = -(-(self._top - self._start) // self._stride)
        if size <= 0 or (self._drop_remainder and not self._lost(size)):
            return None
        return self._windows(1, size)

    def _lost(self, size: int) -> bool:
        """Return True if a failure would be lost with the last, incomplete window. No other window contains it."""
        held = self._joined()
        positions = self._start - self._base + np.arange(size)[None] * self._stride
        alone = self._shift >= self._span
        return alone and bool(held.failures) and _until_failure(held, positions)[1] is not None

    def _pull(self, want: int) -> bool:
        """Store further elements; return False at the end of the input."""
        past = (self._top, self._cursor.state())
        ask = max(want * self._shift, self._span)
        if self._cursor.stage.seen:
            ask = max(self._start + self._span - self._top, 1)
        try:
            if not self._cursor.fill(ask):
                return False
            piece = Stretch(self._cursor.take_available(ask))
        except Exception as error:
            annotate(error, Context(stage=self.label, where=self.where))
            self._tracebacks[id(error)] = error.__traceback__
            piece = failure(error)
        self._past.append(past)
        self._top += piece.size
        self._held.append(piece)
        self._fresh = True
        self._let_go()
        self._nbytes = self._nbytes + footprint(piece.block) if self._held else 0
        self._account.hold(self._nbytes)
        return True

    def _joined(self) -> Stretch:
        """Return all stored elements in read-only arrays, which windows share."""
        if self._fresh:
            held = join(self._held)
            self._held = [Stretch(None if held.block is None else read_only(held.block), held.failures)]
            self._fresh = False
            self._nbytes = footprint(held.block)
        return self._held[0]

    def _let_go(self) -> None:
        """Drop elements before the next window."""
        while self._held and self._base < self._start:
            first = self._held.pop(0)
            gone = min(self._start - self._base, first.size)
            self._base += gone
            if gone < first.size:
                self._held.insert(0, first.slice(gone, first.size))
        if self._tracebacks and not any(part.failures for part in self._held):
            self._tracebacks.clear()

    def _windows(self, count: int, size: int) -> Stretch:
        """Return the next windows, up to the first failed one. If the next one has failed, raise its error."""
        held = self._joined()
        positions = self._start - self._base + np.arange(count)[:, None] * self._shift + np.arange(size) * self._stride
        if held.failures:
            count, error = _until_failure(held, positions)
            if error is not None and not count:
                # without the frames added when it was raised before
                again = error.with_traceback(self._tracebacks[id(error)])
                self._start += self._shift
                self._let_go()
                raise again
        self._start += count * self._shift
        self._let_go()
        return Stretch(self._cut(held, positions[:count]))

    def _cut(self, held: Stretch, positions: np.ndarray) -> Block:
        """Return the windows at these positions, one row for each. None of them has failed."""
        block = held.block
        assert block is not None
        failed = [position for position, _ in held.failures]
        rows = positions - np.searchsorted(failed, positions) if failed else positions
        columns = []
        for leaf in block.columns:
            alone = Block(LEAF, (leaf,), block.size, block.origin)
            columns.append(WindowColumn(alone, rows, self._opened))
        origin = None if block.origin is None else block.origin.take(rows)
        return Block(block.structure, columns, len(rows), origin)

    def _opened(self, window: Block) -> Any:
        return self._dataset(Scan(source=BlockSource(read_only(window), "window"), where=self.where))

    def place(self) -> State:
        if self._start >= self._top:
            self._past.clear()
            return [self._cursor.state(), self._start - self._top]
        while len(self._past) > 1 and self._past[1][0] <= self._start:
            self._past.popleft()
        position, below = self._past[0]
        return [below, self._start - position]

    def go_to(self, place: State) -> None:
        below, self._start = place
        self._cursor.restore(below)

    def close(self) -> None:
        self._held.clear()
        self._account.close()
        self._tracebacks.clear()
        self._cursor.close()


def _until_failure(held: Stretch, positions: np.ndarray) -> tuple[int, Exception | None]:
    """Return the number of windows before the first failed one, and the first error in that one."""
    errors = dict(held.failures)
    failed = np.isin(positions, list(errors))
    bad = np.flatnonzero(failed.any(axis=1))
    if not len(bad):
        return len(positions), None
    window = int(bad[0])
    return window, errors[int(positions[window, failed[window].argmax()])]
