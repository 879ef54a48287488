"""The two kinds of work segments do: Blocks through transforms, and batches filled by several workers."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.block.arena import ARENA
from penstock.block.block import Block, concat_blocks
from penstock.block.column import Column, DenseColumn, concat
from penstock.block.numbers import Numbers
from penstock.block.origin import concat_origins
from penstock.block.structure import Structure
from penstock.errors import Context, PenstockError, annotate
from penstock.physical.executor import BatchTask
from penstock.physical.stage import Cursor, Stage, State
from penstock.physical.stages.batch import stack_block, stack_column
from penstock.physical.stretch import Stretch, failure
from penstock.physical.transform import RunAll, Transform, run_all
from penstock.runtime.free_order import FreeOrder, Ranges
from penstock.runtime.pace import Clocks, Pace
from penstock.runtime.task import Task, Work
from penstock.trace.graph import Allocate


class BlockWork(Work):
    """Each upstream Block through the transforms; without transforms, reading ahead."""

    def __init__(
        self,
        upstream: Stage,
        transforms: Sequence[Transform],
        pace: Pace,
        label: str,
        where: str | None,
        run: RunAll = run_all,
        epoch: int = 0,
    ) -> None:
        self.upstream = upstream
        self._run = run
        self._epoch = epoch
        self.label = label
        self.where = where
        self.transforms = transforms
        self.pace = pace
        self._count = 0
        self._ticket = 0

    def pull(self) -> Task | None:
        started = time.perf_counter()
        first = self._count
        block: Block | None
        try:
            block = self.upstream.next(self.pace.want)
        except Exception as error:
            self._count += 1
            self._ticket += 1
            return Task(self._ticket - 1, error, self.upstream.state(), (first, 1))
        if block is None:
            return None
        self._count += block.size
        if not self.transforms:
            self.pace.observe(block.size, time.perf_counter() - started, block.nbytes)
        self._ticket += 1
        payload = block, numbers_of(self.upstream, self.start + first, self._epoch)
        return Task(self._ticket - 1, payload, self.upstream.state(), (first, block.size))

    def run(self, task: Task) -> Stretch:
        if isinstance(task.payload, Exception):
            return failure(task.payload)
        block, numbers = task.payload
        if not self.transforms:
            return Stretch(block)
        started = Clocks.now()
        made = self._run(self.transforms, block, numbers, None)
        nbytes = block.nbytes if made.block is None else max(block.nbytes, made.block.nbytes)
        self.pace.observe(block.size, started.work(self.transforms, self._run), nbytes)
        return made

    def can_skip(self) -> bool:
        return self.upstream.can_skip() and all(transform.one_to_one for transform in self.transforms)

    def skip(self, count: int) -> int:
        passed = self.upstream.skip(count)
        self.start += passed
        return passed

    def count(self) -> int:
        return self.start + self._count

    def state(self) -> State:
        return self.upstream.state()

    def restore(self, state: State, done: Ranges, first: Ranges, start: int) -> None:
        self.start = start
        self.upstream.restore(FreeOrder.merged(state, done, first) if done or first else state)


class BatchWork(Work):
    """Batches whose rows several workers write at once, straight into the batch's memory."""

    def __init__(
        self,
        upstream: Stage,
        transforms: Sequence[Transform],
        batch: BatchTask,
        pace: Pace,
        run: RunAll = run_all,
        epoch: int = 0,
    ) -> None:
        self.upstream = upstream
        self._run = run
        self._epoch = epoch
        self.label = label_of(transforms, batch)
        self.where = where_of(transforms, batch)
        self.transforms = transforms
        self._spec = batch
        self.pace = pace
        self._cursor = Cursor(upstream)
        self._count = 0
        self._ticket = 0
        self._filling: Filling | None = None
        self._ended = False

    def pull(self) -> Task | None:
        if self._ended:
            return None
        filling = self._filling or Filling(self._spec, self.start + self._count)
        want = min(self.pace.want, self._spec.size - filling.planned)
        first = self._count
        try:
            piece = filling.plan(*self._numbered(want)) if self._cursor.fill(want) else None
        except Exception as error:
            piece = filling.plan_failure(error)
        if piece is None:
            self._ended = True
            if not filling.planned:
                return None
            return self._task(filling.close(), self._cursor.state(), (first, 0))
        span = (first, 1 if piece.block is None else piece.block.size)
        self._count += span[1]
        if filling.planned < self._spec.size:
            self._filling = filling
            return self._task(piece, None, span)
        filling.closed = True
        self._filling = None
        task = self._task(piece, self._cursor.state(), span)
        self._ticket += 1
        return task

    def _numbered(self, want: int) -> tuple[Block, Numbers]:
        """Some of the elements at hand, with their numbers."""
        offset = self._cursor.offset
        block = self._cursor.take_available(want)
        numbers = numbers_of(self.upstream, self.start + self._count - offset, self._epoch)
        return block, numbers.part(offset, offset + block.size)

    def _task(self, piece: Piece, after: State, span: tuple[int, int]) -> Task:
        return Task(self._ticket, piece, after, span)

    def run(self, task: Task) -> Stretch | None:
        piece: Piece = task.payload
        if piece.block is not None:
            started = Clocks.now()
            made = self._run(self.transforms, piece.block, piece.numbers, piece.allocate)
            self.pace.observe(piece.block.size, started.work(self.transforms, self._run), piece.block.nbytes)
            piece.put(made)
        return piece.filling.finish_piece()

    def can_skip(self) -> bool:
        return self.upstream.can_skip() and all(transform.one_to_one for transform in self.transforms)

    def skip(self, count: int) -> int:
        passed = self._cursor.skip(count * self._spec.size)
        self.start += passed
        return passed // self._spec.size if self._spec.drop_remainder else -(-passed // self._spec.size)

    def count(self) -> int:
        return self.start + self._count

    def state(self) -> State:
        return self._cursor.state()

    def restore(self, state: State, done: Ranges, first: Ranges, start: int) -> None:
        self.start = start
        below, offset = state
        if done or first:
            behind = [(start + offset, count) for start, count in first]
            left_out = [(start + offset, count) for start, count in done]
            below = FreeOrder.merged(below, left_out, [(0, offset), *behind] if offset else behind)
        self._cursor.restore([below, offset])

    def close(self) -> None:
        self._cursor.close()


class Piece:
    """Some rows of a batch: what one task computes."""

    __slots__ = ("block", "filling", "numbers", "row")

    def __init__(self, filling: Filling, block: Block | None, numbers: Numbers, row: int) -> None:
        self.filling = filling
        self.block = block
        self.numbers = numbers
        self.row = row

    def allocate(self, leaf: int) -> Allocate:
        assert self.block is not None
        rows = self.block.size

        def place(shape: tuple[int, ...], dtype: Any) -> np.ndarray | None:
            return self.filling.place(leaf, self.row, rows, shape, np.dtype(dtype))

        return place

    def put(self, made: Stretch) -> None:
        if made.failures:
            place, error = made.failures[0]
            self.filling.fail(self.row + place, error)
        elif made.block is not None:
            self.filling.put(self.row, made.block)


class Filling:
    """A batch in the making. Thread-safe; complete when all its pieces are, whatever the order they end in."""

    def __init__(self, spec: BatchTask, first: int) -> None:
        self._spec = spec
        self._first = first
        self._lock = threading.Lock()
        self._arrays: dict[int, np.ndarray] = {}
        self._pieces: list[tuple[int, Block]] = []
        self._errors: list[tuple[int, Exception]] = []
        self._pending = 0
        self.planned = 0
        self.closed = False

    def plan(self, block: Block, numbers: Numbers) -> Piece:
        piece = Piece(self, block, numbers, self.planned)
        self.planned += block.size
        self._pending += 1
        return piece

    def plan_failure(self, error: Exception) -> Piece:
        """A row that failed upstream."""
        annotate(error, Context(self._spec.label, self._spec.where, self._first // self._spec.size))
        self.fail(self.planned, error)
        self.planned += 1
        self._pending += 1
        return Piece(self, None, Numbers(None), self.planned)

    def close(self) -> Piece:
        """No further rows: the input has ended."""
        self._pending += 1
        self.closed = True
        return Piece(self, None, Numbers(None), self.planned)

    def fail(self, row: int, error: Exception) -> None:
        with self._lock:
            self._errors.append((row, error))

    def place(self, leaf: int, row: int, rows: int, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray | None:
        """Memory of the batch for some rows, if the batch's are of this shape."""
        if dtype.hasobject:
            return None
        with self._lock:
            array = self._arrays.get(leaf)
            if array is None:
                array = self._arrays[leaf] = ARENA.empty((self._spec.size, *shape), dtype)
        if array.shape[1:] != shape or array.dtype != dtype:
            return None
        return array[row : row + rows]

    def put(self, row: int, block: Block) -> None:
        """Write the rows a task computed, where they are not in the batch's memory already."""
        columns = [self._written(leaf, row, column) for leaf, column in enumerate(block.columns)]
        written = Block(block.structure, columns, block.size, block.origin)
        with self._lock:
            self._pieces.append((row, written))

    def _written(self, leaf: int, row: int, column: Column) -> Column:
        values: Any
        if isinstance(column, DenseColumn):
            values, shape, dtype = column.array, column.array.shape[1:], column.array.dtype
        else:
            values = getattr(column, "items", None)
            first = values[0] if values else None
            if not isinstance(first, np.ndarray) or any(item.shape != first.shape for item in values):
                return column
            shape, dtype = first.shape, first.dtype
        place = self.place(leaf, row, len(column), shape, dtype)
        if place is None:
            return column
        if isinstance(values, list):
            for i, item in enumerate(values):
                place[i] = item
        elif values.ctypes.data != place.ctypes.data:
            place[...] = values
        return DenseColumn(place)

    def finish_piece(self) -> Stretch | None:
        """The batch, when this was the last piece. One in which a row failed is a failure."""
        with self._lock:
            self._pending -= 1
            if self._pending or not self.closed:
                return None
        if self.planned < self._spec.size and self._spec.drop_remainder:
            return Stretch(None)
        if self._errors:
            return failure(min(self._errors, key=lambda found: found[0])[1])
        if not self._pieces:
            return Stretch(None)
        try:
            return Stretch(self._assembled())
        except PenstockError as error:
            annotate(error, Context(self._spec.label, self._spec.where, self._first // self._spec.size))
            return failure(error)

    def _assembled(self) -> Block:
        blocks = [block for _, block in sorted(self._pieces, key=lambda piece: piece[0])]
        first = blocks[0]
        if any(block.structure != first.structure for block in blocks):
            return stack_block(concat_blocks(blocks))
        try:
            columns = [self._leaf(leaf, blocks, first.structure) for leaf in range(len(first.columns))]
        except PenstockError:
            return stack_block(concat_blocks(blocks))  # raises it again, with the element's file and offset
        origin = concat_origins([block.origin for block in blocks])
        return Block(first.structure, columns, 1, None if origin is None else origin.batched(len(origin)))

    def _leaf(self, leaf: int, blocks: list[Block], structure: Structure) -> Column:
        columns = [block.columns[leaf] for block in blocks]
        array = self._arrays.get(leaf)
        if array is not None and all(
            isinstance(column, DenseColumn) and np.may_share_memory(column.array, array) for column in columns
        ):
            return DenseColumn(array[: self.planned][None])
        return stack_column(concat(columns), structure.paths()[leaf])


def numbers_of(upstream: Stage, first: int, epoch: int) -> Numbers:
    """Of the Block that a stage gave last, which is number `first` of what it gives."""
    return Numbers(upstream.given if isinstance(upstream, FreeOrder) else first, epoch)


PIECE_SECONDS = 0.016  # of work in a piece of a batch: nobody waits for less than the batch


def label_of(transforms: Sequence[Transform], batch: BatchTask | None) -> str:
    """What a segment is called."""
    return " · ".join([transform.label for transform in transforms] + ([] if batch is None else [batch.label]))


def where_of(transforms: Sequence[Transform], batch: BatchTask | None) -> str | None:
    """The user's line that made it."""
    if transforms:
        return transforms[-1].where
    return None if batch is None else batch.where


def work_of(
    upstream: Stage,
    transforms: Sequence[Transform],
    batch: BatchTask | None,
    *,
    ordered: bool,
    run: RunAll = run_all,
    epoch: int = 0,
) -> Work:
    """The work of a segment: the same for all executors, so that they understand each other's states.

    `run` takes Blocks through the transforms, here or elsewhere.
    """
    source = upstream if ordered else FreeOrder(upstream)
    if batch is not None:
        return BatchWork(source, transforms, batch, Pace(batch.size, PIECE_SECONDS), run, epoch)
    return BlockWork(source, transforms, Pace(), label_of(transforms, batch), where_of(transforms, batch), run, epoch)


def reading_ahead(upstream: Stage, max_elements: int, label: str, where: str | None) -> Work:
    """The work of a prefetch: none but pulling."""
    return BlockWork(upstream, (), Pace(max_elements // 2) if max_elements > 0 else Pace(), label, where)
