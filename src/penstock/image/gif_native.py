"""Compiled LZW decoding of GIF, with the results of the plain version, without the GIL."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.native.kernel import kernel

U: Any = np.uint64
S: Any = np.int64
CODES = 4096


@kernel("packed: u8[:], bits: i64, out: w u8[:] -> bool", makes_arrays=True)
def unpack(packed, bits, out):
    """Fill `out` with the numbers of `bits` bits in `packed`. Return False if there are not enough.

    A code is the previous code in its chain, and one more number.
    """
    if bits < 0 or bits > 8:
        return False
    clear = 1 << bits
    prefix = np.zeros(CODES + 1, np.int64)
    last = np.zeros(CODES + 1, np.uint8)
    first = np.zeros(CODES + 1, np.uint8)
    length = np.empty(CODES + 1, np.int64)
    for number in range(length.size):
        length[number] = 1
    for number in range(clear):
        last[number] = number
        first[number] = number
    known, width, before = clear + 2, bits + 1, -1
    waiting, count = U(0), 0
    at, to = 0, 0
    while to < out.size:
        while count < width:
            if at >= packed.size:
                return False
            waiting |= U(packed[U(at)]) << U(count)
            at += 1
            count += 8
        code = S(waiting & ((U(1) << U(width)) - U(1)))
        waiting >>= U(width)
        count -= width
        if code == clear:
            known, width, before = clear + 2, bits + 1, -1
            continue
        if code == clear + 1 or code > known or (code == known and (before < 0 or known == CODES)):
            return False
        if before >= 0 and known < CODES:
            prefix[known] = before
            first[known] = first[before]
            last[known] = first[before] if code == known else first[code]
            length[known] = length[before] + 1
            known += 1
        if known == 1 << width and width < 12:
            width += 1
        size = length[code]
        link = code
        for k in range(size - 1, -1, -1):  # from the end of the chain
            if to + k < out.size:
                out[U(to + k)] = last[U(link)]
            link = prefix[U(link)]
        to += size
        before = code
    return True
