"""What the two decoders share: the blocks of a unit, and the restarts between units."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from penstock.image.kernels.jpeg.bits import ZERO, at_marker
from penstock.image.kernels.jpeg.headers import ACROSS, COMPONENTS, DOWN, RESTART

MOST_BLOCKS = 6  # of a unit
RST0 = 0xD0
_UNTIL, _DONE = 0, 1  # of `restarts`: units until the next one, and how many there were


@njit(nogil=True, error_model="numpy")
def new_numbers() -> Any:
    """Memory for numbers of each component, or of each block of a unit.

    Each component's tables of DC, then of AC; each block's component, where it lies in a row of units, and how far it
    is to where it lies in the next unit; each component's last DC; and the restarts.
    """
    used, components, begins = np.zeros(6, np.int64), np.zeros(MOST_BLOCKS, np.int64), np.zeros(MOST_BLOCKS, np.int64)
    return used, components, begins, np.zeros(MOST_BLOCKS, np.int64), np.zeros(3, np.int64), np.zeros(2, np.int64)


@njit(nogil=True, error_model="numpy")
def lay_out_unit(header: Any, blocks: int, colour_blocks: int, numbers: Any) -> Any:
    """How many blocks a unit has: those of luma row by row, then one of each colour. No DC and no restart was read."""
    _, components, begins, steps, before, restarts = numbers
    across, down = header[ACROSS], header[DOWN]
    luma = across * down
    for b in range(luma):
        components[b] = 0
        begins[b] = (b // across) * blocks + b % across
        steps[b] = across
    for c in range(header[COMPONENTS] - 1):
        components[luma + c] = c + 1
        begins[luma + c] = down * blocks + c * colour_blocks
        steps[luma + c] = 1
    before[0] = before[1] = before[2] = 0
    restarts[_UNTIL], restarts[_DONE] = header[RESTART], 0
    return luma + header[COMPONENTS] - 1


@njit(nogil=True, error_model="numpy")
def before_unit(at: int, end: int, bits: Any, count: Any, missing: Any, header: Any, before: Any, restarts: Any) -> Any:
    """In a file with restarts, go on behind a marker that is due; the reader's state, and whether it is there."""
    if restarts[_UNTIL] == 0:
        if not at_marker(at, end, count, missing, RST0 + restarts[_DONE] % 8):
            return at, bits, count, missing, False
        at += 2
        bits = count = missing = ZERO
        before[0] = before[1] = before[2] = 0
        restarts[_UNTIL] = header[RESTART]
        restarts[_DONE] += 1
    restarts[_UNTIL] -= 1
    return at, bits, count, missing, True
