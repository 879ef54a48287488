"""What undoing PNG's filters means, in plain numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def unfilter(raw: npt.NDArray[np.uint8], height: int, stride: int, step: int, out: npt.NDArray[np.uint8]) -> bool:
    """Undo the filters of `height` rows of `raw`, each a filter's number and `stride` bytes, into `out`.

    `step` is how many bytes before a byte its neighbour to the left is. False if a filter's number is none. A byte
    needs those to its left, above and between; so all bytes of a diagonal are done at once.

    >>> out = np.empty(4, np.uint8)
    >>> unfilter(np.array([0, 1, 2, 2, 3, 4], np.uint8), 2, 2, 1, out), out.tolist()
    (True, [1, 2, 4, 6])
    """
    rows = raw[: height * (stride + 1)].reshape(height, stride + 1)
    kinds = rows[:, :1].astype(np.int32)
    if (kinds > 4).any():
        return False
    columns = stride // step
    done = np.zeros((height + 1, columns + 1, step), np.int32)  # a row and a column of zeros before the first
    given = rows[:, 1:].reshape(height, columns, step)
    for diagonal in range(height + columns - 1):
        first = max(0, diagonal - columns + 1)
        y = np.arange(first, min(height, diagonal + 1))
        x = diagonal - y
        left, up, corner = done[y + 1, x], done[y, x + 1], done[y, x]
        guess = _guess(kinds[y], left, up, corner)
        done[y + 1, x + 1] = (given[y, x] + guess) & 255
    out[: height * stride] = done[1:, 1:].reshape(-1)
    return True


def _guess(kinds: Any, left: Any, up: Any, corner: Any) -> Any:
    """What filters 0 to 4 add to a byte."""
    estimate = left + up - corner
    to_left, to_up, to_corner = abs(estimate - left), abs(estimate - up), abs(estimate - corner)
    nearest = np.where((to_left <= to_up) & (to_left <= to_corner), left, np.where(to_up <= to_corner, up, corner))
    return np.choose(kinds, (np.zeros_like(left), left, up, (left + up) >> 1, nearest))
