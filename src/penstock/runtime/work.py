"""The two kinds of work segments do: Blocks through transforms, and batches filled by several workers."""

from __future__ import annotations

import time
from collections.abc import Sequence

from penstock.block.block import Block, concat_blocks, joins_freely
from penstock.block.numbers import Numbers, joined
from penstock.physical.executor import BatchTask
from penstock.physical.stage import Cursor, Stage, State
from penstock.physical.stretch import Stretch, failure
from penstock.physical.transform import RunAll, Transform, run_all
from penstock.runtime.filling import Filling, Piece
from penstock.runtime.free_order import FreeOrder, Ranges
from penstock.runtime.pace import Pace, worked
from penstock.runtime.task import Task, Work


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
        return self._run(self.transforms, block, numbers, None)

    def observe(self, task: Task, made: Stretch | None, seconds: float, cpu: float) -> None:
        if not self.transforms or isinstance(task.payload, Exception):
            return
        block: Block = task.payload[0]
        nbytes = block.nbytes if made is None or made.block is None else max(block.nbytes, made.block.nbytes)
        self.pace.observe(block.size, worked(self.transforms, self._run, seconds, cpu), nbytes)

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
        self._joins = False  # whether the last Blocks could be joined freely
        self._late: Exception | None = None  # of the element behind the last piece
        self._ended = False

    def pull(self) -> Task | None:
        if self._ended:
            return None
        filling = self._filling or Filling(self._spec, self.start + self._count)
        want = min(self.pace.want, self._spec.size - filling.planned)
        first = self._count
        try:
            piece = filling.plan(*self._gathered(want)) if self._fill(want) else None
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

    def _fill(self, want: int) -> bool:
        """Have elements at hand; False at the end. Raises if the next one is a failure.

        Where what is left over can be joined with what comes, it need not end with the batch.
        """
        if self._late is not None:
            error, self._late = self._late, None
            raise error
        return self._cursor.fill(self.pace.want if self._joins else want)

    def _gathered(self, want: int) -> tuple[Block, Numbers]:
        """The next elements, of which there are some, with their numbers: as many as are wanted, if that is cheap."""
        parts = [self._numbered(want, 0)]
        size = parts[0][0].size
        while size < want and joins_freely(parts[0][0], parts[0][0]):
            try:
                if not self._fill(want - size) or not joins_freely(parts[0][0], self._cursor.peek()):
                    break
            except Exception as error:
                self._late = error
                break
            parts.append(self._numbered(want - size, size))
            size += parts[-1][0].size
        blocks, numbers = zip(*parts, strict=True)
        self._joins = joins_freely(blocks[-1], blocks[-1])
        return concat_blocks(blocks), joined(numbers, [block.size for block in blocks])

    def _numbered(self, want: int, passed: int) -> tuple[Block, Numbers]:
        """Some of the elements at hand, with their numbers; so many of this piece came before."""
        offset = self._cursor.offset
        block = self._cursor.take_available(want)
        numbers = numbers_of(self.upstream, self.start + self._count + passed - offset, self._epoch)
        return block, numbers.part(offset, offset + block.size)

    def _task(self, piece: Piece, after: State, span: tuple[int, int]) -> Task:
        return Task(self._ticket, piece, after, span)

    def run(self, task: Task) -> Stretch | None:
        piece: Piece = task.payload
        if piece.block is not None:
            piece.put(self._run(self.transforms, piece.block, piece.numbers, piece.allocate))
        return piece.filling.finish_piece()

    def observe(self, task: Task, made: Stretch | None, seconds: float, cpu: float) -> None:
        block = task.payload.block
        if block is not None:
            self.pace.observe(block.size, worked(self.transforms, self._run, seconds, cpu), block.nbytes)

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


def numbers_of(upstream: Stage, first: int, epoch: int) -> Numbers:
    """Of the Block that a stage gave last, which is number `first` of what it gives."""
    return Numbers(upstream.given if type(upstream) is FreeOrder else first, epoch)


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
