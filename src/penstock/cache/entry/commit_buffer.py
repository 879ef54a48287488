"""CommitBuffer: elements that are committed together."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.block.block import Block
from penstock.block.spec import LeafSpec
from penstock.cache.alike import Kept
from penstock.cache.column_buffer import ColumnBuffer
from penstock.cache.writer import by_shard, waiting_of

_BLOCK = 1 << 10  # bytes that a Block costs beside its elements


class CommitBuffer:
    """Elements by their shards, and the state of the input behind them. `nbytes` is what they cost.

    Some `expected` bytes will come.
    """

    def __init__(self, expected: int) -> None:
        self.nbytes = 0
        self.state: Any = None
        self._expected = expected
        self._shards: dict[int, ColumnBuffer] = {}

    def add(self, block: Block, specs: list[LeafSpec], shards: np.ndarray | None, state: Any) -> None:
        """The next elements, of these shards (0). If this is interrupted, what is here is of no use any more."""
        for shard, part in by_shard(block, shards):
            if shard not in self._shards:
                self._shards[shard] = waiting_of(shards, part, self._expected)
            self._shards[shard].add(part, specs)
        self.state = state
        self.nbytes += block.nbytes + _BLOCK

    def shards(self) -> dict[int, list[Kept]]:
        """The elements of each shard."""
        return {shard: waiting.kept() for shard, waiting in self._shards.items()}
