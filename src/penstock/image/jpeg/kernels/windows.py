"""What files decoded side by side have: windows into their coded bits, and tables that files with the same codes share.

A window has some kilobytes of coded bits, without the zeros put in behind 0xFF. A position is the address of a bit:
that of its byte in the window, times 8.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compiled.kernel import helper, maker, rarely
from penstock.image.jpeg.kernels.bits import SEVERAL, ZERO, allow, at_marker, byte, copy_eight, copy_several
from penstock.image.jpeg.kernels.codes import KEPT, LOOK
from penstock.image.jpeg.kernels.headers import AC, COMPONENTS, DC, EOI
from penstock.image.jpeg.kernels.looks import (
    FIRST_LOOK,
    LONGER,
    LOOKED,
    first_table,
    long_table,
    look_table,
    near_table,
)
from penstock.image.jpeg.kernels.planes import make_tables, share_tables

AHEAD = 2048  # bytes that may be read behind LIMIT, before which a unit begins; it uses at most 1485
_ROOM = 8192
_WINDOW = _ROOM + AHEAD + 5 * 64  # lanes that are as far must not be at addresses that caches take for alike
_NEXT, _END, _FILLED, LIMIT, _LAST = 0, 1, 2, 3, 4  # of each lane; behind LIMIT, a window has to be filled
_NEVER = 1 << 62


@maker
def new_windows(lanes: int) -> Any:
    """Memory for so many lanes: bytes, and numbers."""
    rarely()
    memory = np.zeros(lanes * _WINDOW, np.uint8)
    allow(memory.ctypes.data, memory.size)
    return memory, np.zeros((5, lanes), np.int64)


@helper
def open_window(lane: int, start: int, end: int, windows: Any) -> Any:
    """The position of the first bit of the data from address `start` on."""
    memory, numbers = windows
    begin = memory.ctypes.data + lane * _WINDOW
    numbers[_NEXT, lane], numbers[_END, lane], numbers[_FILLED, lane] = start, end, begin
    return refill(lane, begin << 3, windows)


@helper
def close_window(lane: int, windows: Any) -> Any:
    """A position for a lane without data, where it may stay."""
    memory, numbers = windows
    numbers[LIMIT, lane] = _NEVER
    return (memory.ctypes.data + lane * _WINDOW) << 3


@helper
def is_beyond(lane: int, position: int, windows: Any) -> Any:
    """Whether there are no bits any more behind which a lane could be."""
    last = windows[1][_LAST, lane]
    return last and position > last


@helper
def refill(lane: int, position: int, windows: Any) -> Any:
    """Move what a lane did not use to its window's beginning, and fill it; the position there."""
    memory, numbers = windows
    base = lane * _WINDOW
    begin = memory.ctypes.data + base
    unused = (position >> 3) - begin
    unused = unused if unused >= 8 else 0
    to = numbers[_FILLED, lane] - begin - unused
    for i in range(0, to if unused else 0, 8):
        copy_eight(begin + unused + i, begin + i)
    at, end = numbers[_NEXT, lane], numbers[_END, lane]
    is_whole = False
    while to < _ROOM and not is_whole:
        if at + SEVERAL <= end:
            plain = copy_several(at, begin + to)
            if plain == SEVERAL:
                at += SEVERAL
                to += SEVERAL
                continue
            at += plain
            to += plain
        # Data, if it is not 0xFF or a zero follows, which was put in; else it is a marker.
        if at < end and (byte(at) != 0xFF or (at + 1 < end and byte(at + 1) == 0)):
            memory[np.uint64(base + to)] = byte(at)
            at += 2 if byte(at) == 0xFF else 1
            to += 1
        else:
            is_whole = True
    for i in range(AHEAD if is_whole else 0):
        memory[np.uint64(base + to + i)] = 0
    numbers[_NEXT, lane], numbers[_FILLED, lane] = at, begin + to
    numbers[_LAST, lane] = (begin + to) << 3 if is_whole else 0
    numbers[LIMIT, lane] = (begin + to) << 3 if is_whole else (begin + to - AHEAD) << 3
    return position - (unused << 3)


@helper
def is_at_end(lane: int, position: int, windows: Any) -> Any:
    """Whether all bits were used, and the file ends behind them."""
    _, numbers = windows
    last = numbers[_LAST, lane]
    if last < position:
        return False
    return at_marker(numbers[_NEXT, lane], numbers[_END, lane], np.uint64(last - position), ZERO, EOI)


@maker
def new_sets(count: int) -> Any:
    """Memory for so many sets of tables: those of `new_tables`, what to look up, and how many files use each."""
    rarely()
    made_of, entries = np.zeros((count, 6, KEPT + 1), np.int64), np.empty(count * 6 << LOOK, np.int64)
    limits, shifts = np.empty((count, 6, 17), np.int64), np.empty((count, 6, 17), np.int64)
    firsts, nears = np.empty(count * 3 << FIRST_LOOK, np.int16), np.empty(count * 3 << LOOK, np.int32)
    skips = np.empty((count * 3 + 1) << LOOKED, np.uint16)
    skips[count * 3 << LOOKED :] = 0
    longs, ends = np.empty(count * 3 * LONGER, np.uint16), np.zeros((count, 3), np.int64)
    return made_of, entries, limits, shifts, firsts, nears, skips, longs, ends, np.zeros(count, np.int64)


@helper
def entries_at(number: int, table: int) -> int:
    """Where a table of a set begins in the entries of all of them."""
    return (number * 6 + table) << LOOK


@helper
def _fits(start: int, header: Any, used: Any, made_of: Any) -> bool:
    """Whether a set was made of the codes of a file."""
    rarely()
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


@helper
def take_set(start: int, header: Any, factors: Any, used: Any, sets: Any) -> Any:
    """The number of a set for a file, which is made if there is none, until `release`; -1 if the file has no codes.

    There must be a set that nobody uses. `used` is as `make_tables` leaves it, and `factors` is memory for that.
    """
    rarely()
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


@helper
def release(number: int, sets: Any) -> None:
    """A file does not need its set any more."""
    sets[9][number] -= 1
