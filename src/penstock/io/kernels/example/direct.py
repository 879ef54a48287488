"""direct: a lone value written to its row as soon as it is seen."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compiled.kernel import inlined
from penstock.compiled.uncounted import uncounted
from penstock.io.kernels.example.table import BASE, FORM, ONE_FLOAT, ONE_INT, ONE_STRING
from penstock.io.kernels.example.varint import short_varint
from penstock.io.kernels.loads import bits32

U = np.uint64


@uncounted
@inlined
def direct(
    buffer: Any, at: Any, size: Any, table: Any, k: Any, row: Any, ints: Any, floats: Any, starts: Any, lengths: Any
) -> Any:
    """Whether the values of entry k, packed in `size` bytes from `at` on, could be written to their row at once."""
    form = table[k, FORM]
    if form == ONE_INT:
        if U(size - 1) > U(7) or buffer.size - at < 8:
            return False
        fits, value = short_varint(buffer, at, size)
        ints[U(table[k, BASE] + row)] = np.int64(value)
        return fits
    if form == ONE_FLOAT:
        if size != 4:
            return False
        floats[U(table[k, BASE] + row)] = bits32(buffer, at)
        return True
    if form == ONE_STRING:
        to = U(table[k, BASE] + row)
        starts[to] = at
        lengths[to] = size
        return True
    return False
