"""Constants that the kernel for JSON Lines and its caller share, and the kernel's powers of ten."""

from __future__ import annotations

from functools import cache

import numpy as np

INT, FLOAT, BOOL, TEXT, LIST, OBJECT = 0, 1, 2, 3, 4, 8  # kinds of values; LIST | INT and so on: flat lists
# Fields of a slot: the kind of the value; the number of its leaf or object; the positions and sizes of the key's bytes
# with the closing quote, in two spellings; 1 if the value may be missing; the least and the greatest integer.
KIND, TO, KEY, SIZE, OTHER_KEY, OTHER_SIZE, DEFAULT, LOW, HIGH = range(9)
TEXTS, ITEMS, MISSING = range(3)  # see `parse`

LEAST_POWER, MOST_POWER = -342, 308  # a number with 19 digits can be a float64 only between these powers of ten


@cache
def powers_of_ten() -> np.ndarray:
    """Return the highest 128 bits of each power, as two words. Negative powers are rounded up (Lemire, section 4)."""
    found = []
    for power in range(LEAST_POWER, MOST_POWER + 1):
        five = 5 ** abs(power)
        size = five.bit_length()
        if power < 0:
            shift = size + 127 if power >= -27 else 2 * size + 128
            five = (1 << shift) // five + 1
            size = five.bit_length()
        five = five << (128 - size) if size <= 128 else five >> (size - 128)
        found += [five >> 64, five & ((1 << 64) - 1)]
    return np.array(found, np.uint64)
