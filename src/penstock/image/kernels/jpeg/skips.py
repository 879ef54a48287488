"""Tables that tell how far to go on when coefficients are not needed: of as many codes as the bits looked at hold.

An entry's lowest six bits say how many bits the codes use; then, at FAR, by how much the position in the block
advances, and at OVER whether the block has ended. Of the last code only the code itself must lie in the bits looked at,
not its value. An entry that uses nothing, for a code that is longer or that there is not, is OVER too: added to the
position it gives 64 or more, as what goes past the end of the block does, so that one comparison finds all three.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from penstock.image.kernels.jpeg.bits import FILLED
from penstock.image.kernels.jpeg.codes import KEPT, SYMBOLS

SKIP_LOOK = 12
SKIP_LOOKS = 4  # that one filling of bits is enough for
MOST = FILLED // SKIP_LOOKS  # bits that an entry may use
FAR, OVER = 6, 12

_INSIDE = (1 << SKIP_LOOK) - 1


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
    single = np.full(1 << SKIP_LOOK, 1 << OVER, np.int16)
    lengths = np.zeros(1 << SKIP_LOOK, np.int8)  # of the code alone
    code, symbol = 0, SYMBOLS
    for length in range(1, SKIP_LOOK + 1):
        for _ in range(kept[length - 1]):
            run, size = kept[symbol] >> 4, kept[symbol] & 15
            if length + size <= MOST:
                ends = size == 0 and run != 15
                entry = 1 << OVER | length if ends else (run + 1) << FAR | (length + size)
                rest = SKIP_LOOK - length
                for i in range(code << rest, (code + 1) << rest):
                    single[i] = entry
                    lengths[i] = length
            code += 1
            symbol += 1
        code <<= 1
    base = component << SKIP_LOOK
    for i in range(1 << SKIP_LOOK):
        entry = np.int64(single[i])
        used = entry & 63
        while used < SKIP_LOOK and entry >> OVER == 0:
            behind = (i << used) & _INSIDE
            more = np.int64(single[behind])
            if more & 63 == 0 or used + lengths[behind] > SKIP_LOOK or used + (more & 63) > MOST:
                break
            if (entry >> FAR) + (more >> FAR & 63) > 63:
                break
            entry += more
            used = entry & 63
        entries[base + i] = entry
