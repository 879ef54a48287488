"""Looks at the coded bits of LANES files in turn, as in `looks`, where values of coefficients are needed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from penstock.compiled.uncounted import uncounted
from penstock.image.kernels.jpeg.codes import ALONE, BEYOND, FIRST, LAST, LOOK, STEP, SYMBOLS, ZEROS
from penstock.image.kernels.jpeg.looks import ENDED, bits_at
from penstock.image.kernels.jpeg.places import PLACES

FIRST_LOOK = 11  # bits that entries for first coefficients are for
FIRST_SHORT = np.uint64(64 - FIRST_LOOK)
LOOKS = 3  # that one reading of bits is enough for
_SHORT = np.uint64(64 - LOOK)
# An entry is as in `codes`, and at _LAST_AT it says where the last coefficient is.
_LAST_AT = ALONE
_NOWHERE = 128 << _LAST_AT | 128 << ZEROS
_WAITS, _ENDS = _NOWHERE, 1 << FIRST | _NOWHERE


@njit(nogil=True, error_model="numpy")
def near_table(entries: Any, nears: Any) -> None:
    """Make a table of 1 << LOOK entries for needed coefficients, of the AC entries of `codes`."""
    for i in range(1 << LOOK):
        entry = entries[i]
        used, step, zeros = entry & 63, (entry >> STEP) & 255, (entry >> ZEROS) & 15
        last = step - 1
        if used and step > BEYOND:  # a coefficient, and the end
            used, step, last = (entry >> ALONE) & 63, zeros + 1, zeros
            entry = entry & 0xFFFF_FFFF_FFFF | ((entry >> FIRST) & 0xFFFF) << LAST
        if used == 0:
            nears[i] = _WAITS
        elif step == BEYOND:
            nears[i] = _ENDS
        else:
            nears[i] = (entry >> FIRST) << FIRST | last << _LAST_AT | step << STEP | zeros << ZEROS | used


@njit(nogil=True, error_model="numpy")
def first_table(kept: Any, firsts: Any) -> None:
    """Make a table of 1 << FIRST_LOOK entries for the DC codes that `codes.prepare` keeps.

    An entry's lowest four bits say how many the code and its difference use, and the others are the difference.
    """
    firsts[:] = 0
    code, symbol = 0, SYMBOLS
    for length in range(1, FIRST_LOOK + 1):
        for _ in range(kept[length - 1]):
            size = kept[symbol]
            rest = FIRST_LOOK - length - size
            for value in range(1 << size if rest >= 0 else 0):
                number = value if size == 0 or value >> (size - 1) else value - (1 << size) + 1
                begin = (code << size | value) << rest
                firsts[begin : begin + (1 << rest)] = number << 4 | (length + size)
            code += 1
            symbol += 1
        code <<= 1


@uncounted
@njit(nogil=True, error_model="numpy", forceinline=True)
def _keep(where: Any, place: Any, entry: Any, coefficients: Any) -> None:
    """Put the values of an entry to their places; those that are not needed, or not there, to UNUSED."""
    first, last = np.uint64(place + ((entry >> ZEROS) & 255)), np.uint64(place + ((entry >> _LAST_AT) & 255))
    coefficients[where + np.uint64(PLACES[first])] = entry >> FIRST
    coefficients[where + np.uint64(PLACES[last])] = entry >> LAST


@uncounted
@njit(nogil=True, error_model="numpy", forceinline=True)
def _stopped(lane: int, used: Any, place: Any, entry: Any, end: int, positions: Any, at: Any) -> Any:
    """Let a lane be where its looks led; whether it waits there, as a bit."""
    if at[lane] == ENDED:
        return 0
    if at[lane] == 0 or place > 63:
        return 1 << lane
    ends = entry == _ENDS
    positions[lane] += used + (end if ends else 0)
    at[lane] = ENDED if ends else place
    return 1 << lane if entry == _WAITS else 0


@uncounted
@njit(nogil=True, error_model="numpy", forceinline=True)
def look_near(
    positions: Any, at: Any, tables: Any, ends: Any, entries: Any, row: int, where: Any, coefficients: Any
) -> Any:
    """Go on by some looks in all lanes, and keep the values: the lanes that wait for a code by itself, a bit each.

    Places in a block are those of PLACES from `row` on, and `where` is each lane's block. A lane that is behind its
    block stays there. One that has not read its first coefficient waits, too, and its block holds nothing of worth.
    """
    b0, b1, b2, b3 = bits_at(positions[0]), bits_at(positions[1]), bits_at(positions[2]), bits_at(positions[3])
    t0, t1, t2, t3 = np.uint64(tables[0]), np.uint64(tables[1]), np.uint64(tables[2]), np.uint64(tables[3])
    w0, w1, w2, w3 = np.uint64(where[0]), np.uint64(where[1]), np.uint64(where[2]), np.uint64(where[3])
    k0, k1, k2, k3 = row + at[0], row + at[1], row + at[2], row + at[3]
    s0 = s1 = s2 = s3 = e0 = e1 = e2 = e3 = np.int64(0)
    for _ in range(LOOKS):
        e0, e1 = entries[t0 + (b0 >> _SHORT)], entries[t1 + (b1 >> _SHORT)]
        e2, e3 = entries[t2 + (b2 >> _SHORT)], entries[t3 + (b3 >> _SHORT)]
        _keep(w0, k0, e0, coefficients)
        _keep(w1, k1, e1, coefficients)
        _keep(w2, k2, e2, coefficients)
        _keep(w3, k3, e3, coefficients)
        k0, k1 = k0 + ((e0 >> STEP) & 255), k1 + ((e1 >> STEP) & 255)
        k2, k3 = k2 + ((e2 >> STEP) & 255), k3 + ((e3 >> STEP) & 255)
        s0, s1, s2, s3 = s0 + (e0 & 63), s1 + (e1 & 63), s2 + (e2 & 63), s3 + (e3 & 63)
        b0, b1 = b0 << np.uint64(e0 & 63), b1 << np.uint64(e1 & 63)
        b2, b3 = b2 << np.uint64(e2 & 63), b3 << np.uint64(e3 & 63)
    return (
        _stopped(0, s0, k0 - row, e0, ends[0], positions, at)
        | _stopped(1, s1, k1 - row, e1, ends[1], positions, at)
        | _stopped(2, s2, k2 - row, e2, ends[2], positions, at)
        | _stopped(3, s3, k3 - row, e3, ends[3], positions, at)
    )


@uncounted
@njit(nogil=True, error_model="numpy", forceinline=True)
def look_near_alone(
    lane: Any, positions: Any, at: Any, tables: Any, ends: Any, entries: Any, row: int, where: Any, coefficients: Any
) -> Any:
    """`look_near` in one lane."""
    bits, table, to, place = bits_at(positions[lane]), np.uint64(tables[lane]), np.uint64(where[lane]), row + at[lane]
    used = entry = np.int64(0)
    for _ in range(LOOKS):
        entry = entries[table + (bits >> _SHORT)]
        _keep(to, place, entry, coefficients)
        place += (entry >> STEP) & 255
        used += entry & 63
        bits <<= np.uint64(entry & 63)
    return _stopped(lane, used, place - row, entry, ends[lane], positions, at)
