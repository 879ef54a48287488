"""The memory cache stores the Blocks of one complete iteration."""

from __future__ import annotations

from typing import Any

from penstock.block.block import Block
from penstock.forked import new_lock


class MemoryStore:
    """Stores the Blocks of the first complete iteration, for all later iterations. Thread-safe.

    An iteration that stops early stores nothing. If several iterations fill the store at the same time, the store keeps
    the Blocks of the iteration that ends first.

    Args:
        silent: If True, no warning is logged when an iteration leaves the store empty.
        most: Number of bytes. An iteration with more bytes is not stored. None: no limit.
    """

    def __init__(self, *, silent: bool = False, most: int | None = None) -> None:
        self._lock = new_lock()
        self._blocks: tuple[Block, ...] | None = None
        self._nbytes = 0
        self._account: Any = None
        self._silent = self._told = silent
        self.most = most
        self.overflowed = False  # an iteration had more than `most` bytes

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the settings only: the stored Blocks do not define the data set, and may be large."""
        return _empty, (self._silent, self.most)

    @property
    def nbytes(self) -> int:
        """Number of bytes of the stored Blocks."""
        return self._nbytes

    def keep(self, account: Any) -> None:
        """Hold a reference to the account that counts these bytes, as long as the Blocks are stored."""
        with self._lock:
            if self._blocks is not None:
                self._account = account

    def blocks(self) -> tuple[Block, ...] | None:
        """The stored Blocks, or None before the first complete iteration."""
        return self._blocks

    def commit(self, blocks: tuple[Block, ...], nbytes: int) -> None:
        """Store the frozen Blocks of a complete iteration, which have `nbytes` bytes.

        Every later iteration reads the same memory.
        """
        with self._lock:
            if self._blocks is None:
                self._blocks = blocks
                self._nbytes = nbytes

    def tell(self) -> bool:
        """Return True if the caller must warn that an iteration left the store empty. True at most once."""
        with self._lock:
            told, self._told = self._told, True
            return not told and self._blocks is None

    def clear(self) -> None:
        """Remove all Blocks, so that the next iteration fills the store again."""
        with self._lock:
            self._blocks = self._account = None
            self._nbytes = 0


def _empty(silent: bool, most: int | None) -> MemoryStore:  # noqa: FBT001 - pickle passes positional arguments
    return MemoryStore(silent=silent, most=most)
