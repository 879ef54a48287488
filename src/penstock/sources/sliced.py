"""SlicedSource: some of the elements of an indexed source, in their order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.block.block import Block
from penstock.sources.indexed import IndexedSource


@dataclass(frozen=True)
class SlicedSource(IndexedSource):
    """`inner[start:stop:step]`, with what Python means by it for numbers that are not negative.

    The length of the inner source is asked for when it is needed, and not before.
    """

    inner: IndexedSource
    start: int
    stop: int | None = None
    step: int = 1

    @property
    def label(self) -> str:
        stop = "" if self.stop is None else str(self.stop)
        step = "" if self.step == 1 else f":{self.step}"
        return f"{self.inner.label}[{self.start or ''}:{stop}{step}]"

    @property
    def spec(self) -> Any:
        return self.inner.spec

    @property
    def numbers(self) -> range:
        """The numbers that the elements have in the inner source."""
        return range(self.inner.count())[self.start : self.stop : self.step]

    @property
    def cardinality(self) -> int:
        return len(self.numbers)

    def rows(self, start: int, stop: int) -> Block:
        if self.step == 1:
            return self.inner.rows(self.start + start, self.start + stop)
        return self.rows_at(np.arange(start, stop))

    def rows_at(self, indices: np.ndarray) -> Block:
        return self.inner.rows_at(self.start + indices * self.step)
