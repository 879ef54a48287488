"""Tables for Huffman codes that tell of two coefficients at once, where the bits looked at hold both.

An entry says what the next LOOK bits begin with, from its lowest bits on: how many of them are used (0 if they are too
few for a coefficient), at ZEROS the zeros before it, at STEP by how much the position in the block advances, at ALONE
the bits of the first coefficient, or of its code if that is all, at FIRST its value, or its size in bits, and at LAST
the value of the last coefficient. The end of a block is an advance BEYOND it. 0 stands for a longer code.

Where coefficients are not needed, other tables tell how far to go on: of as many codes as the bits looked at hold.
An entry's lowest six bits say how many bits the codes use; then, at FAR, by how much the position in the block
advances, and at OVER whether the block has ended. Of the last code only the code itself must lie in the bits looked at,
not its value. An entry that uses nothing, for a code that is longer or that there is not, is OVER too: added to the
position it gives 64 or more, as what goes past the end of the block does, so that one comparison finds all three.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compiled.kernel import helper, maker, rarely
from penstock.image.jpeg.kernels.bits import FILLED, ZERO, byte, signed

LOOK = 10
LOOKS = FILLED // LOOK  # that one filling of bits is enough for
ZEROS, STEP, ALONE, FIRST, LAST = 8, 16, 24, 32, 48
BEYOND = 128

SYMBOLS = 16
KEPT = 272  # the counts of codes of 1 to 16 bits, and up to 256 symbols; behind them, whether the tables are made


@maker
def new_tables() -> Any:
    """Memory for six tables: of DC, then of AC, for three components.

    What they were made of; entries; and by the length of a code, where the codes of the next length begin, as 16 bits,
    and the distance from code to symbol.
    """
    rarely()
    made_of = np.zeros((6, KEPT + 1), np.int64)
    return made_of, np.zeros(6 << LOOK, np.int64), np.zeros((6, 17), np.int64), np.zeros((6, 17), np.int64)


@helper
def prepare(table: int, number: int, tables: Any) -> bool:
    """Make table `number` for the counts and symbols at the address `table`, unless it was made of them before."""
    made_of, entries, limits, shifts = tables
    kept = made_of[number]
    total = 0
    for i in range(16):
        total += byte(table + i)
    same = kept[KEPT] == 1
    for i in range(16 + total):
        same = same and kept[i] == byte(table + i)
        kept[i] = byte(table + i)
    if same:
        return True
    kept[KEPT] = 0
    base = number << LOOK
    for i in range(1 << LOOK):
        entries[base + i] = 0
    code = 0
    symbol = 0
    for length in range(1, 17):
        shifts[number, length] = symbol - code
        for _ in range(kept[length - 1]):
            if code >> length or (number < 3 and kept[SYMBOLS + symbol] > 11):  # a DC symbol is a size alone
                return False
            if length <= LOOK:
                _enter(entries, base, code, length, kept[SYMBOLS + symbol])
            code += 1
            symbol += 1
        limits[number, length] = code << (16 - length)
        code <<= 1
    if number >= 3:
        _join(entries, base)
    kept[KEPT] = 1
    return True


@helper
def _enter(entries: Any, base: int, code: int, length: int, symbol: int) -> None:
    """The entries of all bits that begin with this code."""
    run, size = symbol >> 4, symbol & 15
    rest = LOOK - length
    ends = size == 0 and run != 15
    step = BEYOND if ends else run + 1
    for more in range(1 << rest):
        if size > rest:
            entry = size << FIRST | length << ALONE | run << ZEROS
        else:
            value = more >> (rest - size)
            if size and value >> (size - 1) == 0:
                value -= (1 << size) - 1
            value &= 0xFFFF
            used = length + size
            entry = value << LAST | value << FIRST | used << ALONE | step << STEP | used
            if not ends:
                entry |= run << ZEROS
        entries[base + (code << rest) + more] = entry


@maker
def _join(entries: Any, base: int) -> None:
    """Let entries tell of two coefficients, or of one and the end of the block."""
    single = entries[base : base + (1 << LOOK)].copy()
    for i in range(single.size):
        used, step = single[i] & 63, (single[i] >> STEP) & 255
        if used == 0 or step == BEYOND:
            continue
        second = single[(i << used) & (single.size - 1)]
        more = second & 63
        if more and used + more <= LOOK:
            kept = single[i] & 0xFFFF_FF00_FF00
            entries[base + i] = (
                (second >> LAST) << LAST | kept | (step + ((second >> STEP) & 255)) << STEP | (used + more)
            )


@helper
def long_code(bits: Any, number: int, tables: Any) -> Any:
    """The entry of a code of more than LOOK bits; 0 if there is none."""
    made_of, _, limits, shifts = tables
    ahead = np.int64(bits >> np.uint64(48))
    for length in range(LOOK + 1, 17):
        if ahead < limits[number, length]:
            place = (ahead >> (16 - length)) + shifts[number, length]
            if place < 0 or place > 255:
                return 0
            symbol = made_of[number, SYMBOLS + place]
            return (symbol & 15) << FIRST | length << ALONE | (symbol >> 4) << ZEROS
    return 0


@helper
def single(bits: Any, number: int, tables: Any) -> Any:
    """By itself, what bits begin with: how many it uses, zeros before its value, the value, and whether the block ends.

    No bits are used if there is no such code.
    """
    entry = tables[1][np.uint64(number << LOOK) + (bits >> np.uint64(64 - LOOK))]
    whole = entry & 63 != 0
    if entry == 0:
        entry = long_code(bits, number, tables)
    used, run = (entry >> ALONE) & 63, (entry >> ZEROS) & 15
    if whole:
        return used, run, (entry << 16) >> 48, (entry >> STEP) & 255 == BEYOND
    size = entry >> FIRST
    if size == 0:
        return used, run, 0, run != 15
    return used + size, run, signed(bits << np.uint64(used), np.uint64(size)), False


@helper
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


SKIP_LOOK = 12
SKIP_LOOKS = 4  # that one filling of bits is enough for
MOST = FILLED // SKIP_LOOKS  # bits that an entry may use
FAR, OVER = 6, 12

_INSIDE = (1 << SKIP_LOOK) - 1


@maker
def new_skips() -> Any:
    """Memory for the AC tables of three components: what they were made of, and entries."""
    rarely()
    return np.zeros((3, KEPT + 1), np.int64), np.zeros(3 << SKIP_LOOK, np.int16)


@maker
def prepare_skips(component: int, made_of: Any, skips: Any) -> None:
    """Make the table of a component for the codes `made_of` tells of, unless it was made of them before."""
    rarely()
    kept, entries = skips[0][component], skips[1]
    same = True
    for i in range(KEPT + 1):
        same = same and kept[i] == made_of[i]
        kept[i] = made_of[i]
    if same:
        return
    single = np.empty(1 << SKIP_LOOK, np.int16)
    for i in range(single.size):
        single[i] = 1 << OVER
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
