"""feature: a Feature message, of one kind of values."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compiled.kernel import helper
from penstock.compiled.uncounted import uncounted
from penstock.io.kernels.example.fields import skip, span
from penstock.io.kernels.example.lists import MALFORMED, bytes_list, float_list, int_list
from penstock.io.kernels.example.table import FLOAT, INT64
from penstock.io.kernels.example.varint import varint

U = np.uint64


@uncounted
@helper
def feature(
    buffer: Any,
    at: Any,
    stop: Any,
    wanted: Any,
    room: Any,
    base: Any,
    ints: Any,
    floats: Any,
    starts: Any,
    lengths: Any,
) -> Any:
    """(kind, number of values) of a `Feature` message, its values written from `base` on; kind -1 where malformed."""
    kind = count = np.int64(0)
    while at < stop:
        tag, at = varint(buffer, at, stop)
        if at < 0:
            return MALFORMED, 0
        if tag == U(0x0A) or tag == U(0x12) or tag == U(0x1A):
            found = np.int64(tag >> U(3))
            if found != kind:
                kind = found
                count = np.int64(0)
            start, at = span(buffer, at, stop)
            if at < 0:
                return MALFORMED, 0
            if kind == wanted:
                if kind == INT64:
                    count = int_list(buffer, start, at, count, room, base, ints)
                elif kind == FLOAT:
                    count = float_list(buffer, start, at, count, room, base, floats)
                else:
                    count = bytes_list(buffer, start, at, count, room, base, starts, lengths)
                if count < 0:
                    return MALFORMED, 0
        else:
            at = skip(buffer, at, stop, tag)
            if at < 0:
                return MALFORMED, 0
    return kind, count
