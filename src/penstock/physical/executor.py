"""Executor: runs the parts of a plan that can run apart from the consumer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from penstock.physical.stage import Stage
from penstock.physical.transform import RunAll, Transforms


@dataclass(frozen=True, slots=True)
class BatchTask:
    """A batch that the workers of a segment fill."""

    size: int
    drop_remainder: bool
    label: str
    where: str | None


@dataclass(frozen=True, slots=True)
class SegmentSettings:
    """The settings of a segment: up to `parallelism` workers (-1: AUTOTUNE) run its transforms, then its batch, if any.

    `epoch` determines the random numbers of the functions. `executor` is the user's choice: "thread", "process",
    "inline" for the consumer's thread, or "auto" for the faster one.
    """

    parallelism: int
    ordered: bool
    depth: int
    batch: BatchTask | None = None
    executor: str = "auto"
    epoch: int = 0


class StageReader(ABC):
    """Reads parallel stages ahead of their one consumer."""

    @abstractmethod
    def ahead(self, upstream: Stage) -> Stage:
        """Return a stage that reads `upstream` ahead."""

    @abstractmethod
    def early(self) -> int:
        """Return the number of stages that may be opened before their turn."""

    @abstractmethod
    def quick(self) -> bool:
        """Return True if small inputs should be read by the consumer's thread, without a stage."""

    @abstractmethod
    def tried(self, seconds: float) -> None:
        """Record that a small input was read completely by the consumer's thread, in `seconds`."""


class Executor(ABC):
    """Creates stages for segments. All executors yield the same elements in the same order."""

    pinned: str | None = None  # the executor of all parallel steps, regardless of their own setting

    @abstractmethod
    def segment(self, upstream: Stage, transforms: Transforms, settings: SegmentSettings) -> Stage:
        """Return a stage that runs transforms on workers, then an optional batch."""

    @abstractmethod
    def ahead(self, upstream: Stage, *, max_elements: int, label: str, where: str | None, depth: int) -> Stage:
        """Return a stage that reads `upstream` ahead by up to `max_elements` (-1: limited by bytes only)."""

    @abstractmethod
    def reader(self, *, at_once: int, cycle_length: int, label: str, where: str | None, depth: int) -> StageReader:
        """Return a reader for the inputs of an interleave, `at_once` of them in parallel (-1: chosen by AUTOTUNE)."""

    @abstractmethod
    def inline(self) -> Executor:
        """Return an executor for elements computed outside of the run, in the caller's thread. It can be pickled."""

    @abstractmethod
    def run_all(self, transforms: Transforms, executor: str = "auto") -> RunAll:
        """Return a function that runs transforms without parallel calls, by the consumer or a worker process."""
