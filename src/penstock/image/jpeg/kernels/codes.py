"""Tables for Huffman codes that return two coefficients per lookup, if the looked-up bits contain both.

An entry describes the next LOOK bits. Its lowest bits are the number of used bits (0 if they are too few for a
coefficient). ZEROS has the zeros before the coefficient, and STEP the advance of the position in the block. ALONE has
the bits of the first coefficient, or of its code if the entry has only the code. FIRST has its value, or its size in
bits. LAST has the value of the last coefficient. The end of a block is an advance BEYOND it. 0 stands for a longer
code.
"""

from __future__ import annotations

import numpy as np

from penstock.image.jpeg.kernels import CODES, KEPT, LOOK
from penstock.image.jpeg.kernels.bits import FILLED, ZERO, byte, signed
from penstock.native.kernel import helper, maker

LOOKS = FILLED // LOOK  # lookups per filling of bits
ZEROS, STEP, ALONE, FIRST, LAST = 8, 16, 24, 32, 48
BEYOND = 128

SYMBOLS = 16


@maker
def tables_in(memory):
    """Return the parts of six tables: DC, then AC, for three components. `memory` has CODES numbers, at first zeros.

    The parts are the source of each table, and its entries. For each length of a code, there is the start of the next
    length's codes, as 16 bits, and the distance from code to symbol.
    """
    sources, entries = 6 * (KEPT + 1), 6 << LOOK
    lengths = sources + entries
    limits = lengths + 6 * 17
    return memory[:sources], memory[sources:lengths], memory[lengths:limits], memory[limits:CODES]


@helper
def prepare(table, number, tables):
    """Build table `number` from the counts and symbols at the address `table`, unless it was built from equal ones."""
    made_of, entries, limits, shifts = tables
    kept = made_of[number * (KEPT + 1) : (number + 1) * (KEPT + 1)]
    total = 0
    for i in range(16):
        total += byte(table + i)
    same = kept[KEPT] > 0
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
        shifts[17 * number + length] = symbol - code
        for _ in range(kept[length - 1]):
            if (code + 1) >> length or (number < 3 and kept[SYMBOLS + symbol] > 11):
                return False  # no code has only ones, and a DC symbol is only a size
            if length <= LOOK:
                _enter(entries, base, code, length, kept[SYMBOLS + symbol])
            code += 1
            symbol += 1
        limits[17 * number + length] = code << (16 - length)
        code <<= 1
    if number >= 3:
        _join(entries, base)
    kept[KEPT] = 1
    return True


@helper
def _enter(entries, base, code, length, symbol):
    """Write the entries of all bits that begin with this code."""
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
def _join(entries, base):
    """Extend entries to two coefficients, or to one and the end of the block."""
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
def long_code(bits, number, tables):
    """Return the entry of a code of more than LOOK bits, or 0."""
    made_of, _, limits, shifts = tables
    ahead = np.int64(bits >> np.uint64(48))
    for length in range(LOOK + 1, 17):
        if ahead < limits[17 * number + length]:
            place = (ahead >> (16 - length)) + shifts[17 * number + length]
            if place < 0 or place > 255:
                return 0
            symbol = made_of[number * (KEPT + 1) + SYMBOLS + place]
            return (symbol & 15) << FIRST | length << ALONE | (symbol >> 4) << ZEROS
    return 0


@helper
def difference(entry, bits, count):
    """Return the difference at the start of the bits, and the remaining bits.

    `entry` is the entry of the table or of `long_code`.
    """
    n = np.uint64(entry & 63)
    value = (entry << 16) >> 48
    if n == ZERO:
        n = np.uint64((entry >> ALONE) & 63)
        bits <<= n
        count -= n
        n = np.uint64(entry >> FIRST)
        value = signed(bits, n) if n != ZERO else 0
    return value, bits << n, count - n
