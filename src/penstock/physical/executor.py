"""Executor: who runs the parts of a plan that can run apart from the consumer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.physical.stage import Stage
from penstock.physical.transform import RunAll, Transform


@dataclass(frozen=True, slots=True)
class BatchTask:
    """A batch to be filled by the workers of a segment."""

    size: int
    drop_remainder: bool
    label: str
    where: str | None


class Reader(ABC):
    """Reads stages that stand side by side ahead of their one consumer."""

    @abstractmethod
    def ahead(self, upstream: Stage) -> Stage:
        """One of them, to be read ahead."""

    @abstractmethod
    def early(self) -> int:
        """How many of them may be opened before their turn, as of now."""

    @abstractmethod
    def quick(self) -> bool:
        """Whether whoever asks for their elements reads them, as of now, so that small ones need no stage."""

    @abstractmethod
    def tried(self, seconds: float) -> None:
        """A small one was read so, all of it, which took so long."""


class Executor(ABC):
    """Makes stages for segments. Whatever it makes gives the same elements in the same order."""

    pinned: str | None = None  # the executor of all parallel steps, whatever they ask for

    @abstractmethod
    def segment(
        self,
        upstream: Stage,
        transforms: Sequence[Transform],
        *,
        parallelism: int,
        ordered: bool,
        depth: int,
        batch: BatchTask | None = None,
        executor: str = "auto",
        epoch: int = 0,
    ) -> Stage:
        """Transforms that up to `parallelism` workers run at once (-1: as many as help), then perhaps a batch.

        `epoch` is the pass, from which its functions draw. `executor` is the user's word on where: "thread", "process",
        "inline" for the thread that asks, or "auto" for what turns out to be faster.
        """

    @abstractmethod
    def ahead(self, upstream: Stage, *, max_elements: int, label: str, where: str | None, depth: int) -> Stage:
        """The upstream read ahead of its consumer by up to `max_elements` (-1: bounded in bytes only)."""

    @abstractmethod
    def reader(self, *, at_once: int, cycle_length: int, label: str, where: str | None, depth: int) -> Reader:
        """What reads the inputs of an interleave ahead, `at_once` of them at the same time (-1: as many as help)."""

    @abstractmethod
    def inline(self) -> Executor:
        """One for what is made beside the run, in the thread that asks. It can be pickled."""

    @abstractmethod
    def run_all(self, transforms: Sequence[Transform], executor: str = "auto") -> RunAll:
        """What takes Blocks through transforms that are not parallel: the puller, or a worker process."""
