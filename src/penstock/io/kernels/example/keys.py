"""find: the entry that has a key, by a hash table."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compiled.kernel import helper
from penstock.compiled.uncounted import uncounted
from penstock.io.kernels.example.table import FIRST, KEY_AT, KEY_SIZE, LAST, M1, M2, M3
from penstock.io.kernels.loads import load64

U = np.uint64


@uncounted
@helper
def _words(buffer: Any, at: Any, size: Any) -> Any:
    """The first and the last eight bytes of a key; a shorter one is its own first, filled up with zeros."""
    if size >= 8:
        return load64(buffer, at), load64(buffer, at + size - 8)
    if buffer.size - at >= 8:
        return load64(buffer, at) & ((U(1) << U(8 * size)) - U(1)), U(0)
    word = U(0)
    for i in range(size):
        word |= U(buffer[U(at + i)]) << U(8 * i)
    return word, U(0)


@uncounted
@helper
def _same_middle(buffer: Any, at: Any, size: Any, keys: Any, key_at: Any) -> Any:
    """Whether two keys that agree in length, first and last word agree in between."""
    same = True
    for i in range(8, size - 8):
        same = same and buffer[U(at + i)] == keys[U(key_at + i)]
    return same


@uncounted
@helper
def find(buffer: Any, at: Any, size: Any, table: Any, keys: Any, places: Any) -> Any:
    """The entry with this key, or -1; `places` is an open-addressed hash table whose size is a power of two."""
    first, last = _words(buffer, at, size)
    mask = U(places.size - 1)
    place = (((first ^ (last * U(M1)) ^ (U(size) * U(M2))) * U(M3)) >> U(32)) & mask
    while True:
        k = places[place]
        if k < 0:
            return -1
        if (
            table[U(k), KEY_SIZE] == size
            and U(table[U(k), FIRST]) == first
            and U(table[U(k), LAST]) == last
            and _same_middle(buffer, at, size, keys, table[U(k), KEY_AT])
        ):
            return k
        place = (place + U(1)) & mask
