"""ExecutorChoice: whether the transforms of a lane may run in worker processes, and as what they are known there."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Protocol

from penstock.block.block import Block
from penstock.block.numbers import Numbers
from penstock.errors import InvalidArgumentError
from penstock.physical.stretch import Stretch
from penstock.physical.transform import RunAll, Transform
from penstock.runtime.autotune.figures import Limits


class Task(Protocol):
    """Transforms that worker processes know."""

    cpu_seconds: float  # that they have spent

    def __call__(self, transforms: Sequence[Transform], block: Block, numbers: Numbers) -> Stretch: ...


class ExecutorChoice:
    """The choice for all segments of one lane. Thread-safe.

    `ask` tells the executors that may be chosen, and is asked once, when somebody first wants to know: looking through
    a function takes a moment. Without it `limits` name them.
    """

    def __init__(self, limits: Limits, ask: Callable[[], tuple[str, ...]] | None = None) -> None:
        self.obstacle: str | None = None  # why functions cannot be in worker processes, which were tried
        self.here: RunAll | None = None  # who takes Blocks through the transforms in this process
        self._limits = limits
        self._ask = ask
        self._tasks: dict[Hashable, Task | None] = {}
        self._lock = threading.RLock()  # a garbage collection inside may close an abandoned run

    @property
    def limits(self) -> Limits:
        """Between which the tuner may choose."""
        if self._ask is not None:
            with self._lock:  # a worker with its first Block and whoever samples the lane may ask at once
                if self._ask is not None:
                    self._limits = replace(self._limits, executors=self._ask())
                    self._ask = None
        return self._limits

    def settle(self) -> None:
        """Find out which executors may be chosen, unless that is known."""
        assert self.limits

    def task(self, transforms: Sequence[Transform], make: Callable[[Sequence[Transform]], Task]) -> Task | None:
        """The transforms as worker processes know them, sent once; None where they cannot be sent."""
        if "process" not in self.limits.executors:  # any more
            return None
        kin = tuple(transform.kin() for transform in transforms)
        if kin not in self._tasks:
            with self._lock:
                if kin not in self._tasks:
                    self._tasks[kin] = self._sent(transforms, make)
        return self._tasks[kin]

    def _sent(self, transforms: Sequence[Transform], make: Callable[[Sequence[Transform]], Task]) -> Task | None:
        try:
            return make(transforms)
        except InvalidArgumentError as error:
            if not self.stay(error.message):
                raise
            return None

    def stay(self, obstacle: str | None = None) -> bool:
        """Functions stay in this process, unless the user wants it otherwise; whether they do."""
        if "thread" not in self.limits.executors:
            return False
        self._limits = replace(self._limits, executors=("thread",))
        self.obstacle = self.obstacle or obstacle
        return True

    def cpu_seconds(self) -> float:
        """CPU seconds that others than the lane's workers spent: processes, and threads with a time limit."""
        tasks = sum(task.cpu_seconds for task in list(self._tasks.values()) if task is not None)
        return tasks + float(getattr(self.here, "cpu_seconds", 0.0))
