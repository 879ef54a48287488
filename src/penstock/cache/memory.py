"""The memory cache: the Blocks of one complete pass."""

from __future__ import annotations

from typing import Any

from penstock.block.block import Block
from penstock.forked import new_lock


class MemoryStore:
    """Filled by the first pass that reaches the end, then read by all; passes that stop early leave nothing.

    Thread-safe. Of several passes that fill at the same time the first to end is kept. One that is `silent` is not
    worth a word when a pass leaves it empty. What comes to more than `most` bytes is not kept.
    """

    def __init__(self, *, silent: bool = False, most: int | None = None) -> None:
        self._lock = new_lock()
        self._blocks: tuple[Block, ...] | None = None
        self._nbytes = 0
        self._account: Any = None
        self._silent = self._told = silent
        self.most = most
        self.overflowed = False  # a pass had more

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy keeps nothing yet: what is kept is no part of what a data set is, and may be large."""
        return _empty, (self._silent, self.most)

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

    def commit(self, blocks: tuple[Block, ...], nbytes: int) -> None:
        """Keep a complete pass of frozen Blocks, which have so many bytes: every epoch serves the same memory."""
        with self._lock:
            if self._blocks is None:
                self._blocks = blocks
                self._nbytes = nbytes

    def tell(self) -> bool:
        """Whether it is to be said that a pass has left nothing: true once."""
        with self._lock:
            told, self._told = self._told, True
            return not told and self._blocks is None

    def clear(self) -> None:
        """Forget everything; the next pass fills again."""
        with self._lock:
            self._blocks = self._account = None
            self._nbytes = 0


def _empty(silent: bool, most: int | None) -> MemoryStore:  # noqa: FBT001 - as pickle calls it
    return MemoryStore(silent=silent, most=most)
