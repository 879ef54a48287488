"""expected_entry: a map entry compared with how writers spell it, by words of eight bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compiled.kernel import inlined
from penstock.compiled.uncounted import uncounted
from penstock.io.kernels.example.table import (
    AT_1,
    HEAD,
    KEY_AT,
    KEY_SIZE,
    LONGEST,
    MASK_0,
    MASK_1,
    WORD_0,
    WORD_1,
    WORD_2,
)
from penstock.io.kernels.loads import load64

U = np.uint64
# The lengths in the last eight bytes before a list's values: of the feature, its list, and the values, packed.
_LENGTHS = 0x0100010001000000


@uncounted
@inlined
def expected_entry(buffer: Any, at: Any, stop: Any, table: Any, k: Any, keys: Any) -> Any:
    """The number of bytes that the values of entry k take, if it stands here as writers spell it; else -1.

    That is, with every length in one byte:

        0A length | 0A length key | 12 length | kind length | 0A length | values

    The general way accepts the same bytes with the same result. Here all but the lengths is compared by words, the last
    of which ends where the values begin; and each length follows from the first.
    """
    if stop - at < 2:
        return -1
    length = np.int64(buffer[U(at + 1)])
    head = table[k, HEAD]
    size = length + 2 - head
    if size < 0 or size > table[k, LONGEST] or length > stop - at - 2:
        return -1
    wrong = (load64(buffer, at) & U(table[k, MASK_0])) ^ U(table[k, WORD_0])
    wrong |= (load64(buffer, at + table[k, AT_1]) & U(table[k, MASK_1])) ^ U(table[k, WORD_1])
    wrong |= load64(buffer, at + head - 8) ^ (U(table[k, WORD_2]) + U(size) * U(_LENGTHS))
    if wrong != U(0):
        return -1
    if head > 24:  # what of the key is in none of the three
        i = np.int64(12)
        size_of_key = table[k, KEY_SIZE]
        key = table[k, KEY_AT]
        while i < size_of_key - 2:
            i = min(i, size_of_key - 8)
            if load64(buffer, at + 4 + i) != load64(keys, key + i):
                return -1
            i += 8
    return size
