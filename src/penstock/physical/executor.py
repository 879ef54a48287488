"""Executor: who runs the parts of a plan that can run apart from the consumer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.physical.stage import Stage
from penstock.physical.transform import Transform


@dataclass(frozen=True, slots=True)
class BatchTask:
    """A batch to be filled by the workers of a segment."""

    size: int
    drop_remainder: bool
    label: str
    where: str | None


class Executor(ABC):
    """Makes stages for segments. Whatever it makes gives the same elements in the same order."""

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
    ) -> Stage:
        """Transforms that up to `parallelism` workers run at once (-1: as many as help), then perhaps a batch."""

    @abstractmethod
    def ahead(
        self, upstream: Stage, *, max_elements: int, label: str, where: str | None, depth: int, share: int = 1
    ) -> Stage:
        """The upstream read ahead of its consumer by up to `max_elements` (-1: bounded in bytes only).

        `share` is the number of such stages that stand side by side and divide one byte bound.
        """
