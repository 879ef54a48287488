"""BlockSource: elements that are in memory as a Block, as a source; what the data set of a window is read from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from penstock.block.block import Block
from penstock.block.fixed import fixed_column
from penstock.sources.indexed import IndexedSource


@dataclass(frozen=True, eq=False)
class BlockSource(IndexedSource):
    """The elements of one Block, with their origins. The Block is read again and again: see `read_only`."""

    holds_spec: ClassVar[bool] = True
    block: Block = field(repr=False)
    name: str

    @property
    def label(self) -> str:
        return self.name

    @property
    def spec(self) -> Any:
        return self.block.structure.build(self.block.specs())

    @property
    def cardinality(self) -> int:
        return self.block.size

    def rows(self, start: int, stop: int) -> Block:
        return self.block.slice(start, stop)

    def rows_at(self, indices: np.ndarray) -> Block:
        return self.block.take(indices)


def read_only(block: Block) -> Block:
    """The same elements in arrays that nobody can write through, without a copy."""
    return block.with_columns(block.structure, [fixed_column(column) for column in block.columns])
