"""ReadRows: neighbouring rows of a file, some of which may have failed, handed on one stretch at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import numpy as np

from penstock.block.block import Block
from penstock.errors import Context, DataLossError, PenstockError, annotate


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


class RowQueue:
    """Rows that were read and not given yet, in stretches; of a file, where errors can name a byte of one."""

    def __init__(self, file: str | None = None) -> None:
        self._file = file
        self._waiting: deque[ReadRows] = deque()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def take(self, most: int) -> Block:
        """As that of the first stretch. There must be a row."""
        first = self._waiting[0]
        try:
            return first.take(most)
        finally:
            if not first.size:
                self._waiting.popleft()

    def place(self) -> int:
        """The byte at which the next row begins."""
        return self._waiting[0].place()

    def put(self, offsets: np.ndarray, parse: Callable[[int, int], ReadRows]) -> None:
        """Add what `parse(start, stop)` makes of neighbouring rows, of which row i begins at byte `offsets[i]`.

        Where it raises, it is asked for fewer of them, down to the one that it raises for: that one has failed, and no
        other, whatever nobody foresaw.
        """
        self._put(0, len(offsets) - 1, offsets, parse)

    def _put(self, start: int, stop: int, offsets: np.ndarray, parse: Callable[[int, int], ReadRows]) -> None:
        try:
            found = parse(start, stop)
        except Exception as raised:
            if stop > start + 1:
                middle = (start + stop) // 2
                self._put(start, middle, offsets, parse)
                self._put(middle, stop, offsets, parse)
                return
            error = unreadable("The row", raised)
            if self._file is not None:
                annotate(error, Context(file=self._file, offset=int(offsets[start])))
            found = ReadRows(None, [(0, error)], offsets[start : stop + 1])
        if found.size:
            self._waiting.append(found)


def unreadable(what: str, raised: Exception) -> Exception:
    """The error for a row whose reading raised something; too little memory is no damage."""
    if isinstance(raised, (PenstockError, MemoryError)):
        return raised
    message = f"{what} cannot be read: {type(raised).__name__}: {raised!s:.200}"
    error = DataLossError(message)
    error.__cause__ = raised
    return error
