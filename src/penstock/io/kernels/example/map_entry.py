"""map_entry: an entry of the map from names to values, in any spelling."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compiled.kernel import helper
from penstock.compiled.uncounted import uncounted
from penstock.io.kernels.example.fields import skip, span
from penstock.io.kernels.example.varint import varint

U = np.uint64


@uncounted
@helper
def map_entry(buffer: Any, at: Any, end: Any) -> Any:
    """(whether it is sound, where its key begins, the key's size, where its value begins and ends)."""
    key, size, start, stop = at, np.int64(0), at, at
    while at < end:
        tag, at = varint(buffer, at, end)
        if at < 0:
            return False, key, size, start, stop
        if tag == U(0x0A):
            key, at = span(buffer, at, end)
            size = at - key
        elif tag == U(0x12):
            start, at = span(buffer, at, end)
            stop = at
        else:
            at = skip(buffer, at, end, tag)
        if at < 0:
            return False, key, size, start, stop
    return True, key, size, start, stop
