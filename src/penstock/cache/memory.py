"""The memory cache: the Blocks of one complete pass."""

from __future__ import annotations

import threading

from penstock.block.block import Block


class MemoryStore:
    """Filled by the first pass that reaches the end, then read by all; passes that stop early leave nothing.

    Thread-safe. Of several passes that fill at the same time the first to end is kept.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blocks: tuple[Block, ...] | None = None

    def blocks(self) -> tuple[Block, ...] | None:
        """What is kept, or None before a pass was complete."""
        return self._blocks

    def commit(self, blocks: list[Block]) -> None:
        """Keep a complete pass of frozen Blocks: every epoch serves the same memory."""
        with self._lock:
            if self._blocks is None:
                self._blocks = tuple(blocks)

    def clear(self) -> None:
        """Forget everything; the next pass fills again."""
        with self._lock:
            self._blocks = None
