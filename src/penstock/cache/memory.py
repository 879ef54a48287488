"""The memory cache: the Blocks of one complete pass."""

from __future__ import annotations

import threading
from typing import Any

from penstock.block.block import Block
from penstock.block.footprint import Footprints


class MemoryStore:
    """Filled by the first pass that reaches the end, then read by all; passes that stop early leave nothing.

    Thread-safe. Of several passes that fill at the same time the first to end is kept.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blocks: tuple[Block, ...] | None = None
        self._nbytes = 0
        self._account: Any = None

    @property
    def nbytes(self) -> int:
        """Bytes of what is kept."""
        return self._nbytes

    def keep(self, account: Any) -> None:
        """Hold on to the account in which somebody counts these bytes, for as long as they are kept."""
        with self._lock:
            if self._blocks is not None:
                self._account = account

    def blocks(self) -> tuple[Block, ...] | None:
        """What is kept, or None before a pass was complete."""
        return self._blocks

    def commit(self, blocks: list[Block]) -> None:
        """Keep a complete pass of frozen Blocks: every epoch serves the same memory."""
        alive = Footprints()
        for block in blocks:
            alive.add_block(block)
        with self._lock:
            if self._blocks is None:
                self._blocks = tuple(blocks)
                self._nbytes = alive.nbytes

    def clear(self) -> None:
        """Forget everything; the next pass fills again."""
        with self._lock:
            self._blocks = self._account = None
            self._nbytes = 0
