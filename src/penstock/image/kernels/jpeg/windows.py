"""The coded bits of files side by side: a window of some kilobytes for each, without the zeros put in behind 0xFF.

A position is the address of a bit: that of its byte in the window, times 8.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from penstock.compiled.uncounted import uncounted
from penstock.image.kernels.jpeg.bits import SEVERAL, ZERO, at_marker, byte, copy_eight, copy_several
from penstock.image.kernels.jpeg.headers import EOI

AHEAD = 2048  # bytes that may be read behind LIMIT, before which a unit begins; it uses at most 1485
_ROOM = 8192
_WINDOW = _ROOM + AHEAD + 5 * 64  # lanes that are as far must not be at addresses that caches take for alike
_NEXT, _END, _FILLED, LIMIT, _LAST = 0, 1, 2, 3, 4  # of each lane; behind LIMIT, a window has to be filled
_NEVER = 1 << 62


@njit(nogil=True, error_model="numpy")
def new_windows(lanes: int) -> Any:
    """Memory for so many lanes: bytes, and numbers."""
    return np.zeros(lanes * _WINDOW, np.uint8), np.zeros((5, lanes), np.int64)


@uncounted
@njit(nogil=True, error_model="numpy")
def open_window(lane: int, start: int, end: int, windows: Any) -> Any:
    """The position of the first bit of the data from address `start` on."""
    memory, numbers = windows
    begin = memory.ctypes.data + lane * _WINDOW
    numbers[_NEXT, lane], numbers[_END, lane], numbers[_FILLED, lane] = start, end, begin
    return refill(lane, begin << 3, windows)


@uncounted
@njit(nogil=True, error_model="numpy")
def close_window(lane: int, windows: Any) -> Any:
    """A position for a lane without data, where it may stay."""
    memory, numbers = windows
    numbers[LIMIT, lane] = _NEVER
    return (memory.ctypes.data + lane * _WINDOW) << 3


@uncounted
@njit(nogil=True, error_model="numpy")
def is_beyond(lane: int, position: int, windows: Any) -> Any:
    """Whether there are no bits any more behind which a lane could be."""
    last = windows[1][_LAST, lane]
    return last and position > last


@uncounted
@njit(nogil=True, error_model="numpy")
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


@uncounted
@njit(nogil=True, error_model="numpy")
def is_at_end(lane: int, position: int, windows: Any) -> Any:
    """Whether all bits were used, and the file ends behind them."""
    _, numbers = windows
    last = numbers[_LAST, lane]
    if last < position:
        return False
    return at_marker(numbers[_NEXT, lane], numbers[_END, lane], np.uint64(last - position), ZERO, EOI)
