"""Tables for files side by side: files whose codes are the same, as those of one encoder mostly are, share them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from penstock.compiled.uncounted import uncounted
from penstock.image.kernels.jpeg.bits import byte
from penstock.image.kernels.jpeg.codes import KEPT, LOOK
from penstock.image.kernels.jpeg.headers import AC, COMPONENTS, DC
from penstock.image.kernels.jpeg.looks import LONGER, LOOKED, long_table, look_table
from penstock.image.kernels.jpeg.nears import FIRST_LOOK, first_table, near_table
from penstock.image.kernels.jpeg.planes import make_tables, share_tables


@njit(nogil=True, error_model="numpy")
def new_sets(count: int) -> Any:
    """Memory for so many sets of tables: those of `new_tables`, what to look up, and how many files use each."""
    made_of, entries = np.zeros((count, 6, KEPT + 1), np.int64), np.empty(count * 6 << LOOK, np.int64)
    limits, shifts = np.empty((count, 6, 17), np.int64), np.empty((count, 6, 17), np.int64)
    firsts, nears = np.empty(count * 3 << FIRST_LOOK, np.int16), np.empty(count * 3 << LOOK, np.int32)
    skips = np.empty((count * 3 + 1) << LOOKED, np.uint16)
    skips[count * 3 << LOOKED :] = 0
    longs, ends = np.empty(count * 3 * LONGER, np.uint16), np.zeros((count, 3), np.int64)
    return made_of, entries, limits, shifts, firsts, nears, skips, longs, ends, np.zeros(count, np.int64)


@uncounted
@njit(nogil=True, error_model="numpy")
def entries_at(number: int, table: int) -> int:
    """Where a table of a set begins in the entries of all of them."""
    return (number * 6 + table) << LOOK


@uncounted
@njit(nogil=True, error_model="numpy")
def _fits(start: int, header: Any, used: Any, made_of: Any) -> bool:
    """Whether a set was made of the codes of a file."""
    for kind in range(2):
        for i in range(header[COMPONENTS]):
            number, table = 3 * kind + i, start + header[(AC if kind else DC) + i]
            if used[number] != number:
                continue
            kept = made_of[number]
            symbols = 0
            for j in range(16):
                symbols += byte(table + j)
            if kept[KEPT] != 1:
                return False
            for j in range(16 + symbols):
                if kept[j] != byte(table + j):
                    return False
    return True


@njit(nogil=True, error_model="numpy")
def take_set(start: int, header: Any, factors: Any, used: Any, sets: Any) -> Any:
    """The number of a set for a file, which is made if there is none, until `release`; -1 if the file has no codes.

    There must be a set that nobody uses. `used` is as `make_tables` leaves it, and `factors` is memory for that.
    """
    made_of, entries, limits, shifts, firsts, nears, skips, longs, ends, users = sets
    share_tables(header, used)
    free = -1
    for number in range(users.size):
        if _fits(start, header, used, made_of[number]):
            users[number] += 1
            return number
        if free < 0 and users[number] == 0:
            free = number
    first = entries_at(free, 0)
    tables = made_of[free], entries[first : entries_at(free + 1, 0)], limits[free], shifts[free]
    if not make_tables(start, header, tables, factors, used):
        made_of[free, :, KEPT] = 0
        return -1
    for i in range(header[COMPONENTS]):
        if used[i] == i:
            at = 3 * free + i
            first_table(made_of[free, i], firsts[at << FIRST_LOOK : (at + 1) << FIRST_LOOK])
        if used[3 + i] == 3 + i:
            at, coded = 3 * free + i, entries_at(free, 3 + i)
            near_table(entries[coded : coded + (1 << LOOK)], nears[at << LOOK : (at + 1) << LOOK])
            kept, longer = made_of[free, 3 + i], longs[at * LONGER : (at + 1) * LONGER]
            long_table(kept, limits[free, 3 + i, LOOKED], longer)
            ends[free, i] = look_table(kept, skips[at << LOOKED : (at + 1) << LOOKED])
    users[free] = 1
    return free


@uncounted
@njit(nogil=True, error_model="numpy")
def release(number: int, sets: Any) -> None:
    """A file does not need its set any more."""
    sets[9][number] -= 1
