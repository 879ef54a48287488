"""TransformRunner: runs a segment's transforms on Blocks, here or in a worker process, as its lane's knobs say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from penstock.block.block import Block
from penstock.block.numbers import Numbers
from penstock.errors import InvalidArgumentError
from penstock.physical.stretch import Stretch
from penstock.physical.transform import RunAll, Transform, run_all
from penstock.runtime.lane import Lane
from penstock.runtime.processes.failures import Unworkable
from penstock.runtime.processes.pool import ProcessPool, process_pool
from penstock.runtime.processes.task import OwnWorkers, ProcessTask
from penstock.runtime.watched import watched
from penstock.trace.graph import Allocate

T = TypeVar("T")


def transforms_here(element_timeout: float | None) -> RunAll:
    """Transforms in this process; with a timeout, in a thread that can be given up."""
    return run_all if element_timeout is None else watched(run_all, element_timeout)


def pool_of(transforms: Sequence[Transform]) -> ProcessPool:
    """The worker processes for some transforms: those that a function brings, or this process's."""
    functions = [getattr(transform, "function", None) for transform in transforms]
    own = [function.workers for function in functions if isinstance(function, OwnWorkers)]
    return own[0] if own else process_pool()


def task_of(transforms: Sequence[Transform], element_timeout: float | None) -> ProcessTask:
    """Transforms in worker processes."""
    return ProcessTask(pool_of(transforms), transforms, element_timeout)


def packed(make: Callable[[], T]) -> T:
    """What needs to be sent to processes, where the user wants them: raises Unworkable if that is not possible.

    It is no failure of the input of an interleave for which it is made, and nothing steps over it.
    """
    try:
        return make()
    except InvalidArgumentError as error:
        raise Unworkable(error) from error.__cause__


class TransformRunner:
    """Asks the lane's knobs for every Block. Called like `run_all`, by several workers at once."""

    def __init__(self, lane: Lane, element_timeout: float | None) -> None:
        if lane.choice.here is None:
            lane.choice.here = transforms_here(element_timeout)
        self._lane = lane
        self._here = lane.choice.here
        self._timeout = element_timeout

    def __call__(
        self,
        transforms: Sequence[Transform],
        block: Block,
        numbers: Numbers,
        allocate: Callable[[int], Allocate] | None = None,
    ) -> Stretch:
        if transforms and self._lane.knobs.executor == "process":
            task = self._lane.choice.task(transforms, self._task)
            if task is not None:
                try:
                    return task(transforms, block, numbers)
                except Unworkable as ended:
                    if not self._lane.choice.stay(ended.reason):
                        raise
        return self._here(transforms, block, numbers, allocate)

    @property
    def here(self) -> bool:
        """Whether transforms run in the thread that calls."""
        return self._timeout is None and self._lane.knobs.executor == "thread"

    def prepare(self, transforms: Sequence[Transform]) -> None:
        """Pack what processes need now. Raises Unworkable where that is not possible."""
        packed(partial(self._lane.choice.task, transforms, self._task))

    def _task(self, transforms: Sequence[Transform]) -> ProcessTask:
        return task_of(transforms, self._timeout)
