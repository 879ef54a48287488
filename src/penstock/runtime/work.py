"""The two kinds of work of segments: transforms of Blocks, and batches that several workers fill."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import NamedTuple

from penstock.block.arena import ARENA
from penstock.block.block import Block, concat_blocks, joins_freely
from penstock.block.column import Column, DenseColumn
from penstock.block.numbers import Numbers, joined
from penstock.errors import Context, PenstockError, annotate
from penstock.physical.chained import Portioned, Ratios, ResumePlace, ratios_of
from penstock.physical.executor import BatchTask, SegmentSettings
from penstock.physical.stage import Cursor, Stage, State
from penstock.physical.stages.apply import ApplyStage
from penstock.physical.stages.batch import stack_block
from penstock.physical.stretch import Stretch, failed, failure, join
from penstock.physical.transform import BlockTransform, RunAll, Transforms, run_all
from penstock.plan.node import StepName
from penstock.runtime.block_sizer import BlockSizer, worked
from penstock.runtime.filling import BatchPiece, Filling
from penstock.runtime.free_order import FreeOrder, Ranges
from penstock.runtime.task import Task, Work


class BlockWork(Work):
    """Runs the transforms on each upstream Block. Without transforms, it reads ahead."""

    def pull(self) -> Task | None:
        started = 0.0 if self.transforms else time.perf_counter()
        first = self._count
        block: Block | None
        try:
            want = min(self.sizer.want, self.sizer.share)
            block = self.upstream.next(want if self.most is None else min(want, self.most))
        except Exception as error:
            self._count += 1
            self._ticket += 1
            return Task(self._ticket - 1, error, self.upstream.state(), (first, 1))
        if block is None:
            return None
        self._count += block.size
        self.over = self.upstream.at_end
        if not self.transforms:
            self.sizer.observe(block.size, time.perf_counter() - started, block.nbytes, columns=len(block.columns))
        self._ticket += 1
        numbers = numbers_of(self.upstream, self.start + first, self._epoch)
        payload = block, numbers if self.numbered else numbers.lost()
        return Task(self._ticket - 1, payload, self.upstream.state(), (first, block.size))

    def run(self, task: Task) -> Stretch:
        if isinstance(task.payload, Exception):
            return failure(task.payload)
        block, numbers = task.payload
        if not self.transforms:
            return Stretch(block)
        return self._run(self.transforms, block, numbers, None)

    def observe(self, task: Task, made: Stretch | None, seconds: float, cpu: float) -> None:
        if not self.transforms or isinstance(task.payload, Exception):
            return
        block: Block = task.payload[0]
        nbytes = block.nbytes
        if made is not None and made.block is not None and made.block.nbytes > nbytes:
            nbytes = made.block.nbytes
        taken = worked(self.transforms, self._run, seconds, cpu)
        self.sizer.observe(block.size, taken, nbytes, 0, len(block.columns))

    def can_skip(self) -> bool:
        return self.upstream.can_skip() and all(transform.one_to_one for transform in self.transforms)

    def skip(self, count: int) -> int:
        passed = self.upstream.skip(count)
        self.start += passed
        return passed

    def ratios(self) -> Ratios | None:
        return None if isinstance(self.upstream, FreeOrder) else ratios_of(self.transforms)

    def part(self, count: int) -> None:
        self.upstream = ApplyStage(self.upstream, self.transforms[:count], self._run, self._epoch)
        self.transforms = self.transforms[count:]

    def portion(self) -> None:
        self.upstream = Portioned.over(self.upstream)

    def state(self) -> State:
        return self.upstream.state()

    def restore(self, state: State, done: Ranges, first: Ranges, start: int) -> None:
        self.start = start
        self.upstream.restore(FreeOrder.merged(state, done, first) if done or first else state)


class BatchRows(NamedTuple):
    """Elements that form whole batches, and their numbers."""

    block: Block
    numbers: Numbers


class BatchWork(Work):
    """Computes batches. Several workers fill a large batch, and one task computes many small batches."""

    def __init__(
        self,
        upstream: Stage,
        transforms: Transforms,
        batch: BatchTask,
        sizer: BlockSizer,
        run: RunAll = run_all,
        epoch: int = 0,
    ) -> None:
        super().__init__(upstream, transforms, sizer, step_of(transforms, batch), run, epoch)
        self._spec = batch
        self.inputs = batch.size
        self._cursor = Cursor(upstream)
        self._filling: Filling | None = None
        self._joins = False  # True if the last Blocks could be joined without a copy
        self._late: Exception | None = None  # error of the element after the last piece
        self._ended = False

    def pull(self) -> Task | None:
        if self._ended:
            return None
        first, planned = self._count, 0 if self._filling is None else self._filling.planned
        rows: BatchRows | None = None
        error: Exception | None = None
        try:
            if self._fill(planned):
                rows = self._gathered(planned)
        except Exception as late:
            error = failed(late)
        if rows is not None:
            self._count += rows.block.size
            if rows.block.size >= self._spec.size:
                return self._last_task(rows, first)
        filling, self._filling = self._filling or Filling(self._spec, self.start + first, self.transforms), None
        if rows is not None:
            piece = filling.plan(*rows)
        elif error is not None:
            self._count += 1
            piece = filling.plan_failure(error)
        else:
            self._ended = True
            return self._last_task(filling.close(), first) if filling.planned else None
        if filling.planned < self._spec.size:
            self._filling = filling
            return Task(self._ticket, piece, None, (first, self._count - first))
        filling.closed = True
        return self._last_task(piece, first)

    def _last_task(self, payload: BatchPiece | BatchRows, first: int) -> Task:
        """Return the last task of a ticket, with the elements from number `first` on."""
        self._ticket += 1
        return Task(self._ticket - 1, payload, self._cursor.state(), (first, self._count - first))

    def _fill(self, planned: int) -> bool:
        """Load elements for a batch that already has `planned` rows. Return False at the end.

        Raises the error if the next element is a failure. If batches are little work, it asks for whole batches, which
        then need no assembly. Otherwise it asks for the missing rows only, unless surplus rows can be joined with later
        ones without a copy.
        """
        if self._late is not None:
            error, self._late = self._late, None
            raise error
        size, want = self._spec.size, self._want()
        if want >= size:
            want = want // size * size - planned
        elif self.most is not None or not self._joins:
            want = min(want, size - planned)
        return self._cursor.fill(want)

    def _want(self) -> int:
        want = min(self.sizer.want, self.sizer.share)
        return want if self.most is None else min(want, self.most * self._spec.size)

    def _gathered(self, planned: int) -> BatchRows:
        """Return the next loaded elements with their numbers.

        The result has whole batches if enough elements are loaded. Otherwise it has the rows of one piece, if they can
        be joined without a copy.
        """
        size, want = self._spec.size, self._want()
        if planned or want < size:
            want = min(want, size - planned)
        else:
            want = max(min(want, self._cursor.available()) // size, 1) * size
        parts = [self._numbered(want, 0)]
        got = parts[0].block.size
        while got < want and joins_freely(parts[0].block, parts[0].block):
            try:
                if not self._fill(planned + got) or not joins_freely(parts[0].block, self._cursor.peek()):
                    break
            except Exception as error:
                self._late = failed(error)
                break
            parts.append(self._numbered(want - got, got))
            got += parts[-1].block.size
        blocks, numbers = zip(*parts, strict=True)
        self._joins = joins_freely(blocks[-1], blocks[-1])
        return BatchRows(concat_blocks(blocks), joined(numbers, [block.size for block in blocks]))

    def _numbered(self, want: int, passed: int) -> BatchRows:
        """Return some of the loaded elements with their numbers. This piece already has `passed` elements."""
        offset = self._cursor.offset
        block = self._cursor.take_available(want)
        numbers = numbers_of(self.upstream, self.start + self._count + passed - offset, self._epoch)
        return BatchRows(block, numbers.part(offset, offset + block.size))

    def run(self, task: Task) -> Stretch | None:
        work: BatchPiece | BatchRows = task.payload
        if isinstance(work, BatchRows):
            return self.again(task)
        if work.block is not None:
            try:
                work.put(self._run(self.transforms, work.block, work.numbers, work.allocate))
            except MemoryError as error:  # no memory for the batch or its elements
                annotate(error, Context(self._spec.label, self._spec.where, work.filling.number))
                work.filling.fail(work.row, error)
        return work.filling.finish_piece()

    def again(self, task: Task) -> Stretch:
        work: BatchPiece | BatchRows = task.payload
        parts = [work] if isinstance(work, BatchRows) else work.filling.parts
        made = [part if isinstance(part, Stretch) else self._run(self.transforms, *part, None) for part in parts]
        return self._batches(join(made), (self.start + task.span[0]) // self._spec.size)

    def _batches(self, made: Stretch, first: int) -> Stretch:
        """Return the batches of some results, from number `first` on. A batch with a failed row is a failure."""
        size = min(self._spec.size, made.size)
        if not made.failures and made.block is not None:
            with suppress(PenstockError):  # then one of the batches is a failure
                return Stretch(_own(stack_block(made.block, size)), kinds=made.kinds)
        return join([self._batch(made.slice(at, at + size), first + at // size) for at in range(0, made.size, size)])

    def _batch(self, rows: Stretch, number: int) -> Stretch:
        if rows.error is not None:
            return failure(rows.error, rows.kinds)
        assert rows.block is not None
        try:
            return Stretch(_own(stack_block(rows.block)), kinds=rows.kinds)
        except PenstockError as error:
            annotate(error, Context(self._spec.label, self._spec.where, number))
            return failure(error, rows.kinds)

    def observe(self, task: Task, made: Stretch | None, seconds: float, cpu: float) -> None:
        work: BatchPiece | BatchRows = task.payload
        if work.block is None:
            return
        taken = worked(self.transforms, self._run, seconds, cpu)
        batches = 0 if made is None or made.block is None or isinstance(work, BatchPiece) else made.block.nbytes
        self.sizer.observe(work.block.size, taken, work.block.nbytes, batches, len(work.block.columns))

    def can_skip(self) -> bool:
        return self.upstream.can_skip() and all(transform.one_to_one for transform in self.transforms)

    def skip(self, count: int) -> int:
        passed = self._cursor.skip(count * self._spec.size)
        self.start += passed
        return passed // self._spec.size if self._spec.drop_remainder else -(-passed // self._spec.size)

    def ratios(self) -> Ratios | None:
        return None if isinstance(self.upstream, FreeOrder) else ratios_of(self.transforms, self._spec.size)

    def under(self, state: State) -> tuple[State, int]:
        below, offset = state
        return below, offset

    def at(self, place: ResumePlace) -> tuple[State, int, int]:
        return [place.below, place.first], place.count or 0, 0

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


def _own(block: Block) -> Block:
    """Return batches in writable memory, as if several workers had filled them.

    Read-only memory belongs to a source.
    """
    return block.with_columns(block.structure, [_owned(column) for column in block.columns])


def _owned(column: Column) -> Column:
    if not isinstance(column, DenseColumn) or column.array.flags.writeable:
        return column
    out = ARENA.empty(column.array.shape, column.array.dtype)
    out[...] = column.array
    return DenseColumn(out)


def numbers_of(upstream: Stage, first: int, epoch: int) -> Numbers:
    """Return the numbers of the last Block of a stage, whose first element is number `first` of the stage."""
    return Numbers(upstream.given if type(upstream) is FreeOrder else first, epoch)


# seconds of work in a piece of a batch: small pieces bring no gain, because the consumer waits for the whole batch
PIECE_SECONDS = 0.016


def step_of(transforms: Transforms, batch: BatchTask | None) -> StepName:
    """Return the label of a segment, and the line of the user that made it."""
    steps: list[BlockTransform | BatchTask] = [*transforms, *([] if batch is None else [batch])]
    return StepName(" · ".join(step.label for step in steps), (transforms or steps)[-1].where if steps else None)


def work_of(upstream: Stage, transforms: Transforms, settings: SegmentSettings, run: RunAll = run_all) -> Work:
    """Return the work of a segment. It is the same for all executors, so that they can load each other's states.

    `run` runs the transforms of Blocks, here or in another process.
    """
    source, batch, epoch = upstream if settings.ordered else FreeOrder(upstream), settings.batch, settings.epoch
    if batch is not None:
        return BatchWork(source, transforms, batch, BlockSizer(seconds=PIECE_SECONDS, unit=batch.size), run, epoch)
    return BlockWork(source, transforms, BlockSizer(), step_of(transforms, batch), run, epoch)


def reading_ahead(upstream: Stage, max_elements: int, label: str, where: str | None) -> Work:
    """Return the work of a prefetch, which only pulls.

    It pulls half of the elements at a time, so that the consumer takes one half while a worker pulls the other. It
    pulls more if they take so little time that their transfer to another thread would cost more than they do.
    """
    return BlockWork(upstream, (), BlockSizer(unit=(max_elements + 1) // 2), StepName(label, where))
