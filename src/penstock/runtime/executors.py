"""The executors of segments: inline, which is the reference, and threads.

The inline executor does all work in the thread of the consumer, in each call of `next`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from penstock.functions.shipping import get_ready, why_not_shippable
from penstock.options import Options
from penstock.physical.executor import Executor, SegmentSettings, StageReader
from penstock.physical.stage import Stage
from penstock.physical.transform import BlockTransform, FunctionTransform, RunAll, Transforms
from penstock.plan.node import AUTOTUNE
from penstock.runtime.autotune.driver import Driver
from penstock.runtime.autotune.figures import LARGE_BLOCKS, Knobs, TunerLimits, holds_gil
from penstock.runtime.lane import Lane
from penstock.runtime.machine.granted import at_most, autotuned_workers, granted_cpus
from penstock.runtime.scheduler import Scope
from penstock.runtime.segment import Segment
from penstock.runtime.task import Direct
from penstock.runtime.thread_reader import ThreadReader
from penstock.runtime.transform_runner import TransformRunner, packed, pool_of, task_of, transforms_here
from penstock.runtime.work import PIECE_SECONDS, reading_ahead, step_of, work_of
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


_MOST = 64  # most workers of AUTOTUNE for functions that wait


class ThreadExecutor(Executor):
    """Segments with workers from the pool, for one run.

    `pinned` is an executor that replaces the choice of each step.
    """

    def __init__(self, scope: Scope, driver: Driver, options: Options, pinned: str | None = None) -> None:
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
        place = depth, *step_of(transforms, batch)
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
        return ThreadReader(
            partial(self.reading, lane=lane, max_elements=AUTOTUNE, depth=depth), lane, cycle_length, self._driver
        )

    def reading(self, upstream: Stage, lane: Lane, max_elements: int, depth: int) -> Stage:
        """Return a stage in which a worker reads the upstream ahead."""
        if isinstance(upstream, Segment):
            upstream.keep_ahead(max_elements)
            return upstream  # the segment already reads ahead, up to its window
        return Segment(
            reading_ahead(upstream, max_elements, lane.label, lane.where),
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


def _runs_per_element(transform: BlockTransform) -> bool:
    """Return True if the function is certainly called for each element alone."""
    if not isinstance(transform, FunctionTransform):
        return False
    return transform.vectoriser is None or why_impure(transform.function) is not None


def _is_undecided(transform: BlockTransform) -> bool:
    """Return True until the first Block shows if the function runs on whole Blocks."""
    if not isinstance(transform, FunctionTransform) or _runs_per_element(transform):
        return False
    return transform.vectoriser is not None and not transform.vectoriser.ran


def _executors(executor: str, transforms: Transforms) -> tuple[str, ...]:
    """Return the executors that may be chosen for these transforms. A run begins with the first.

    The result is empty until the first Block shows if functions run on whole Blocks.
    """
    if not transforms:  # there is no work for other executors
        return ("thread",)
    if executor != "auto":
        return (executor if executor == "process" else "thread",)
    if not holds_gil() or all(transform.computes for transform in transforms):
        return ("thread",)  # vectorised transforms run in kernels, for which threads use all cores
    if any(map(_is_undecided, transforms)):
        return ()
    movable = all(
        isinstance(transform, FunctionTransform) and why_not_shippable(transform.function) is None
        for transform in transforms
    )
    return ("thread", "process") if movable else ("thread",)
