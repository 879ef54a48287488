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
    kinds = rows[:, :1]
    if (kinds > 4).any():
        return False
    columns = stride // step
    whole = np.zeros((height + 1, columns + 1, step), np.int16)  # a row and a column of zeros before the first
    whole[1:, 1:] = rows[:, 1:].reshape(height, columns, step)
    pixels = whole.reshape(-1, step)
    nothing = np.int16(0)
    for diagonal in range(height + columns - 1):
        first = max(0, diagonal - columns + 1)
        count = min(height, diagonal + 1) - first
        at = (first + 1) * (columns + 1) + diagonal - first + 1
        end = at + (count - 1) * columns + 1  # a row down and one to the left is `columns` further
        left, up = pixels[at - 1 : end - 1 : columns], pixels[at - columns - 1 : end - columns - 1 : columns]
        corner = pixels[at - columns - 2 : end - columns - 2 : columns]
        here = pixels[at:end:columns]
        guesses = (nothing, left, up, (left + up) >> 1, _nearest(left, up, corner))
        here += kinds[first : first + count].choose(guesses)
        here &= 255
    out[: height * stride] = whole[1:, 1:].reshape(-1)
    return True


def _nearest(left: Any, up: Any, corner: Any) -> Any:
    """Of a byte's neighbours the one nearest to left + up - corner: Paeth's filter."""
    from_left, from_up = up - corner, left - corner
    to_left, to_up, to_corner = np.abs(from_left), np.abs(from_up), np.abs(from_left + from_up)
    return np.where(to_left <= np.minimum(to_up, to_corner), left, np.where(to_up <= to_corner, up, corner))
