"""ReadRows: neighbouring rows of a file, some of which may have failed, handed on one stretch at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.block.block import Block


class ReadRows:
    """`block` holds the rows that can be used, `failures` the others: (number of the row, its error), ascending.

    Row i begins at byte `offsets[i]`, and the one behind the last at the last of them.
    """

    def __init__(self, block: Block | None, failures: Sequence[tuple[int, Exception]], offsets: np.ndarray) -> None:
        self._block = block
        self._failures = list(reversed(failures))
        self._offsets = offsets
        self._row = 0  # of the file
        self._taken = 0  # of the block

    @property
    def size(self) -> int:
        """Rows that are left."""
        return len(self._offsets) - 1 - self._row

    def take(self, most: int) -> Block:
        """Up to `most` of the rows in front of the next failure, or that failure, raised. There must be one."""
        stop = self._failures[-1][0] if self._failures else len(self._offsets) - 1
        if stop == self._row:
            self._row += 1
            raise self._failures.pop()[1]
        assert self._block is not None
        count = min(most, stop - self._row)
        block = self._block.slice(self._taken, self._taken + count)
        self._row += count
        self._taken += count
        return block

    def place(self) -> int:
        """The byte at which the next row begins."""
        return int(self._offsets[self._row])
