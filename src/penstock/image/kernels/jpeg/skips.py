"""Tables that tell how far to go on when coefficients are not needed: of as many codes as the bits looked at hold.

An entry says how many of the next SKIP_LOOK bits are used, 0 if they are too few for a code; at FAR by how much the
position in the block advances; and at OVER whether the block has ended.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from penstock.image.kernels.jpeg.bits import FILLED
from penstock.image.kernels.jpeg.codes import KEPT, SYMBOLS

SKIP_LOOK = 12
SKIP_LOOKS = FILLED // SKIP_LOOK
FAR, OVER = 4, 12


@njit(nogil=True, error_model="numpy")
def new_skips() -> Any:
    """Memory for the AC tables of three components: what they were made of, and entries."""
    return np.zeros((3, KEPT + 1), np.int64), np.zeros(3 << SKIP_LOOK, np.int16)


@njit(nogil=True, error_model="numpy")
def prepare_skips(component: int, made_of: Any, skips: Any) -> None:
    """Make the table of a component for the codes `made_of` tells of, unless it was made of them before."""
    kept, entries = skips[0][component], skips[1]
    same = True
    for i in range(KEPT + 1):
        same = same and kept[i] == made_of[i]
        kept[i] = made_of[i]
    if same:
        return
    single = np.zeros(1 << SKIP_LOOK, np.int16)
    code, symbol = 0, SYMBOLS
    for length in range(1, SKIP_LOOK + 1):
        for _ in range(kept[length - 1]):
            run, size = kept[symbol] >> 4, kept[symbol] & 15
            if length + size <= SKIP_LOOK:
                ends = size == 0 and run != 15
                entry = 1 << OVER | length if ends else (run + 1) << FAR | (length + size)
                rest = SKIP_LOOK - length
                for i in range(code << rest, (code + 1) << rest):
                    single[i] = entry
            code += 1
            symbol += 1
        code <<= 1
    base = component << SKIP_LOOK
    for i in range(1 << SKIP_LOOK):
        entry = np.int64(single[i])
        used = entry & 15
        while used and entry >> OVER == 0 and (entry >> FAR) < 64:
            more = np.int64(single[(i << used) & ((1 << SKIP_LOOK) - 1)])
            if more & 15 == 0 or used + (more & 15) > SKIP_LOOK:
                break
            used += more & 15
            entry += more
        entries[base + i] = entry
