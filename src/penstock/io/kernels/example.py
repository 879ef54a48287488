"""The compiled parser of tf.train.Example: a block of records into dense columns, in one call without the GIL.

`penstock.io.message` says what the wire format means and `penstock.io.plain` what is accepted; this file agrees with
them on every input, well-formed or not, and says nothing about reasons: a rejected record is parsed again by the plain
parser, which raises the error. Every index is checked before it is read. Numba's cache does not notice changes in other
files, so all helpers stand here.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import njit

types: Any = numba.types

U = np.uint64

# Columns of the table of entries, one row per entry.
KIND, SIZE, STRIDE, BASE, ROOM, DEFAULT, KEY_SIZE, KEY_AT, SPLITS = 0, 1, 2, 3, 4, 5, 6, 7, 8
TABLE_COLUMNS = 9

NO_DEFAULT = -1  # in DEFAULT: a missing feature is an error
FROM_DEFAULT = -1  # in `starts`: the byte string is that of the default

# What `parse` says about the record at which it stopped.
DONE, REJECTED, NO_ROOM = 0, 1, 2

_BYTES, _FLOAT, _INT64 = 1, 2, 3
_MALFORMED = -1

M1, M2, M3 = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xD6E8FEB86659FD93
REMEMBERED = 512  # map entries of a record whose feature is guessed from the record before

# `parse` is compiled for these types alone; what a caller may write to is accepted where only reading is needed.
_BYTES_IN = types.Array(types.uint8, 1, "C", readonly=True)
_INTS_IN = types.Array(types.int64, 1, "C", readonly=True)
_INTS, _BITS = types.Array(types.int64, 1, "C"), types.Array(types.uint32, 1, "C")
_GRID, _WORDS = types.Array(types.int64, 2, "C"), types.Array(types.uint64, 2, "C")
_SIGNATURE = types.UniTuple(types.int64, 4)(
    *(_BYTES_IN, _INTS_IN, _INTS_IN, types.int64),
    *(_GRID, _WORDS, _BYTES_IN, _INTS, _INTS, _BITS),
    *(_GRID, _INTS, _BITS, _INTS, _INTS),
    *(_INTS, _GRID),
)


@njit(nogil=True, cache=True)
def _load64(buffer: Any, at: Any) -> Any:
    """Eight bytes, little-endian; the caller has checked the bounds. LLVM makes one load of it."""
    i = U(at)
    return (
        U(buffer[i])
        | U(buffer[i + U(1)]) << U(8)
        | U(buffer[i + U(2)]) << U(16)
        | U(buffer[i + U(3)]) << U(24)
        | U(buffer[i + U(4)]) << U(32)
        | U(buffer[i + U(5)]) << U(40)
        | U(buffer[i + U(6)]) << U(48)
        | U(buffer[i + U(7)]) << U(56)
    )


@njit(nogil=True, cache=True)
def _long_varint(buffer: Any, at: Any, stop: Any) -> Any:
    """`_varint` for more than one byte."""
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


@njit(nogil=True, cache=True)
def _varint(buffer: Any, at: Any, stop: Any) -> Any:
    """(value, next position), or (0, -1) where it does not end before `stop` or within 10 bytes.

    Most have one byte; apart from the loop for the others this is small enough for LLVM to inline.
    """
    if at < stop and buffer[U(at)] < 128:
        return U(buffer[U(at)]), at + 1
    return _long_varint(buffer, at, stop)


@njit(nogil=True, cache=True)
def _span(buffer: Any, at: Any, stop: Any) -> Any:
    """(start, end) of the bytes that a length announces, or (0, -1)."""
    size, at = _varint(buffer, at, stop)
    if at < 0 or size > U(stop - at):
        return 0, -1
    return at, at + np.int64(size)


@njit(nogil=True, cache=True)
def _skip(buffer: Any, at: Any, stop: Any, tag: Any) -> Any:
    """The position after an unknown field, or -1."""
    kind = tag & U(7)
    if tag < U(8) or tag > U(0xFFFFFFFF):
        return -1
    if kind == U(0):
        return _varint(buffer, at, stop)[1]
    if kind == U(2):
        return _span(buffer, at, stop)[1]
    if kind == U(1):
        return at + 8 if stop - at >= 8 else -1
    if kind == U(5):
        return at + 4 if stop - at >= 4 else -1
    return -1


@njit(nogil=True, cache=True)
def _words(buffer: Any, at: Any, size: Any) -> Any:
    """The first and the last eight bytes of a key; a shorter one is its own first, filled up with zeros."""
    if size >= 8:
        return _load64(buffer, at), _load64(buffer, at + size - 8)
    if buffer.size - at >= 8:
        return _load64(buffer, at) & ((U(1) << U(8 * size)) - U(1)), U(0)
    word = U(0)
    for i in range(size):
        word |= U(buffer[U(at + i)]) << U(8 * i)
    return word, U(0)


@njit(nogil=True, cache=True)
def _same_middle(buffer: Any, at: Any, size: Any, keys: Any, key_at: Any) -> Any:
    """Whether two keys that agree in length, first and last word agree in between."""
    same = True
    for i in range(8, size - 8):
        same = same and buffer[U(at + i)] == keys[U(key_at + i)]
    return same


@njit(nogil=True, cache=True)
def _find(
    buffer: Any, at: Any, size: Any, first: Any, last: Any, table: Any, words: Any, keys: Any, places: Any
) -> Any:
    """The entry with this key, or -1; `places` is an open-addressed hash table whose size is a power of two."""
    mask = U(places.size - 1)
    place = (((first ^ (last * U(M1)) ^ (U(size) * U(M2))) * U(M3)) >> U(32)) & mask
    while True:
        k = places[place]
        if k < 0:
            return -1
        if (
            table[k, KEY_SIZE] == size
            and words[k, 0] == first
            and words[k, 1] == last
            and _same_middle(buffer, at, size, keys, table[k, KEY_AT])
        ):
            return k
        place = (place + U(1)) & mask


@njit(nogil=True, cache=True)
def _plain_entry(buffer: Any, at: Any, stop: Any, size: Any, first: Any, last: Any) -> Any:
    """Where the value begins of a map entry spelled as writers do, with the key given by its size and words; else -1.

    That is: tag, length, tag, length of the key, key, tag, length of the value, value; every length in one byte.
    The general way accepts the same entry with the same result; this is many times faster.
    """
    value = at + size + 6
    if value > stop or buffer.size - at < 12 or size > 100:
        return -1
    head = _load64(buffer, at) & U(0xFFFFFFFF)
    content = (head >> U(8)) & U(255)
    if content > U(127) or head != (U(size) << U(24)) | U(0x0A000A) | (content << U(8)):
        return -1
    end = at + 2 + np.int64(content)
    word = _load64(buffer, at + 4)
    if size >= 8:
        if word != first or _load64(buffer, at + size - 4) != last:
            return -1
    elif word & ((U(1) << U(8 * size)) - U(1)) != first:
        return -1
    if end > stop or buffer[U(value - 2)] != 0x12 or value + np.int64(buffer[U(value - 1)]) != end:
        return -1
    return value


@njit(nogil=True, cache=True)
def _features(
    buffer: Any, at: Any, stop: Any, slot: Any, order: Any, table: Any, words: Any, keys: Any, places: Any, spans: Any
) -> Any:
    """Note where the values of every wanted feature of a `Features` message are; the next slot, or -1."""
    while at < stop:
        guess = order[slot] if slot < order.size else -1
        if guess >= 0:
            value = _plain_entry(buffer, at, stop, table[guess, KEY_SIZE], words[guess, 0], words[guess, 1])
            if value >= 0 and _same_middle(buffer, at + 4, table[guess, KEY_SIZE], keys, table[guess, KEY_AT]):
                at = value + np.int64(buffer[U(value - 1)])
                spans[guess, 0] = value
                spans[guess, 1] = at
                slot += 1
                continue
        tag, at = _varint(buffer, at, stop)
        if at < 0:
            return -1
        if tag != U(0x0A):
            at = _skip(buffer, at, stop, tag)
            if at < 0:
                return -1
            continue
        at, end = _span(buffer, at, stop)
        if end < 0:
            return -1
        key = at
        size = 0
        start = at
        last_at = at
        while at < end:
            tag, at = _varint(buffer, at, end)
            if at < 0:
                return -1
            if tag == U(0x0A):
                key, at = _span(buffer, at, end)
                size = at - key
            elif tag == U(0x12):
                start, at = _span(buffer, at, end)
                last_at = at
            else:
                at = _skip(buffer, at, end, tag)
            if at < 0:
                return -1
        first, last = _words(buffer, key, size)
        guess = _find(buffer, key, size, first, last, table, words, keys, places)
        if slot < order.size:
            order[slot] = guess
        slot += 1
        if guess >= 0:
            spans[guess, 0] = start
            spans[guess, 1] = last_at
    return slot


@njit(nogil=True, cache=True)
def _int_list(buffer: Any, at: Any, stop: Any, count: Any, room: Any, base: Any, ints: Any) -> Any:
    """Add the values of an Int64List; their number with those before, or -1. Only `room` of them are written."""
    while at < stop:
        tag, at = _varint(buffer, at, stop)
        if at < 0:
            return _MALFORMED
        if tag == U(0x0A):
            at, end = _span(buffer, at, stop)
            if end < 0:
                return _MALFORMED
            while at < end:
                value, at = _varint(buffer, at, end)
                if at < 0:
                    return _MALFORMED
                if count < room:
                    ints[base + count] = np.int64(value)
                count += 1
        elif tag == U(0x08):
            value, at = _varint(buffer, at, stop)
            if at < 0:
                return _MALFORMED
            if count < room:
                ints[base + count] = np.int64(value)
            count += 1
        else:
            at = _skip(buffer, at, stop, tag)
            if at < 0:
                return _MALFORMED
    return count


@njit(nogil=True, cache=True)
def _bits32(buffer: Any, at: Any) -> Any:
    i = U(at)
    return np.uint32(
        U(buffer[i]) | U(buffer[i + U(1)]) << U(8) | U(buffer[i + U(2)]) << U(16) | U(buffer[i + U(3)]) << U(24)
    )


@njit(nogil=True, cache=True)
def _float_list(buffer: Any, at: Any, stop: Any, count: Any, room: Any, base: Any, floats: Any) -> Any:
    """Add the values of a FloatList, as their bits; see `_int_list`."""
    while at < stop:
        tag, at = _varint(buffer, at, stop)
        if at < 0:
            return _MALFORMED
        if tag == U(0x0A):
            at, end = _span(buffer, at, stop)
            if end < 0 or (end - at) & 3:
                return _MALFORMED
            while at < end:
                if count < room:
                    floats[base + count] = _bits32(buffer, at)
                count += 1
                at += 4
        elif tag == U(0x0D):
            if stop - at < 4:
                return _MALFORMED
            if count < room:
                floats[base + count] = _bits32(buffer, at)
            count += 1
            at += 4
        else:
            at = _skip(buffer, at, stop, tag)
            if at < 0:
                return _MALFORMED
    return count


@njit(nogil=True, cache=True)
def _bytes_list(buffer: Any, at: Any, stop: Any, count: Any, room: Any, base: Any, starts: Any, lengths: Any) -> Any:
    """Add the places of a BytesList's strings; see `_int_list`."""
    while at < stop:
        tag, at = _varint(buffer, at, stop)
        if at < 0:
            return _MALFORMED
        if tag == U(0x0A):
            start, at = _span(buffer, at, stop)
            if at < 0:
                return _MALFORMED
            if count < room:
                starts[base + count] = start
                lengths[base + count] = at - start
            count += 1
        else:
            at = _skip(buffer, at, stop, tag)
            if at < 0:
                return _MALFORMED
    return count


@njit(nogil=True, cache=True)
def _feature(
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
        tag, at = _varint(buffer, at, stop)
        if at < 0:
            return _MALFORMED, 0
        if tag == U(0x0A) or tag == U(0x12) or tag == U(0x1A):
            found = np.int64(tag >> U(3))
            if found != kind:
                kind = found
                count = np.int64(0)
            start, at = _span(buffer, at, stop)
            if at < 0:
                return _MALFORMED, 0
            if kind == wanted:
                if kind == _INT64:
                    count = _int_list(buffer, start, at, count, room, base, ints)
                elif kind == _FLOAT:
                    count = _float_list(buffer, start, at, count, room, base, floats)
                else:
                    count = _bytes_list(buffer, start, at, count, room, base, starts, lengths)
                if count < 0:
                    return _MALFORMED, 0
        else:
            at = _skip(buffer, at, stop, tag)
            if at < 0:
                return _MALFORMED, 0
    return kind, count


@njit(nogil=True, cache=True)
def _one_number(buffer: Any, at: Any, stop: Any, wanted: Any) -> Any:
    """(True, bits) of a `Feature` that holds one number in a packed list, all lengths in one byte; else (False, 0).

    The general way accepts the same feature with the same result; this is many times faster.
    """
    size = stop - at
    if size < 5 or size > 14 or wanted == _BYTES or buffer.size - at < 8:
        return False, U(0)
    word = _load64(buffer, at)
    expected = U(8 * wanted + 2) | U(size - 2) << U(8) | U(0x0A0000) | U(size - 4) << U(24)
    if word & U(0xFFFFFFFF) != expected:
        return False, U(0)
    if wanted == _FLOAT:
        return size == 8, word >> U(32)
    value = U(0)
    shift = U(0)
    last = stop - 1
    for i in range(at + 4, last):
        byte = U(buffer[U(i)])
        if byte < U(128):
            return False, U(0)
        value |= (byte & U(127)) << shift
        shift += U(7)
    byte = U(buffer[U(last)])
    return byte < U(128), value | byte << shift


@njit(_SIGNATURE, nogil=True, cache=True)
def parse(
    buffer: Any,
    record_starts: Any,
    record_lengths: Any,
    row: Any,
    table: Any,
    words: Any,
    keys: Any,
    places: Any,
    int_defaults: Any,
    float_defaults: Any,
    splits: Any,
    ints: Any,
    floats: Any,
    starts: Any,
    lengths: Any,
    order: Any,
    spans: Any,
) -> Any:
    """Parse the records from `row` on; returns (row, status, entry, values needed there).

    Entry k of fixed size writes its values from `BASE + row * SIZE` on in the array of its kind (floats as their bits);
    one of any length appends to what it has from `BASE` on, at most `ROOM` values in all; `splits[SPLITS, i]` is how
    many it had before row i. NO_ROOM means: give entry k room for that many values and continue at this row.
    """
    entries = table.shape[0]
    while row < record_starts.size:
        at = record_starts[row]
        if at < 0 or record_lengths[row] < 0 or at > buffer.size or record_lengths[row] > buffer.size - at:
            return row, REJECTED, 0, 0
        stop = at + record_lengths[row]
        for k in range(entries):
            spans[k, 0] = -1
        slot = np.int64(0)  # a literal 0 would have `_features` compiled a second time, for literals
        while at < stop:
            tag, at = _varint(buffer, at, stop)
            if at < 0:
                return row, REJECTED, 0, 0
            if tag == U(0x0A):
                start, at = _span(buffer, at, stop)
                if at < 0:
                    return row, REJECTED, 0, 0
                slot = _features(buffer, start, at, slot, order, table, words, keys, places, spans)
                if slot < 0:
                    return row, REJECTED, 0, 0
            else:
                at = _skip(buffer, at, stop, tag)
                if at < 0:
                    return row, REJECTED, 0, 0
        for k in range(entries):
            size = table[k, SIZE]
            wanted = table[k, KIND]
            if size >= 0:
                base = table[k, BASE] + row * size
                room = size
            else:
                before = splits[table[k, SPLITS], row]
                base = table[k, BASE] + before
                room = table[k, ROOM] - before
            kind = 0
            count = 0
            if spans[k, 0] >= 0:
                single, bits = _one_number(buffer, spans[k, 0], spans[k, 1], wanted)
                if single and room > 0:
                    if wanted == _INT64:
                        ints[base] = np.int64(bits)
                    else:
                        floats[base] = np.uint32(bits)
                    kind, count = wanted, 1
                else:
                    kind, count = _feature(
                        buffer, spans[k, 0], spans[k, 1], wanted, room, base, ints, floats, starts, lengths
                    )
            if kind == 0:
                default = table[k, DEFAULT]
                if default == NO_DEFAULT:
                    return row, REJECTED, k, 0
                count = max(size, 0)
                for i in range(count):
                    if wanted == _INT64:
                        ints[base + i] = int_defaults[default + i]
                    elif wanted == _FLOAT:
                        floats[base + i] = float_defaults[default + i]
                    else:
                        starts[base + i] = FROM_DEFAULT
                        lengths[base + i] = i
            elif kind != wanted or (size >= 0 and count != size) or count % table[k, STRIDE] != 0:
                return row, REJECTED, k, 0
            if size < 0:
                before = splits[table[k, SPLITS], row]
                if count > room:
                    return row, NO_ROOM, k, before + count
                splits[table[k, SPLITS], row + 1] = before + count
        row += 1
    return row, DONE, 0, 0
