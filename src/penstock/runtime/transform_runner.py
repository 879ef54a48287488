"""TransformRunner runs the transforms of a segment on Blocks, here or in a worker process, according to the knobs."""

from __future__ import annotations

import contextvars
import queue
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from penstock.block.block import Block
from penstock.block.numbers import Numbers
from penstock.errors import InvalidArgumentError
from penstock.physical.stretch import Stretch, join
from penstock.physical.transform import RunAll, Transforms, run_all
from penstock.runtime.lane import Lane
from penstock.runtime.processes.failures import Unworkable, in_place, too_late
from penstock.runtime.processes.pool import ProcessPool, process_pool
from penstock.runtime.processes.task import OwnWorkers, ProcessTask
from penstock.runtime.scheduler import counts_as_worker, on_worker
from penstock.trace.drawing import leave_generators_alone
from penstock.trace.graph import Allocate


class TimedRunner:
    """A `RunAll` that works in a separate thread, so that the caller waits no longer than the time limit.

    A Block gets `element_timeout` seconds. If it exceeds them, its thread is abandoned (Python cannot end it), and
    every element is run alone with the full time. Results get no memory of the caller, because an abandoned thread may
    still write to it. `run_seconds` and `cpu_seconds` are the cost of the transforms so far, without abandoned ones.
    """

    here = False  # transforms do not run in the calling thread

    def __init__(self, run: RunAll, element_timeout: float) -> None:
        self._run = run
        self._timeout = element_timeout
        self._helpers: deque[_Helper] = deque()  # idle threads
        self._lock = threading.Lock()
        self.run_seconds = self.cpu_seconds = 0.0
        weakref.finalize(self, _dismiss, self._helpers).atexit = False

    def __call__(self, transforms: Transforms, block: Block, numbers: Numbers, allocate: object = None) -> Stretch:
        made = self._in_time(transforms, block, numbers)
        if made is not None:
            return made
        if block.size == 1:
            return self._late(transforms, block, numbers)
        parts = []
        for row in range(block.size):
            part, its = block.slice(row, row + 1), numbers.part(row, row + 1)
            made = self._in_time(transforms, part, its)
            parts.append(self._late(transforms, part, its) if made is None else made)
        return join(parts)

    def _late(self, transforms: Transforms, block: Block, numbers: Numbers) -> Stretch:
        return in_place(too_late(transforms, self._timeout), transforms, block, numbers)

    def _in_time(self, transforms: Transforms, block: Block, numbers: Numbers) -> Stretch | None:
        """Run a Block, and return None if it exceeds its time."""
        try:
            helper = self._helpers.pop()
        except IndexError:
            helper = _Helper()
        answer = helper.ask(partial(self._run, transforms, block, numbers, None))
        try:
            made, error, seconds, cpu_seconds = answer.get(timeout=self._timeout)
        except queue.Empty:
            helper.dismiss()
            return None
        except BaseException:  # after an interrupt, no caller needs the answer
            helper.dismiss()
            raise
        self._helpers.append(helper)
        with self._lock:
            self.run_seconds += seconds
            self.cpu_seconds += cpu_seconds
        if error is not None:
            raise error
        return made


_Answer = queue.SimpleQueue[tuple[Stretch | None, BaseException | None, float, float]]
_Question = tuple[Callable[[], Stretch], bool, contextvars.Context, _Answer]


class _Helper:
    """A thread that runs one call after the other."""

    def __init__(self) -> None:
        self._questions: queue.SimpleQueue[_Question | None] = queue.SimpleQueue()
        threading.Thread(target=_help, args=(self._questions,), name="penstock-watched", daemon=True).start()

    def ask(self, call: Callable[[], Stretch]) -> _Answer:
        """Start a call and return the queue of its result.

        It runs in the context of the caller, and counts as the same worker.
        """
        answer: _Answer = queue.SimpleQueue()
        self._questions.put((call, on_worker(), contextvars.copy_context(), answer))
        return answer

    def dismiss(self) -> None:
        """End the thread after its present call."""
        self._questions.put(None)


def _help(questions: queue.SimpleQueue[_Question | None]) -> None:
    leave_generators_alone()
    while (question := questions.get()) is not None:
        call, for_worker, context, answer = question
        counts_as_worker(for_worker)
        started, cpu_started = time.perf_counter(), time.thread_time()
        made: Stretch | None = None
        error: BaseException | None = None
        try:
            made = context.run(call)
        except BaseException as raised:
            error = raised
        answer.put((made, error, time.perf_counter() - started, time.thread_time() - cpu_started))
        del question, call, context, answer, made, error


def _dismiss(helpers: deque[Any]) -> None:
    while helpers:
        helpers.pop().dismiss()


T = TypeVar("T")


def transforms_here(element_timeout: float | None) -> RunAll:
    """Return a function that runs transforms in this process.

    With a timeout, it uses a thread that can be abandoned.
    """
    return run_all if element_timeout is None else TimedRunner(run_all, element_timeout)


def pool_of(transforms: Transforms) -> ProcessPool:
    """Return the worker processes for some transforms: those that a function brings, or those of this process."""
    functions = [getattr(transform, "function", None) for transform in transforms]
    own = [function.workers for function in functions if isinstance(function, OwnWorkers)]
    return own[0] if own else process_pool()


def task_of(transforms: Transforms, element_timeout: float | None) -> ProcessTask:
    """Return transforms as a task for worker processes."""
    return ProcessTask(pool_of(transforms), transforms, element_timeout)


def packed(make: Callable[[], T]) -> T:
    """Pack an object for processes that the user asked for. Raises Unworkable if this fails.

    The error is no failure of an interleave's input, so no step skips it.
    """
    try:
        return make()
    except InvalidArgumentError as error:
        raise Unworkable(error) from error.__cause__


class TransformRunner:
    """Chooses the executor of every Block by the knobs of the lane.

    Called like `run_all`, by several workers at once.
    """

    def __init__(self, lane: Lane, element_timeout: float | None) -> None:
        if lane.choice.here is None:
            lane.choice.here = transforms_here(element_timeout)
        self._lane = lane
        self._here = lane.choice.here
        self._timeout = element_timeout

    def __call__(
        self,
        transforms: Transforms,
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
        """True if transforms run in the calling thread."""
        return self._timeout is None and self._lane.knobs.executor == "thread"

    def prepare(self, transforms: Transforms) -> None:
        """Pack the transforms for processes now. Raises Unworkable if this fails."""
        packed(partial(self._lane.choice.task, transforms, self._task))

    def _task(self, transforms: Transforms) -> ProcessTask:
        return task_of(transforms, self._timeout)
