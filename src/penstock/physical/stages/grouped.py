"""`GroupedStage` joins neighbours to one element with a function on Blocks, such as for batches.

`BucketStage` joins similar lengths.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.block.block import Block
from penstock.block.column import ListColumn
from penstock.errors import Context, PenstockError, annotate
from penstock.physical.chained import Chained, place_of
from penstock.physical.memory import UNCOUNTED, Collector, Memory
from penstock.physical.stage import Cursor, Stage, State
from penstock.physical.stages.keyed_windows import KeyedWindows
from penstock.plan.grouping import BucketBySequenceLength
from penstock.plan.node import NamedStep

Stack = Callable[[Block, int], Block]  # stacks every `size` elements of a Block

_BYTES = 1 << 16  # bytes of elements of different shapes (by the first one) that are joined to groups at once


class GroupedStage(Stage):
    """Joins `size` neighbours to one element with `stack`; many groups at once if their elements are available."""

    def __init__(
        self,
        upstream: Stage,
        size: int,
        stack: Stack,
        step: NamedStep,
        *,
        drop_remainder: bool,
        memory: Memory = UNCOUNTED,
    ) -> None:
        super().__init__(step.label, (upstream,), step.where)
        self._cursor = Cursor(upstream)
        self._collector = Collector(self._cursor, memory.account("batch", step.label, step.where))
        self._size = size
        self._stack = stack
        self._drop_remainder = drop_remainder
        self._count = 0

    def next(self, want: int) -> Block | None:
        self._collector.ready(want * self._size)
        found = self._several(want)
        if found is None:
            found = self._one(want)
        if found is not None:
            self._count += found.size
        return found

    def _several(self, want: int) -> Block | None:
        """Return as many groups as are available, or None if one of them fails.

        The failing group is then computed alone.
        """
        count = min(want, self._cursor.available() // self._size)
        if not count:
            return None
        block = self._cursor.peek()
        for column in block.columns:
            if isinstance(column, ListColumn):
                (first,) = column.slice(0, 1).items
                count = min(count, max(_BYTES // (self._size * getattr(first, "nbytes", _BYTES) + 1), 1))
        try:
            found = self._stack(block.slice(0, count * self._size), self._size)
        except PenstockError:
            return None
        self._cursor.take_available(count * self._size)
        return found

    def _one(self, want: int) -> Block | None:
        group = self._collector.take(self._size, want * self._size)
        if group is None:
            return None
        if group.size < self._size and self._drop_remainder and group.error is None:  # a failure is raised in any case
            return None
        try:
            if group.error is not None:
                raise group.error
            assert group.block is not None
            return self._stack(group.block, group.size)
        except Exception as error:
            annotate(error, Context(stage=self.label, where=self.where, element=self._count))
            self._count += 1
            raise

    def can_skip(self) -> bool:
        return self._cursor.stage.can_skip()

    def skip(self, count: int) -> int:
        passed = self._cursor.skip(count * self._size)
        groups = passed // self._size if self._drop_remainder else -(-passed // self._size)
        self._count += groups
        return groups

    def state(self) -> State:
        below, offset = self._cursor.state()
        return Chained(below, offset, self._count * self._size, (self._size,), 0)

    def restore(self, state: State) -> None:
        place = place_of(state, (self._size,))
        self._count = (place.count or 0) // self._size
        self._cursor.restore([place.below, place.first])

    def close(self) -> None:
        self._collector.close()


class BucketStage(Stage):
    """Joins each window to one element with the function of its key. Keys are the indices of the buckets."""

    def __init__(
        self, upstream: Stage, windows: KeyedWindows, node: BucketBySequenceLength, stacks: Sequence[Stack]
    ) -> None:
        super().__init__(node.label, (upstream,), node.where)
        self._windows = windows
        self._sizes = node.bucket_batch_sizes
        self._stacks = stacks
        self._drop_remainder = node.drop_remainder

    def next(self, want: int) -> Block | None:
        self._windows.singly = self.acts
        while (window := self._windows.next(want)) is not None:
            size = window.elements.size
            if size < self._sizes[window.key] and self._drop_remainder:
                continue
            try:
                return self._stacks[window.key](window.elements, size)
            except PenstockError as error:
                annotate(error, Context(stage=self.label, where=self.where, element=window.number))
                raise
        return None

    def state(self) -> State:
        return self._windows.state()

    def restore(self, state: State) -> None:
        self._windows.restore(state)

    def close(self) -> None:
        self._windows.close()
