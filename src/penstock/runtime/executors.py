"""The executors of segments: inline, which is the reference, and threads.

The inline executor does all work in the thread of the consumer, in each call of `next`.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from threading import get_ident
from typing import NamedTuple

from penstock.block.block import Block
from penstock.functions.shipping import get_ready, why_not_shippable
from penstock.options import Options
from penstock.physical.executor import Executor, SegmentSettings, StageReader
from penstock.physical.stage import Stage, State
from penstock.physical.transform import BlockTransform, FunctionTransform, RunAll, Transforms
from penstock.plan.node import AUTOTUNE
from penstock.runtime.autotune.driver import Driver
from penstock.runtime.autotune.figures import LARGE_BLOCKS, Knobs, TunerLimits, holds_gil
from penstock.runtime.lane import Lane
from penstock.runtime.machine.granted import at_most, autotuned_workers, granted_cpus
from penstock.runtime.scheduler import Scheduler, Scope
from penstock.runtime.segment import Segment
from penstock.runtime.task import Direct
from penstock.runtime.transform_runner import TransformRunner, packed, pool_of, task_of, transforms_here
from penstock.runtime.work import PIECE_SECONDS, label_of, reading_ahead, where_of, work_of
from penstock.trace.purity import why_impure


class InlineReader(StageReader):
    """Reads an input in each call of `next`."""

    def __init__(self, executor: InlineExecutor, label: str, where: str | None) -> None:
        self._executor = executor
        self._label = label
        self._where = where

    def ahead(self, upstream: Stage) -> Stage:
        return self._executor.ahead(upstream, max_elements=-1, label=self._label, where=self._where, depth=0)

    def early(self) -> int:
        return 0

    def quick(self) -> bool:
        return True

    def tried(self, seconds: float) -> None:
        """Ignore the time, because there is no worker that could read the input."""


class InlineExecutor(Executor):
    """Segments work in each call of `next`. The executor reads nothing ahead, and starts no worker."""

    def __init__(self, options: Options | None = None) -> None:
        self._options = options or Options()

    def segment(self, upstream: Stage, transforms: Transforms, settings: SegmentSettings) -> Stage:
        return Direct(work_of(upstream, transforms, settings, self.run_all(transforms)))

    def ahead(self, upstream: Stage, *, max_elements: int, label: str, where: str | None, depth: int) -> Stage:
        return upstream if isinstance(upstream, Direct) else Direct(reading_ahead(upstream, max_elements, label, where))

    def reader(self, *, at_once: int, cycle_length: int, label: str, where: str | None, depth: int) -> StageReader:
        return InlineReader(self, label, where)

    def inline(self) -> Executor:
        return self

    def run_all(self, transforms: Transforms, executor: str = "auto") -> RunAll:
        return transforms_here(self._options.element_timeout)


# The workers of a step in worker processes send Blocks to the processes and wait.

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

# inputs of an interleave that workers read before an input is read without a worker, first and at most
_INPUTS, _MOST_INPUTS = 32, 1 << 12
_FORGIVING = 16  # fast inputs in a row after which one slow input is ignored
_WAITED = 0.01  # seconds of waits that the system does not count as reads
_AT_ONCE = 0.001  # seconds of an input that needs no worker
_ASKS = 32  # calls on fast inputs between two readings of the resource usage
_MOST = 64  # most workers of AUTOTUNE for functions that wait


class ThreadExecutor(Executor):
    """Segments with workers from the pool, for one run.

    `pinned` is an executor that replaces the choice of each step.
    """

    def __init__(
        self, scheduler: Scheduler, scope: Scope, driver: Driver, options: Options, pinned: str | None = None
    ) -> None:
        self._scheduler = scheduler
        self._scope = scope
        self._driver = driver
        self._options = options
        self.pinned = pinned

    def segment(self, upstream: Stage, transforms: Transforms, settings: SegmentSettings) -> Stage:
        executor, batch, depth = self.pinned or settings.executor, settings.batch, settings.depth
        if executor == "inline":
            return Direct(work_of(upstream, transforms, settings, transforms_here(self._options.element_timeout)))
        limits = self._limits(settings.parallelism, _MOST)
        start = Knobs(self._start(limits), executor if executor == "process" and transforms else "thread")
        at_once = pool_of(transforms).at_once if start.executor == "process" else 1
        if batch is not None:
            start = replace(start, block_seconds=PIECE_SECONDS)
        # with several Blocks per process, no worker waits for a transfer
        elif start.executor == "process" and at_once == 1:
            start = replace(start, block_seconds=LARGE_BLOCKS)
        place = depth, label_of(transforms, batch), where_of(transforms, batch)
        tuned = settings.parallelism == AUTOTUNE
        lane = self._driver.lane(
            place, start, limits, bounded=tuned, executors=lambda: _executors(executor, transforms)
        )
        # start processes now: later, running workers would slow the start, because they hold the interpreter's lock
        if executor == "auto" and transforms:
            get_ready()
            if any(_runs_per_element(transform) for transform in transforms):
                lane.choice.settle()
        runner = TransformRunner(lane, self._options.element_timeout)
        if executor == "process" and transforms:
            runner.prepare(transforms)
            lane.at_once = at_once
        return Segment(
            work_of(upstream, transforms, settings, runner),
            self._scheduler,
            self._scope,
            self._driver,
            lane,
            parallelism=limits.most * lane.at_once,
            ordered=settings.ordered,
            depth=depth,
        )

    def ahead(self, upstream: Stage, *, max_elements: int, label: str, where: str | None, depth: int) -> Stage:
        lane = self._driver.lane((depth, label, where), Knobs(1), TunerLimits(), bounded=False, reads=True)
        return self.reading(upstream, lane, max_elements, depth)

    def reader(self, *, at_once: int, cycle_length: int, label: str, where: str | None, depth: int) -> StageReader:
        limits = self._limits(at_once, _MOST)
        lane = self._driver.lane((depth, label, where), Knobs(self._start(limits)), limits, bounded=True, reads=True)
        return ThreadReader(self, lane, cycle_length, depth, self._driver)

    def reading(self, upstream: Stage, lane: Lane, max_elements: int, depth: int) -> Stage:
        """Return a stage in which a worker reads the upstream ahead."""
        if isinstance(upstream, Segment):
            upstream.keep_ahead(max_elements)
            return upstream  # the segment already reads ahead, up to its window
        return Segment(
            reading_ahead(upstream, max_elements, lane.label, lane.where),
            self._scheduler,
            self._scope,
            self._driver,
            lane,
            parallelism=1,
            ordered=True,
            depth=depth,
            max_elements=max_elements,
        )

    def inline(self) -> Executor:
        return InlineExecutor(self._options)

    def run_all(self, transforms: Transforms, executor: str = "auto") -> RunAll:
        if executor == "process" and self.pinned in (None, "process"):
            return packed(partial(task_of, transforms, self._options.element_timeout))
        return transforms_here(self._options.element_timeout)

    def _limits(self, parallelism: int, most: int) -> TunerLimits:
        """Return the range of workers that the tuner may choose from."""
        if parallelism != AUTOTUNE:
            workers = at_most(self._options, parallelism)
            return TunerLimits(workers, workers)
        autotune = self._options.autotune
        if not autotune.enabled:
            return TunerLimits(1, 1)
        most = at_most(self._options, max(most, autotuned_workers(self._options, granted_cpus())))
        return TunerLimits(min(autotune.min_parallelism or 1, most), most)

    def _start(self, limits: TunerLimits) -> int:
        """Return the number of workers at the start: one per core."""
        return max(min(autotuned_workers(self._options, granted_cpus()), limits.most), limits.least)


class ThreadReader(StageReader):
    """Reads the inputs of an interleave. Its lane decides how many workers read at once.

    Workers read the inputs of the first cycle, unless the inputs of the previous iteration took no time. After that,
    the consumer reads fast inputs itself, because the transfer of a small file to a worker costs more than the read. If
    an input takes longer, a worker takes it over, and workers read the next inputs. After some more inputs the reader
    tries one without a worker again. After many fast inputs one slow input is ignored, because it may have waited for
    something else than its file.
    """

    def __init__(self, executor: ThreadExecutor, lane: Lane, cycle_length: int, depth: int, driver: Driver) -> None:
        self._executor = executor
        self.lane = lane
        self._cycle_length = cycle_length
        self._depth = depth
        self._driver = driver
        self._quick = driver.inputs_were_quick(lane)  # True if the last tried input was fast
        self._left = cycle_length  # number of inputs that workers read before the next trial
        self._next_left = _INPUTS
        self._quick_ones = 0  # number of fast inputs in a row
        self._open: set[_Input] = set()  # inputs that no worker reads
        self._thread = self._asks = 0
        self._used = _UNTOLD

    def ahead(self, upstream: Stage) -> Stage:
        if upstream.seen_below or isinstance(upstream, Segment):
            return self.by_worker(upstream)
        if not self._quick:
            if self._left:
                self._left -= 1
                return self.by_worker(upstream)
            self._left = self._next_left
        found = _Input(self, upstream)
        self._open.add(found)
        return found

    def by_worker(self, upstream: Stage) -> Stage:
        return self._executor.reading(upstream, self.lane, AUTOTUNE, self._depth)

    def early(self) -> int:
        """Return the number of inputs to open early: one cycle, or more for many workers.

        The next inputs are then ready when the present inputs end together.
        """
        return 0 if self._quick else max(self._cycle_length, self.lane.knobs.parallelism)

    def quick(self) -> bool:
        return self._quick

    def tried(self, seconds: float) -> None:
        before = self.used()
        if seconds > _AT_ONCE / 4:
            spent = _Spent()
            spent.add(seconds, before, self.used(now=True))
            if spent.is_long():
                self.took_long()
                return
        self._was_quick()

    def took_long(self) -> None:
        """Hand the tried input, all open inputs and some more inputs to workers."""
        passed, self._quick_ones = self._quick_ones >= _FORGIVING, 0
        if passed:
            return
        self._find(quick=False)
        self._left, self._next_left = self._next_left, min(2 * self._next_left, _MOST_INPUTS)
        for found in list(self._open):
            found.hand_over()
        self._open.clear()

    def ended(self, stage: _Input) -> None:
        """Record the end of an input that needed no worker."""
        if stage in self._open:
            self._open.discard(stage)
            self._find(quick=True)
            self._was_quick()

    def _was_quick(self) -> None:
        self._quick_ones += 1
        self._next_left = max(self._next_left // 2, _INPUTS)

    def _find(self, *, quick: bool) -> None:
        if quick != self._quick:
            self._quick = quick
            self._driver.found_inputs(self.lane, quick=quick)

    def used(self, *, now: bool = False) -> _Used:
        """Return the resource usage of this thread. Unless `now` is True, the value may be some calls old.

        A reading takes as long as all other work in a call on a small input.
        """
        thread = get_ident()
        if now or thread != self._thread or self._asks == _ASKS:
            self._thread, self._asks, self._used = thread, 0, _used()
        self._asks += 1
        return self._used


class _Input(Stage):
    """An input that the consumer reads itself until it has taken some time. Then a worker reads it."""

    def __init__(self, reader: ThreadReader, upstream: Stage) -> None:
        super().__init__(reader.lane.label, (upstream,), reader.lane.where)
        self._reader = reader
        self._stage = upstream
        self._by_worker = False
        self._started = False
        self._spent = _Spent()

    @property
    def seen(self) -> bool:
        return self._stage.seen

    @property
    def seen_below(self) -> bool:
        return self._stage.seen_below

    def next(self, want: int) -> Block | None:
        if self._by_worker:
            return self._stage.next(want)
        began, started = self._reader.used(), time.perf_counter()
        try:
            return self._stage.next(want)
        finally:
            took = time.perf_counter() - started
            self._spent.add(took, began, self._reader.used(now=True) if took > _AT_ONCE / 4 else began)
            if self._spent.is_long():
                self._spent = _Spent()  # for the case that the reader ignores it
                self._reader.took_long()

    def hand_over(self) -> None:
        """Let a worker read the rest."""
        self._stage = self._reader.by_worker(self._stage)
        self.inputs = (self._stage,)
        self._by_worker = True
        if self._started:
            self._stage.start()

    def start(self) -> None:
        self._started = True
        self._stage.start()

    def can_skip(self) -> bool:
        return self._stage.can_skip()

    def skip(self, count: int) -> int:
        return self._stage.skip(count)

    def state(self) -> State:
        return self._stage.state()

    def restore(self, state: State) -> None:
        self._stage.restore(state)

    def close(self) -> None:
        self._reader.ended(self)
        self._stage.close()


class _Spent:
    """The time and resources that one input has used in `next`."""

    __slots__ = ("cpu", "reads", "waits", "wall")

    def __init__(self) -> None:
        self.wall = self.cpu = 0.0  # seconds
        self.waits = self.reads = 0

    def add(self, took: float, began: _Used, now: _Used) -> None:
        self.wall += took
        self.cpu += took if now is began or now.waits < 0 else min(now.cpu - began.cpu, took)
        self.waits += now.waits - began.waits
        self.reads += now.reads - began.reads

    def is_long(self) -> bool:
        """Return True if the input took long.

        It must also have computed for as long, have waited for a disk, or have waited very long. Wall time alone is not
        enough: the thread may have had no core on a busy machine, or may have waited for the interpreter.
        """
        if self.wall <= _AT_ONCE:
            return False
        return self.cpu > _AT_ONCE or self.reads > 0 or (self.waits > 0 and self.wall > _WAITED)


class _Used(NamedTuple):
    """The resource usage of a thread: CPU seconds, number of waits, number of reads from disk. -1: not known."""

    cpu: float
    waits: int
    reads: int


_UNTOLD = _Used(0.0, -1, 0)


def _used() -> _Used:
    if resource is None or not hasattr(resource, "RUSAGE_THREAD"):
        return _UNTOLD
    found = resource.getrusage(resource.RUSAGE_THREAD)
    return _Used(found.ru_utime + found.ru_stime, found.ru_nvcsw, found.ru_inblock + found.ru_majflt)


def _runs_per_element(transform: BlockTransform) -> bool:
    """Return True if the function is certainly called for each element alone."""
    if not isinstance(transform, FunctionTransform):
        return False
    return transform.vectoriser is None or why_impure(transform.function) is not None


def _executors(executor: str, transforms: Transforms) -> tuple[str, ...]:
    """Return the executors that may be chosen for these transforms. A run begins with the first."""
    if not transforms:  # there is no work for other executors
        return ("thread",)
    if executor != "auto":
        return (executor if executor == "process" else "thread",)
    if not holds_gil() or all(transform.computes for transform in transforms):
        return ("thread",)  # vectorised transforms run in kernels, for which threads use all cores
    movable = all(
        isinstance(transform, FunctionTransform) and why_not_shippable(transform.function) is None
        for transform in transforms
    )
    return ("thread", "process") if movable else ("thread",)
