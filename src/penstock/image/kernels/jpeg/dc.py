"""The code of a block's first coefficient, which says by how much it differs from the last block's."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from penstock.image.kernels.jpeg.bits import ZERO, signed
from penstock.image.kernels.jpeg.codes import ALONE, FIRST


@njit(nogil=True, error_model="numpy")
def difference(entry: int, bits: Any, count: Any) -> Any:
    """The difference that bits begin with, and the bits behind it, by the entry of its table or of `long_code`."""
    n = np.uint64(entry & 63)
    value = (entry << 16) >> 48
    if n == ZERO:
        n = np.uint64((entry >> ALONE) & 63)
        bits <<= n
        count -= n
        n = np.uint64(entry >> FIRST)
        value = signed(bits, n) if n != ZERO else 0
    return value, bits << n, count - n
