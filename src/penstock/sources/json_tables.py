"""What the kernel that reads JSON Lines and its caller say by number, and the powers of ten that it takes."""

from __future__ import annotations

from functools import cache

import numpy as np

INT, FLOAT, BOOL, TEXT, LIST, OBJECT = 0, 1, 2, 3, 4, 8  # kinds of values; LIST | INT and so on: flat lists
# What is said of a key: the kind of its value, the leaf or object that this is, where its bytes are with the quote
# behind them, in two spellings, whether the value may be missing, and between which integers it is.
KIND, TO, KEY, SIZE, OTHER_KEY, OTHER_SIZE, DEFAULT, LOW, HIGH = range(9)
TEXTS, ITEMS, MISSING = range(3)  # see `parse`

LEAST_POWER, MOST_POWER = -342, 308  # of ten, between which a number with 19 digits can be a float64


@cache
def powers_of_ten() -> np.ndarray:
    """The highest 128 bits of each, as two words: cut off, and of those below 1 rounded up (Lemire, section 4)."""
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
