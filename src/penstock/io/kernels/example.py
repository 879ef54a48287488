"""The compiled parser of tf.train.Example: a block of records into dense columns, in one call without the GIL.

`penstock.io.message` says what the wire format means and `penstock.io.plain` what is accepted; this file agrees with
them on every input, well-formed or not, and says nothing about reasons: a rejected record is parsed again by the plain
parser, which raises the error. Every index is checked before it is read. Numba's cache does not notice changes in other
files, so all helpers stand here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np

types: Any = numba.types

U = np.uint64
F = TypeVar("F", bound=Callable[..., Any])


def _njit(*signature: Any, forceinline: bool = False) -> Callable[[F], F]:
    """Compiled without counting references: counts of the arrays that functions hand each other took half the time.

    Such functions cannot make arrays. What is called for every value is inlined; the rest is not, which leaves the
    processor's registers to the loops inside.
    """
    jit: Any = numba.njit
    made: Callable[[F], F] = jit(*signature, nogil=True, cache=True, forceinline=forceinline, _nrt=False)
    return made


# Columns of the table of entries, one row per entry.
KIND, SIZE, STRIDE, BASE, ROOM, DEFAULT, KEY_SIZE, KEY_AT, SPLITS = 0, 1, 2, 3, 4, 5, 6, 7, 8
FIRST, LAST = 9, 10  # eight bytes of the key each
# The usual spelling, see `_expected_entry`: three words of it, and the bits of the first two that do not vary.
WORD_0, MASK_0, WORD_1, MASK_1, WORD_2, AT_1, HEAD, LONGEST = 11, 12, 13, 14, 15, 16, 17, 18
FORM = 19
TABLE_COLUMNS = 20

# In FORM: what is written to its row as soon as it is seen.
MANY, ONE_INT, ONE_FLOAT, ONE_STRING = 0, 1, 2, 3

NO_DEFAULT = -1  # in DEFAULT: a missing feature is an error
FROM_DEFAULT = -1  # in `starts`: the byte string is that of the default

# What `parse` says about the record at which it stopped.
DONE, REJECTED, NO_ROOM = 0, 1, 2

_BYTES, _FLOAT, _INT64 = 1, 2, 3
_MALFORMED = -1

M1, M2, M3 = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xD6E8FEB86659FD93
REMEMBERED = 512  # map entries of a record whose feature is guessed from the records before
UNKNOWN, UNWANTED = -1, -2  # in the memory, beside the numbers of entries
NO_MEMORY = np.full((2, REMEMBERED), UNKNOWN)
NOTES = 4  # of each entry

# The lengths in the last eight bytes before a list's values: of the feature, its list, and the values, packed.
_LENGTHS = 0x0100010001000000
_CONTINUED, _PAYLOAD = 0x8080808080808080, 0x7F7F7F7F7F7F7F7F

# `parse` is compiled for these types alone; what a caller may write to is accepted where only reading is needed.
_BYTES_IN = types.Array(types.uint8, 1, "C", readonly=True)
_INTS_IN = types.Array(types.int64, 1, "C", readonly=True)
_INTS, _BITS = types.Array(types.int64, 1, "C"), types.Array(types.uint32, 1, "C")
_GRID = types.Array(types.int64, 2, "C")
_SIGNATURE = types.UniTuple(types.int64, 4)(
    *(_BYTES_IN, _INTS_IN, _INTS_IN, _INTS_IN, types.int64),
    *(_GRID, _BYTES_IN, _INTS, _INTS, _BITS),
    *(_GRID, _INTS, _BITS, _INTS, _INTS),
    *(_GRID, _GRID),
)


@_njit(forceinline=True)
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


@_njit()
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


@_njit()
def _varint(buffer: Any, at: Any, stop: Any) -> Any:
    """(value, next position), or (0, -1) where it does not end before `stop` or within 10 bytes.

    Most have one byte; apart from the loop for the others this is small enough for LLVM to inline.
    """
    if at < stop and buffer[U(at)] < 128:
        return U(buffer[U(at)]), at + 1
    return _long_varint(buffer, at, stop)


@_njit()
def _span(buffer: Any, at: Any, stop: Any) -> Any:
    """(start, end) of the bytes that a length announces, or (0, -1)."""
    size, at = _varint(buffer, at, stop)
    if at < 0 or size > U(stop - at):
        return 0, -1
    return at, at + np.int64(size)


@_njit()
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


@_njit()
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


@_njit()
def _same_middle(buffer: Any, at: Any, size: Any, keys: Any, key_at: Any) -> Any:
    """Whether two keys that agree in length, first and last word agree in between."""
    same = True
    for i in range(8, size - 8):
        same = same and buffer[U(at + i)] == keys[U(key_at + i)]
    return same


@_njit()
def _find(buffer: Any, at: Any, size: Any, first: Any, last: Any, table: Any, keys: Any, places: Any) -> Any:
    """The entry with this key, or -1; `places` is an open-addressed hash table whose size is a power of two."""
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


@_njit(forceinline=True)
def _expected_entry(buffer: Any, at: Any, stop: Any, table: Any, k: Any, keys: Any) -> Any:
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
    wrong = (_load64(buffer, at) & U(table[k, MASK_0])) ^ U(table[k, WORD_0])
    wrong |= (_load64(buffer, at + table[k, AT_1]) & U(table[k, MASK_1])) ^ U(table[k, WORD_1])
    wrong |= _load64(buffer, at + head - 8) ^ (U(table[k, WORD_2]) + U(size) * U(_LENGTHS))
    if wrong != U(0):
        return -1
    if head > 24:  # what of the key is in none of the three
        i = np.int64(12)
        size_of_key = table[k, KEY_SIZE]
        key = table[k, KEY_AT]
        while i < size_of_key - 2:
            i = min(i, size_of_key - 8)
            if _load64(buffer, at + 4 + i) != _load64(keys, key + i):
                return -1
            i += 8
    return size


@_njit(forceinline=True)
def _short_varint(buffer: Any, at: Any, size: Any) -> Any:
    """(True, value) of a varint of 1 to 8 bytes that is exactly `size` long; the caller has checked eight bytes."""
    shift = U(64) - (U(size) << U(3))
    word = _load64(buffer, at) << shift  # its last byte is the highest, below it there are zeros
    continued = word & U(_CONTINUED)
    fits = continued == (U(_CONTINUED) >> U(8)) & (U(0xFFFFFFFFFFFFFFFF) << shift)
    word = (word >> shift) & U(_PAYLOAD)
    word = (word & U(0x007F007F007F007F)) | ((word & U(0x7F007F007F007F00)) >> U(1))
    word = (word & U(0x00003FFF00003FFF)) | ((word & U(0x3FFF00003FFF0000)) >> U(2))
    return fits, (word & U(0x0FFFFFFF)) | ((word & U(0x0FFFFFFF00000000)) >> U(4))


@_njit(forceinline=True)
def _direct(
    buffer: Any, at: Any, size: Any, table: Any, k: Any, row: Any, ints: Any, floats: Any, starts: Any, lengths: Any
) -> Any:
    """Whether the values of entry k, packed in `size` bytes from `at` on, could be written to their row at once."""
    form = table[k, FORM]
    if form == ONE_INT:
        if U(size - 1) > U(7) or buffer.size - at < 8:
            return False
        fits, value = _short_varint(buffer, at, size)
        ints[U(table[k, BASE] + row)] = np.int64(value)
        return fits
    if form == ONE_FLOAT:
        if size != 4:
            return False
        floats[U(table[k, BASE] + row)] = _bits32(buffer, at)
        return True
    if form == ONE_STRING:
        to = U(table[k, BASE] + row)
        starts[to] = at
        lengths[to] = size
        return True
    return False


@_njit(forceinline=True)
def _same_unwanted(buffer: Any, at: Any, stop: Any, before: Any) -> Any:
    """Where the entry here ends, if it has the key of the one at `before`, which is spelled as usual; else -1."""
    size = np.int64(buffer[U(before + 3)])
    if stop - at < size + 6:
        return -1
    end = at + 2 + np.int64(buffer[U(at + 1)])
    value = at + size + 6
    if end > stop or buffer[U(at)] != 0x0A or buffer[U(at + 1)] > 127 or value > end:
        return -1
    if buffer[U(value - 2)] != 0x12 or value + np.int64(buffer[U(value - 1)]) != end:
        return -1
    for i in range(2, size + 4):
        if buffer[U(at + i)] != buffer[U(before + i)]:
            return -1
    return end


@_njit()
def _usual(
    buffer: Any,
    at: Any,
    stop: Any,
    slot: Any,
    row: Any,
    table: Any,
    keys: Any,
    memory: Any,
    notes: Any,
    ints: Any,
    floats: Any,
    starts: Any,
    lengths: Any,
) -> Any:
    """Read what stands where it stood before, written at once; (position, slot, entries read)."""
    first = slot
    while at < stop and slot < REMEMBERED:
        guess = memory[0, U(slot)]
        if guess < 0:
            break
        k = U(guess)
        size = _expected_entry(buffer, at, stop, table, k, keys)
        if size < 0:
            break
        value = at + table[k, HEAD]
        if not _direct(buffer, value, size, table, k, row, ints, floats, starts, lengths):
            break
        at = value + size
        notes[k, 2] = 2 * row + 1
        slot += 1
    return at, slot, slot - first


@_njit()
def _features(
    buffer: Any,
    at: Any,
    stop: Any,
    slot: Any,
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
    """Read the wanted features of a `Features` message, or note where their values are; (next slot, read, noted).

    A slot is the place of a map entry among those of a record, by which its feature is guessed. -1 for malformed.
    """
    read = np.int64(0)
    noted = np.int64(0)
    while True:
        at, slot, more = _usual(
            *(buffer, at, stop, slot, row, table, keys, memory, notes),
            *(ints, floats, starts, lengths),
        )
        read += more
        if at >= stop:
            break
        guess = memory[0, U(slot)] if slot < REMEMBERED else UNKNOWN
        if guess >= 0:
            k = U(guess)
            size = _expected_entry(buffer, at, stop, table, k, keys)
            if size >= 0:
                value = at + table[k, HEAD]
                at = value + size
                slot += 1
                if _direct(buffer, value, size, table, k, row, ints, floats, starts, lengths):
                    read += 1
                    notes[k, 2] = 2 * row + 1
                else:
                    noted += 1
                    notes[k, 0] = value - 4
                    notes[k, 1] = at
                    notes[k, 2] = 2 * row
                continue
        elif guess == UNWANTED:
            end = _same_unwanted(buffer, at, stop, memory[1, U(slot)])
            if end >= 0:
                at = end
                slot += 1
                continue
        entry = at
        tag, at = _varint(buffer, at, stop)
        if at < 0:
            return -1, 0, 0
        if tag != U(0x0A):
            at = _skip(buffer, at, stop, tag)
            if at < 0:
                return -1, 0, 0
            continue
        at, end = _span(buffer, at, stop)
        if end < 0:
            return -1, 0, 0
        key = at
        size = np.int64(0)
        start = at
        last_at = at
        while at < end:
            tag, at = _varint(buffer, at, end)
            if at < 0:
                return -1, 0, 0
            if tag == U(0x0A):
                key, at = _span(buffer, at, end)
                size = at - key
            elif tag == U(0x12):
                start, at = _span(buffer, at, end)
                last_at = at
            else:
                at = _skip(buffer, at, end, tag)
            if at < 0:
                return -1, 0, 0
        first, last = _words(buffer, key, size)
        found = _find(buffer, key, size, first, last, table, keys, places)
        if found >= 0:
            noted += 1
            notes[found, 0] = start
            notes[found, 1] = last_at
            notes[found, 2] = 2 * row
            known = notes[found, 3]
            if known >= 0 and memory[0, U(known)] == found:
                slot = known  # some were left out, or have another order: go on behind this one
            elif slot < REMEMBERED:
                memory[0, U(slot)] = found
                notes[found, 3] = slot
        elif slot < REMEMBERED:
            usual = key == entry + 4 and start == key + size + 2 and last_at == end
            memory[0, U(slot)] = UNWANTED if usual else UNKNOWN
            memory[1, U(slot)] = entry
        slot += 1
    return slot, read, noted


@_njit()
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


@_njit(forceinline=True)
def _bits32(buffer: Any, at: Any) -> Any:
    i = U(at)
    return np.uint32(
        U(buffer[i]) | U(buffer[i + U(1)]) << U(8) | U(buffer[i + U(2)]) << U(16) | U(buffer[i + U(3)]) << U(24)
    )


@_njit()
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


@_njit()
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


@_njit()
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


@_njit(_SIGNATURE)
def parse(
    buffer: Any,
    record_starts: Any,
    record_lengths: Any,
    rows: Any,
    done: Any,
    table: Any,
    keys: Any,
    places: Any,
    int_defaults: Any,
    float_defaults: Any,
    splits: Any,
    ints: Any,
    floats: Any,
    starts: Any,
    lengths: Any,
    memory: Any,
    notes: Any,
) -> Any:
    """Parse the records `rows[done:]`; returns (how many of `rows` are done, status, entry, values needed there).

    Entry k of fixed size writes its values from `BASE + row * SIZE` on in the array of its kind (floats as their bits);
    one of any length appends to what it has from `BASE` on, at most `ROOM` values in all; `splits[SPLITS, i]` is how
    many it had before row i, for which `rows` must be all of them. NO_ROOM means: give entry k room for so many values
    and continue there.

    `memory` (2, REMEMBERED) has for each slot the entry last found there and, of an UNWANTED one, its place in the
    buffer. `notes` has for each entry where its value begins and ends; 2 * row where that is of this row, 2 * row + 1
    where its values were written at once; and the slot at which it was learnt. Both begin with -1 and serve all calls
    for one buffer.
    """
    entries = table.shape[0]
    while done < rows.size:
        row = rows[U(done)]
        at = record_starts[U(row)]
        size = record_lengths[U(row)]
        if at < 0 or size < 0 or at > buffer.size or size > buffer.size - at:
            return done, REJECTED, 0, 0
        stop = at + size
        slot = np.int64(0)  # a literal 0 would have `_features` compiled a second time, for literals
        read = np.int64(0)
        noted = np.int64(0)
        while at < stop:
            tag, at = _varint(buffer, at, stop)
            if at < 0:
                return done, REJECTED, 0, 0
            if tag == U(0x0A):
                start, at = _span(buffer, at, stop)
                if at < 0:
                    return done, REJECTED, 0, 0
                slot, more_read, more_noted = _features(
                    *(buffer, start, at, slot, row, table, keys, places, memory, notes),
                    *(ints, floats, starts, lengths),
                )
                if slot < 0:
                    return done, REJECTED, 0, 0
                read += more_read
                noted += more_noted
            else:
                at = _skip(buffer, at, stop, tag)
                if at < 0:
                    return done, REJECTED, 0, 0
        if read == entries and noted == 0:
            done += 1
            continue
        for k in range(entries):
            if notes[k, 2] == 2 * row + 1:
                continue
            size = table[k, SIZE]
            wanted = table[k, KIND]
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
                kind, count = _feature(
                    buffer, notes[k, 0], notes[k, 1], wanted, room, base, ints, floats, starts, lengths
                )
            if kind == 0:
                default = table[k, DEFAULT]
                if default == NO_DEFAULT:
                    return done, REJECTED, k, 0
                count = max(size, np.int64(0))
                for i in range(count):
                    if wanted == _INT64:
                        ints[base + i] = int_defaults[default + i]
                    elif wanted == _FLOAT:
                        floats[base + i] = float_defaults[default + i]
                    else:
                        starts[base + i] = FROM_DEFAULT
                        lengths[base + i] = i
            elif kind != wanted or (size >= 0 and count != size) or count % table[k, STRIDE] != 0:
                return done, REJECTED, k, 0
            if size < 0:
                before = splits[table[k, SPLITS], row]
                if count > room:
                    return done, NO_ROOM, k, before + count
                splits[table[k, SPLITS], row + 1] = before + count
        done += 1
    return done, DONE, 0, 0
