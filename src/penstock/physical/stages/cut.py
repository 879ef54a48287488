"""Stages that drop elements: by their index, by a function, or repeated values."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterator
from hashlib import blake2b
from typing import Any

import numpy as np

from penstock.block.block import Block
from penstock.block.column import BytesColumn, Column, DenseColumn
from penstock.errors import Context, annotate, as_failure
from penstock.physical.key_function import truth, verdicts
from penstock.physical.memory import UNCOUNTED, Memory
from penstock.physical.stage import CountingStage, CursorStage, Stage, State, StretchStage, UnaryStage
from penstock.physical.stretch import Stretch
from penstock.physical.vectorise import Vectoriser
from penstock.plan.node import NamedStep
from penstock.plan.stateful import TakeWhile, Unique


class TakeStage(CursorStage):
    """Yields the first `count` elements. It requests nothing after them."""

    moving = ("_left",)

    def __init__(self, upstream: Stage, count: int, step: NamedStep) -> None:
        super().__init__(upstream, step)
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


class SkipStage(UnaryStage):
    """Yields all but the first `count` elements; with a negative count, none."""

    moving = ("_left",)

    def __init__(self, upstream: Stage, count: int, step: NamedStep) -> None:
        super().__init__(upstream, step)
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


class ShardStage(UnaryStage):
    """Yields every `num_shards`-th element, beginning with index `index`."""

    moving = ("_ahead",)

    def __init__(self, upstream: Stage, num_shards: int, index: int, step: NamedStep) -> None:
        super().__init__(upstream, step)
        self._stride = num_shards
        self._ahead = index  # elements until the next element of this shard

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


class TakeWhileStage(CountingStage):
    """Yields elements up to the first False. It requests nothing after the Block that contains this element."""

    moving = ("_count", "_ended")

    def __init__(self, upstream: Stage, node: TakeWhile, *, vectorise: bool) -> None:
        super().__init__(upstream, node)
        self._predicate = node.predicate
        self._vectoriser = Vectoriser(node.predicate) if vectorise else None
        self._ended = False

    def make(self, want: int) -> Stretch | None:
        if self._ended:
            return None
        first = self._count
        block = self.pull(want)
        if block is None:
            return None
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
                context = Context(self.label, self.where, first + count, *block.origin_at(count))
                failures.append((count, as_failure(raised, context, element)))
            count += 1
        return self._front(block, count, tuple(failures))

    def _front(self, block: Block, count: int, failures: tuple[tuple[int, Exception], ...]) -> Stretch:
        """Keep the first `count` positions of a Block. If these are not all, they are the last ones of the stage."""
        self._count -= block.size - count
        self._ended = count < block.size
        if failures:
            rows = np.delete(np.arange(count), [row for row, _ in failures])
            return Stretch(block.take(rows) if len(rows) else None, failures)
        return Stretch(block.slice(0, count) if count else None)


_AS_IT_IS = 64  # bytes of a value up to which the value is its own key; larger values have a digest of 128 bits


def content_keys(column: Column) -> list[Hashable]:
    """Return a key for every element of a column. Keys are equal only for equal values.

    Equal means equal bits: NaNs with the same bits are equal, 0.0 and -0.0 are not. Two different values above 64 bytes
    have the same key with a probability of 2**-128.
    """
    if isinstance(column, DenseColumn):
        return _of_array(column.array)
    if isinstance(column, BytesColumn) and column.starts.ndim == 1:
        return [_short(value) for value in column.values()]
    return [_of_value(value) for value in column.values()]


def _of_array(array: np.ndarray) -> list[Hashable]:
    if array.ndim == 1:
        size = array.itemsize
        bits: Any = np.ascontiguousarray(array).view(f"u{size}" if size in (1, 2, 4, 8) else f"V{size}")
        found: list[Hashable] = bits.tolist()
        return found
    shape = array.shape[1:]
    return [(shape, _short(row)) for row in _rows(array)]


def _rows(array: np.ndarray) -> Iterator[bytes]:
    width = array[0].nbytes
    view = memoryview(np.ascontiguousarray(array).tobytes())
    for row in range(len(array)):
        yield bytes(view[row * width : (row + 1) * width])


def _of_value(value: np.ndarray) -> Hashable:
    if value.dtype != object:
        return value.shape, _short(value.tobytes())
    return value.shape, tuple(_short(item) for item in value.reshape(-1).tolist())


def _short(data: bytes) -> Hashable:
    return data if len(data) <= _AS_IT_IS else int.from_bytes(blake2b(data, digest_size=16).digest(), "little")


_KEY = 48  # bytes of a key in addition to its entry in the set
_MOST = 1 << 14  # elements to request when reading again


class UniqueStage(StretchStage):
    """Keeps the key of every value in memory. The state contains only the number of elements checked.

    A restored stage reads these elements again from the start to compute their keys. This is the price of states
    without elements: a resumed iteration reads as many elements again as the saved one had read.
    """

    def __init__(self, upstream: Stage, step: NamedStep, *, memory: Memory = UNCOUNTED) -> None:
        super().__init__(step.label, (upstream,), step.where)
        self._account = memory.account("unique", step.label, step.where)
        self._upstream = upstream
        self._seen: set[Hashable] = set()
        self._start: State = None  # state of the input before its first element
        self._started = False
        self._taken = 0
        self._known = 0  # positions that an earlier run had checked
        self._unfit = False  # True after elements that cannot be compared: nothing follows that failure

    def make(self, want: int) -> Stretch | None:
        while not self._unfit:
            first = self._taken
            try:
                block = self._upstream.next(max(want, min(self._known - first, _MOST)))
            except Exception:
                self._taken += 1
                if first < self._known:
                    continue
                raise
            if block is None:
                return None
            self._taken += block.size
            keys = self._keys(block)
            if self._taken <= self._known:
                self._seen.update(keys)
                continue
            rows = self._first_times(keys)
            self._account.hold(sys.getsizeof(self._seen) + len(self._seen) * _KEY)
            if first < self._known:
                rows = rows[rows >= self._known - first]
            if len(rows):
                return Stretch(block if len(rows) == block.size else block.take(rows))
        return None

    def _keys(self, block: Block) -> list[Hashable]:
        """Return the keys of the elements taken last."""
        try:
            Unique.check(block.specs())
            return content_keys(block.columns[0])
        except Exception as error:
            self._unfit = True
            annotate(error, Context(self.label, self.where, self._taken - block.size))
            raise

    def _first_times(self, keys: list[Hashable]) -> np.ndarray:
        """Return the rows whose value has not occurred before."""
        seen = self._seen
        rows = []
        for row, key in enumerate(keys):
            if key not in seen:
                seen.add(key)
                rows.append(row)
        return np.array(rows, np.int64)

    def place(self) -> State:
        if not self._started:  # once, before the first element: a state in free order keeps growing
            self._start, self._started = self._upstream.state(), True
        return [self._start, max(self._taken, self._known), self._unfit]

    def go_to(self, place: State) -> None:
        start, self._known, self._unfit = place
        self._upstream.restore(start)
        self._started = False

    def close(self) -> None:
        self._seen = set()
        self._account.close()
        super().close()
