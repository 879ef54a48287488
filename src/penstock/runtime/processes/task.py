"""ProcessTask: the transforms of a segment, for worker processes."""

from __future__ import annotations

import threading
import weakref
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from penstock.block.block import Block
from penstock.block.numbers import Numbers
from penstock.block.transport import pack
from penstock.errors import Context, InvalidArgumentError, PenstockError, said
from penstock.functions.shipping import unpicklable
from penstock.physical.stretch import Stretch
from penstock.physical.transform import BlockTransform, Transforms
from penstock.runtime.processes.failures import Unworkable, labels
from penstock.runtime.processes.link import Pickled

if TYPE_CHECKING:
    from penstock.runtime.processes.pool import ProcessPool


class OwnWorkers(ABC):
    """A function that brings its own worker processes. Only these processes call it."""

    @property
    @abstractmethod
    def workers(self) -> ProcessPool: ...

    def there(self, transform: BlockTransform) -> BlockTransform:
        """Return the step in the form for the workers."""
        return transform


class ProcessTask:
    """Transforms that run in worker processes.

    Any number of threads may call the task, with the arguments of `run_all`.

    `element_timeout` limits the seconds of a Block, and then of each of its elements alone. The counts so far are:

    - `run_seconds`: Seconds in the functions.
    - `cpu_seconds`: CPU seconds of the workers, including the transfer of Blocks and results.
    - `trip_seconds`: Seconds from request to answer.
    - `blocks` and `elements`: Number of Blocks and elements.

    Raises:
        Unworkable: If worker processes cannot run the transforms on any element.
    """

    def __init__(self, pool: ProcessPool, transforms: Transforms, element_timeout: float | None = None) -> None:
        self.transforms = list(transforms)
        self.element_timeout = element_timeout
        self.number = next(pool.numbers)
        self.label = labels(transforms)
        self.where = transforms[-1].where
        self.expects = 0  # bytes of the last result
        self.blocks = self.elements = 0
        self.run_seconds = self.cpu_seconds = self.trip_seconds = 0.0
        self._lock = threading.Lock()
        self._pool = pool
        try:
            self.packed = Pickled.of(*pack([_there(transform) for transform in transforms], by_value=True))
        except Exception as error:
            raise _unsendable(self, error) from error
        weakref.finalize(self, pool.forget, self.number).atexit = False

    def __call__(self, transforms: Transforms, block: Block, numbers: Numbers, allocate: object = None) -> Stretch:
        try:
            return self._pool.run(self, block, numbers, [transform.decided for transform in transforms])
        except PenstockError as error:  # failures of elements are in the result instead
            raise Unworkable(error) from None

    def count(self, elements: int, run_seconds: float, cpu_seconds: float, trip_seconds: float) -> None:
        """Count a finished Block."""
        with self._lock:
            self.blocks += 1
            self.elements += elements
            self.run_seconds += run_seconds
            self.cpu_seconds += cpu_seconds
            self.trip_seconds += trip_seconds


def _there(transform: BlockTransform) -> BlockTransform:
    function = getattr(transform, "function", None)
    return function.there(transform) if isinstance(function, OwnWorkers) else transform


def _unsendable(task: ProcessTask, error: Exception) -> InvalidArgumentError:
    for transform in task.transforms:
        found = unpicklable(transform.function) if hasattr(transform, "function") else None
        if found is not None:
            message = f"{transform.label} cannot be sent to a worker process: {found}."
            hint = "Make it inside the function, at the first call, or run this step in threads."
            return InvalidArgumentError(message, hint=hint, context=Context(transform.label, transform.where))
    message = f"{task.label} cannot be sent to a worker process: {said(error)}"
    hint = "Its function holds something that cannot be pickled, such as an open file or a lock: make it inside."
    return InvalidArgumentError(message, hint=hint, context=Context(task.label, task.where))
