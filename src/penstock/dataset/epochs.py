"""Epochs set by `set_epoch`, in memory that all processes of a program share."""

from __future__ import annotations

import itertools
import os
from typing import Any

import numpy as np

from penstock.block.shared_memory import created, mapped

_ROWS = 1 << 16  # two data sets share a row if their numbers differ by a multiple of this; the later one gets the row
_BYTES = 32 * _ROWS  # pages are allocated when they are written
_MARKED = 9  # the read whose index is stored. Loaders reach it, but few programs look at so many elements by hand first
_numbers = itertools.count(1)


def new_number() -> int:
    """Return a number that no other data set of this program has."""
    return os.getpid() << 32 | next(_numbers)


class Epochs:
    """A table with a row for each data set that is read by index.

    The row has its number, its epoch or -1, its count of reads, and the index of read number `_MARKED`.
    A forked process inherits the table. A process started by multiprocessing joins it.
    """

    def __init__(self) -> None:
        self.join(created(_BYTES))

    def join(self, descriptor: int) -> None:
        """Use the table in an open file."""
        self._descriptor = descriptor
        self._rows = mapped(descriptor, _BYTES)[1].view(np.int64).reshape(_ROWS, 4)

    def _row(self, number: int) -> np.ndarray:
        row: np.ndarray = self._rows[number % _ROWS]
        if row[0] != number:
            row[:] = number, -1, 0, -1
        return row

    def get(self, number: int) -> int | None:
        """Return the epoch that `set_epoch` set last, in any process, or None."""
        epoch = int(self._row(number)[1])
        return None if epoch < 0 else epoch

    def set(self, number: int, epoch: int) -> None:
        """Set the epoch of a data set."""
        self._row(number)[1] = epoch

    def repeats(self, number: int, index: int, size: int) -> bool:
        """Count a read of an element; return True if some of the `size` elements have been read twice.

        A loader over a part of the elements, such as torch's `Subset`, never makes `size` reads in an iteration.
        """
        row = self._row(number)
        row[2] = reads = int(row[2]) + 1  # two processes at the same time may count one read
        again = reads == size + 1 or row[3] == index
        if reads == _MARKED:
            row[3] = index
        return again

    def handle(self, number: int) -> tuple[int, Any] | None:
        """Return the number of a data set and the table for a process that multiprocessing is starting, or None."""
        from multiprocessing import context, reduction

        return None if context.get_spawning_popen() is None else (number, reduction.DupFd(self._descriptor))


EPOCHS = Epochs()
