"""Values to their rows: lists of the three kinds, a lone one as soon as it is seen, and those that were noted."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compiled.kernel import helper, inlined
from penstock.compiled.uncounted import uncounted
from penstock.io.kernels.example.table import (
    BASE,
    DEFAULT,
    DONE,
    FLOAT,
    FORM,
    FROM_DEFAULT,
    INT64,
    KIND,
    NO_DEFAULT,
    NO_ROOM,
    ONE_FLOAT,
    ONE_INT,
    ONE_STRING,
    REJECTED,
    ROOM,
    SIZE,
    SPLITS,
    STRIDE,
)
from penstock.io.kernels.example.wire import short_varint, skip, span, varint
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


@uncounted
@inlined
def write_noted(
    buffer: Any,
    row: Any,
    table: Any,
    int_defaults: Any,
    float_defaults: Any,
    notes: Any,
    splits: Any,
    ints: Any,
    floats: Any,
    starts: Any,
    lengths: Any,
) -> Any:
    """Write what is noted of row `row`, and defaults of what is missing; (status, entry, values needed there)."""
    for k in range(table.shape[0]):
        if notes[k, 2] == 2 * row + 1:
            continue
        size = table[k, SIZE]
        wanted = table[k, KIND]
        before = np.int64(0)
        if size >= 0:
            base = table[k, BASE] + row * size
            room = size
        else:
            before = splits[table[k, SPLITS], row]
            base = table[k, BASE] + before
            room = table[k, ROOM] - before
        kind = np.int64(0)
        count = np.int64(0)
        if notes[k, 2] == 2 * row:
            kind, count = feature(buffer, notes[k, 0], notes[k, 1], wanted, room, base, ints, floats, starts, lengths)
        if kind == 0:
            default = table[k, DEFAULT]
            if default == NO_DEFAULT:
                return REJECTED, k, 0
            count = max(size, np.int64(0))
            for i in range(count):
                if wanted == INT64:
                    ints[base + i] = int_defaults[default + i]
                elif wanted == FLOAT:
                    floats[base + i] = float_defaults[default + i]
                else:
                    starts[base + i] = FROM_DEFAULT
                    lengths[base + i] = i
        elif kind != wanted or (size >= 0 and count != size) or count % table[k, STRIDE] != 0:
            return REJECTED, k, 0
        if size < 0:
            if count > room:
                return NO_ROOM, k, before + count
            splits[table[k, SPLITS], row + 1] = before + count
    return DONE, 0, 0
