"""Writing of values to rows: lists of the three kinds, single values, and lists in pieces.

The module also reads the wire format (integers of 1 to 10 bytes, values with a length, unknown fields) and memory by
address.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.core.extending import intrinsic
from numba.np import arrayobj

from penstock.io.kernels.example import (
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
from penstock.io.kernels.loads import bits32, load64
from penstock.native.kernel import helper, inlined

U = np.uint64
_CONTINUED, _PAYLOAD = 0x8080808080808080, 0x7F7F7F7F7F7F7F7F


@helper
def _long_varint(buffer, at, stop):
    """Read a varint of more than one byte, like `varint`."""
    value = U(0)
    shift = U(0)
    last = min(stop, at + 10)
    while at < last:
        byte = U(buffer[U(at)])
        at += 1
        value |= (byte & U(127)) << shift
        if byte < U(128):
            return value, at
        shift += U(7)
    return U(0), -1


@helper
def varint(buffer, at, stop):
    """Return (value, next position), or (0, -1) if the varint does not end before `stop` or within 10 bytes.

    Most varints have one byte. The loop for longer ones is a separate function, so that LLVM inlines this one.
    """
    if at < stop and buffer[U(at)] < 128:
        return U(buffer[U(at)]), at + 1
    return _long_varint(buffer, at, stop)


@inlined
def short_varint(buffer, at, size):
    """Return (True, value) of a varint with exactly `size` bytes, 1 to 8.

    The caller has checked that eight bytes exist.
    """
    shift = U(64) - (U(size) << U(3))
    word = load64(buffer, at) << shift  # the varint's last byte is now the highest, with zeros below
    continued = word & U(_CONTINUED)
    fits = continued == (U(_CONTINUED) >> U(8)) & (U(0xFFFFFFFFFFFFFFFF) << shift)
    word = (word >> shift) & U(_PAYLOAD)
    word = (word & U(0x007F007F007F007F)) | ((word & U(0x7F007F007F007F00)) >> U(1))
    word = (word & U(0x00003FFF00003FFF)) | ((word & U(0x3FFF00003FFF0000)) >> U(2))
    return fits, (word & U(0x0FFFFFFF)) | ((word & U(0x0FFFFFFF00000000)) >> U(4))


@helper
def span(buffer, at, stop):
    """Return (start, end) of the bytes after a length, or (0, -1)."""
    size, at = varint(buffer, at, stop)
    if at < 0 or size > U(stop - at):
        return 0, -1
    return at, at + np.int64(size)


@helper
def skip(buffer, at, stop, tag):
    """Return the position after an unknown field, or -1."""
    kind = tag & U(7)
    if tag < U(8) or tag > U(0xFFFFFFFF):
        return -1
    if kind == U(0):
        return varint(buffer, at, stop)[1]
    if kind == U(2):
        return span(buffer, at, stop)[1]
    if kind == U(1):
        return at + 8 if stop - at >= 8 else -1
    if kind == U(5):
        return at + 4 if stop - at >= 4 else -1
    return -1


# numba has types only for some of its names.
make_array: Any = arrayobj.make_array
populate_array: Any = arrayobj.populate_array
_BYTES: Any = types.Array(types.uint8, 1, "C", readonly=True)


def _bytes_at(typing: Any, address: Any, size: Any) -> Any:
    """Return the `size` bytes from `address` on as an array. The caller keeps the memory alive."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = make_array(_BYTES)(context, builder)
        data = builder.inttoptr(args[0], array.data.type)
        one = context.get_constant(types.intp, 1)
        populate_array(array, data, [args[1]], [one], one, None)
        return array._getvalue()

    return _BYTES(types.int64, types.int64), generate


def _address_of(typing: Any, buffer: Any) -> Any:
    """Return the address of an array's first byte."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = make_array(signature.args[0])(context, builder, args[0])
        return builder.ptrtoint(array.data, context.get_value_type(types.int64))

    return types.int64(buffer), generate


bytes_at: Any = intrinsic(_bytes_at)
address_of: Any = intrinsic(_address_of)


MALFORMED = -1


@helper
def int_list(buffer, at, stop, count, room, base, ints):
    """Add the values of an Int64List. Return their number with earlier ones, or -1. At most `room` are written."""
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


@helper
def float_list(buffer, at, stop, count, room, base, floats):
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


@helper
def bytes_list(buffer, at, stop, count, room, base, starts, lengths):
    """Add the positions of a BytesList's strings; see `int_list`."""
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


@helper
def feature(buffer, at, stop, wanted, room, base, out):
    """Write the values of a `Feature` message from `base` on. Return (kind, number of values); kind -1 if malformed."""
    ints, floats, starts, lengths = out
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


@inlined
def direct(buffer, at, size, table, k, row, out):
    """Write the values of entry k, packed in `size` bytes at `at`, to their row. Return True if this was possible."""
    ints, floats, starts, lengths = out
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


@inlined
def write_noted(buffer, row, table, defaults, notes, splits, out):
    """Write the noted values of row `row`, and defaults of missing ones.

    Return (status, entry, values needed there).
    """
    int_defaults, float_defaults = defaults
    ints, floats, starts, lengths = out
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
            kind, count = feature(buffer, notes[k, 0], notes[k, 1], wanted, room, base, out)
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
