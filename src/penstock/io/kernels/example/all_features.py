"""all_features: an Example message, whose features may come in several parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compiled.kernel import inlined
from penstock.compiled.uncounted import uncounted
from penstock.io.kernels.example.features import features
from penstock.io.kernels.example.fields import skip, span
from penstock.io.kernels.example.varint import varint

U = np.uint64


@uncounted
@inlined
def all_features(
    buffer: Any,
    at: Any,
    stop: Any,
    row: Any,
    table: Any,
    keys: Any,
    places: Any,
    memory: Any,
    notes: Any,
    ints: Any,
    floats: Any,
    starts: Any,
    lengths: Any,
) -> Any:
    """(features written, features noted) of the record from `at` to `stop`; the first is -1 where it is malformed."""
    slot = np.int64(0)  # a literal 0 would have `features` compiled a second time, for literals
    written = np.int64(0)
    noted = np.int64(0)
    while at < stop:
        tag, at = varint(buffer, at, stop)
        if at < 0:
            return -1, 0
        if tag == U(0x0A):
            start, at = span(buffer, at, stop)
            if at < 0:
                return -1, 0
            slot, more_written, more_noted = features(
                *(buffer, start, at, slot, row, table, keys, places, memory, notes),
                *(ints, floats, starts, lengths),
            )
            if slot < 0:
                return -1, 0
            written += more_written
            noted += more_noted
        else:
            at = skip(buffer, at, stop, tag)
            if at < 0:
                return -1, 0
    return written, noted
