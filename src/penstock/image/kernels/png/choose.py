"""The filter of each of PNG's rows chosen and applied: the numbers of `encode`'s plain way, compiled.

Imported inside functions only: numba takes a third of a second to load.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compiled.kernel import helper, inlined, kernel, short_kernel

_FILTERS = 5


@inlined
def _paeth(left: Any, up: Any, corner: Any) -> Any:
    to_left, to_up, to_corner = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
    if to_left <= to_up and to_left <= to_corner:
        return left
    return up if to_up <= to_corner else corner


@inlined
def _guess(kind: int, left: Any, up: Any, corner: Any) -> Any:
    """What a filter guesses for a byte from its neighbours."""
    if kind == 0:
        return np.int32(0)
    if kind == 1:
        return left
    if kind == 2:
        return up
    if kind == 3:
        return (left + up) >> 1
    return _paeth(left, up, corner)


@helper
def _row(above: Any, row: Any, stride: int, kind: int, out: Any) -> Any:
    """The differences of a row under one filter, into out[1:]; the sum of their absolute values, as signed bytes."""
    cost = 0
    for x in range(row.size):
        left = np.int32(row[x - stride]) if x >= stride else np.int32(0)
        corner = np.int32(above[x - stride]) if x >= stride else np.int32(0)
        difference = (np.int32(row[x]) - _guess(kind, left, np.int32(above[x]), corner)) & 255
        out[1 + x] = np.uint8(difference)
        cost += difference if difference < 128 else 256 - difference
    return cost


@helper
def _choose(rows: Any, stride: int, best: Any, tried: Any) -> None:
    height, width = rows.shape
    above = np.zeros(width, np.uint8)
    for y in range(height):
        least = np.int64(-1)
        for kind in range(_FILTERS):
            cost = _row(above, rows[y], stride, kind, tried)
            if least < 0 or cost < least:
                least = cost
                tried[0] = kind
                best[y, :] = tried
        above = rows[y]


@kernel
def choose(rows: Any, stride: int, best: Any, tried: Any) -> None:
    """Write each of `rows` into `best`, the number of its filter first; `tried` is room for one row of `best`."""
    _choose(rows, stride, best, tried)


@short_kernel
def choose_short(rows: Any, stride: int, best: Any, tried: Any) -> None:
    """As `choose`, for small pictures."""
    _choose(rows, stride, best, tried)


def warm_up() -> None:
    """Compile for all pictures: the types are always the same."""
    for chosen in (choose, choose_short):
        chosen(np.zeros((1, 1), np.uint8), 1, np.zeros((1, 2), np.uint8), np.zeros(2, np.uint8))
