"""int_list, float_list, bytes_list: the lists of values of the three kinds."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compiled.kernel import helper
from penstock.compiled.uncounted import uncounted
from penstock.io.kernels.example.fields import skip, span
from penstock.io.kernels.example.varint import varint
from penstock.io.kernels.loads import bits32

U = np.uint64
MALFORMED = -1


@uncounted
@helper
def int_list(buffer: Any, at: Any, stop: Any, count: Any, room: Any, base: Any, ints: Any) -> Any:
    """Add the values of an Int64List; their number with those before, or -1. Only `room` of them are written."""
    while at < stop:
        tag, at = varint(buffer, at, stop)
        if at < 0:
            return MALFORMED
        if tag == U(0x0A):
            at, end = span(buffer, at, stop)
            if end < 0:
                return MALFORMED
            while at < end:
                value, at = varint(buffer, at, end)
                if at < 0:
                    return MALFORMED
                if count < room:
                    ints[base + count] = np.int64(value)
                count += 1
        elif tag == U(0x08):
            value, at = varint(buffer, at, stop)
            if at < 0:
                return MALFORMED
            if count < room:
                ints[base + count] = np.int64(value)
            count += 1
        else:
            at = skip(buffer, at, stop, tag)
            if at < 0:
                return MALFORMED
    return count


@uncounted
@helper
def float_list(buffer: Any, at: Any, stop: Any, count: Any, room: Any, base: Any, floats: Any) -> Any:
    """Add the values of a FloatList, as their bits; see `int_list`."""
    while at < stop:
        tag, at = varint(buffer, at, stop)
        if at < 0:
            return MALFORMED
        if tag == U(0x0A):
            at, end = span(buffer, at, stop)
            if end < 0 or (end - at) & 3:
                return MALFORMED
            while at < end:
                if count < room:
                    floats[base + count] = bits32(buffer, at)
                count += 1
                at += 4
        elif tag == U(0x0D):
            if stop - at < 4:
                return MALFORMED
            if count < room:
                floats[base + count] = bits32(buffer, at)
            count += 1
            at += 4
        else:
            at = skip(buffer, at, stop, tag)
            if at < 0:
                return MALFORMED
    return count


@uncounted
@helper
def bytes_list(buffer: Any, at: Any, stop: Any, count: Any, room: Any, base: Any, starts: Any, lengths: Any) -> Any:
    """Add the places of a BytesList's strings; see `int_list`."""
    while at < stop:
        tag, at = varint(buffer, at, stop)
        if at < 0:
            return MALFORMED
        if tag == U(0x0A):
            start, at = span(buffer, at, stop)
            if at < 0:
                return MALFORMED
            if count < room:
                starts[base + count] = start
                lengths[base + count] = at - start
            count += 1
        else:
            at = skip(buffer, at, stop, tag)
            if at < 0:
                return MALFORMED
    return count
