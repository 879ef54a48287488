"""Pool: elements set aside one Block at a time and taken out in any grouping."""

from __future__ import annotations

import numpy as np

from penstock.block.block import Block
from penstock.block.rows import Rows

_NO_LIMIT = 1 << 62  # slots


class Pool:
    """Elements by slot number, with the position in the stream that each had; a slot is used again once it is free."""

    def __init__(self) -> None:
        self._rows = Rows(_NO_LIMIT)
        self._positions = np.empty(0, np.int64)
        self._free: list[np.ndarray] = []
        self._reserved = 0

    @property
    def nbytes(self) -> int:
        """Bytes of what is set aside, and of slots that are free."""
        return self._rows.nbytes

    def put(self, block: Block, positions: np.ndarray) -> np.ndarray:
        """Set a Block's elements aside; the slots they are in."""
        slots = self._slots(block.size)
        self._rows.put(slots, block)
        self._positions[slots] = positions
        return slots

    def take(self, slots: np.ndarray) -> Block:
        """The elements in these slots, which are free from now on."""
        found = self._rows.gather(slots)
        self.free(slots)
        return found

    def free(self, slots: np.ndarray) -> None:
        self._free.append(slots)

    def position(self, slot: int) -> int:
        return int(self._positions[slot])

    def _slots(self, count: int) -> np.ndarray:
        found: list[np.ndarray] = []
        while count and self._free:
            part = self._free.pop()
            if len(part) > count:
                self._free.append(part[count:])
                part = part[:count]
            found.append(part)
            count -= len(part)
        if count:
            found.append(np.arange(self._reserved, self._reserved + count))
            self._reserved += count
            if self._reserved > len(self._positions):
                grown = np.zeros(2 * self._reserved, np.int64)
                grown[: len(self._positions)] = self._positions
                self._positions = grown
        return found[0] if len(found) == 1 else np.concatenate(found)
