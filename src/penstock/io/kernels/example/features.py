"""The parser of an Example message and its map from names to values.

Entries often have the same position as in the message before.
"""

from __future__ import annotations

import numpy as np

from penstock.io.kernels.example import (
    AT_1,
    FIRST,
    HEAD,
    KEY_AT,
    KEY_SIZE,
    LAST,
    LONGEST,
    M1,
    M2,
    M3,
    MASK_0,
    MASK_1,
    REMEMBERED,
    UNKNOWN,
    UNWANTED,
    WORD_0,
    WORD_1,
    WORD_2,
)
from penstock.io.kernels.example.values import address_of, bytes_at, direct, skip, span, varint
from penstock.io.kernels.loads import load64
from penstock.native.kernel import helper, inlined

U = np.uint64


@helper
def _words(buffer, at, size):
    """Return the first and the last eight bytes of a key. A shorter key is padded with zeros, and has no last word."""
    if size >= 8:
        return load64(buffer, at), load64(buffer, at + size - 8)
    if buffer.size - at >= 8:
        return load64(buffer, at) & ((U(1) << U(8 * size)) - U(1)), U(0)
    word = U(0)
    for i in range(size):
        word |= U(buffer[U(at + i)]) << U(8 * i)
    return word, U(0)


@helper
def _same_middle(buffer, at, size, keys, key_at):
    """Return True if two keys with equal length, first and last word are equal in between."""
    same = True
    for i in range(8, size - 8):
        same = same and buffer[U(at + i)] == keys[U(key_at + i)]
    return same


@helper
def find(buffer, at, size, table, keys, places):
    """Return the entry with this key, or -1. `places` is an open-addressed hash table; its size is a power of two."""
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


# The lengths in the last eight bytes before a list's values: of the feature, its list, and the packed values.
_LENGTHS = 0x0100010001000000


@inlined
def expected_entry(buffer, at, stop, table, k, keys):
    """Return the number of bytes of the values of entry k, if it stands here in the usual spelling, else -1.

    In the usual spelling, every length has one byte:

        0A length | 0A length key | 12 length | kind length | 0A length | values

    The general parser accepts the same bytes with the same result. This function compares all bytes except the lengths
    as words; the last word ends before the values. It also checks that the lengths agree.
    """
    if stop - at < 2:
        return -1
    length = np.int64(buffer[U(at + 1)])
    head = table[k, HEAD]
    size = length + 2 - head
    if size < 0 or size > table[k, LONGEST] or length > stop - at - 2:
        return -1
    wrong = (load64(buffer, at) & U(table[k, MASK_0])) ^ U(table[k, WORD_0])
    wrong |= (load64(buffer, at + table[k, AT_1]) & U(table[k, MASK_1])) ^ U(table[k, WORD_1])
    wrong |= load64(buffer, at + head - 8) ^ (U(table[k, WORD_2]) + U(size) * U(_LENGTHS))
    if wrong != U(0):
        return -1
    if head > 24:  # compare the bytes of the key that no word contains
        i = np.int64(12)
        size_of_key = table[k, KEY_SIZE]
        key = table[k, KEY_AT]
        while i < size_of_key - 2:
            i = min(i, size_of_key - 8)
            if load64(buffer, at + 4 + i) != load64(keys, key + i):
                return -1
            i += 8
    return size


@inlined
def same_unwanted(buffer, at, stop, address):
    """Return the end of the entry here, if it has the key of the entry at `address`, in the usual spelling; else -1."""
    size = np.int64(bytes_at(address, 4)[U(3)])
    if stop - at < size + 6:
        return -1
    end = at + 2 + np.int64(buffer[U(at + 1)])
    value = at + size + 6
    if end > stop or buffer[U(at)] != 0x0A or buffer[U(at + 1)] > 127 or value > end:
        return -1
    if buffer[U(value - 2)] != 0x12 or value + np.int64(buffer[U(value - 1)]) != end:
        return -1
    before = bytes_at(address, size + 4)
    for i in range(2, size + 4):
        if buffer[U(at + i)] != before[U(i)]:
            return -1
    return end


@helper
def map_entry(buffer, at, end):
    """Return (is valid, start of the key, size of the key, start of the value, end of the value)."""
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


@helper
def as_before(buffer, at, stop, slot, row, tables, out):
    """Read entries at the positions of the message before, and write them at once.

    Return (position, slot, entries read).
    """
    table, keys, _, memory, notes = tables
    first = slot
    while at < stop and slot < REMEMBERED:
        guess = memory[0, U(slot)]
        if guess < 0:
            break
        k = U(guess)
        size = expected_entry(buffer, at, stop, table, k, keys)
        if size < 0:
            break
        value = at + table[k, HEAD]
        if not direct(buffer, value, size, table, k, row, out):
            break
        at = value + size
        notes[k, 2] = 2 * row + 1
        slot += 1
    return at, slot, slot - first


@helper
def features(buffer, at, stop, slot, row, tables, out):
    """Read the described features of a `Features` message, or note their positions. Return (next slot, read, noted).

    A slot is the number of a map entry in a record, from which its feature is guessed. The first result is -1 for a
    malformed message.
    """
    table, keys, places, memory, notes = tables
    read = np.int64(0)
    noted = np.int64(0)
    while True:
        at, slot, more = as_before(buffer, at, stop, slot, row, tables, out)
        read += more
        if at >= stop:
            break
        guess = memory[0, U(slot)] if slot < REMEMBERED else UNKNOWN
        if guess >= 0:
            k = U(guess)
            size = expected_entry(buffer, at, stop, table, k, keys)
            if size >= 0:
                value = at + table[k, HEAD]
                at = value + size
                slot += 1
                if direct(buffer, value, size, table, k, row, out):
                    read += 1
                    notes[k, 2] = 2 * row + 1
                else:
                    noted += 1
                    notes[k, 0] = value - 4
                    notes[k, 1] = at
                    notes[k, 2] = 2 * row
                continue
        elif guess == UNWANTED:
            end = same_unwanted(buffer, at, stop, memory[1, U(slot)])
            if end >= 0:
                at = end
                slot += 1
                continue
        entry = at
        tag, at = varint(buffer, at, stop)
        if at < 0:
            return -1, 0, 0
        if tag != U(0x0A):
            at = skip(buffer, at, stop, tag)
            if at < 0:
                return -1, 0, 0
            continue
        at, end = span(buffer, at, stop)
        if end < 0:
            return -1, 0, 0
        sound, key, size, start, last_at = map_entry(buffer, at, end)
        if not sound:
            return -1, 0, 0
        at = end
        found = find(buffer, key, size, table, keys, places)
        if found >= 0:
            noted += 1
            notes[found, 0] = start
            notes[found, 1] = last_at
            notes[found, 2] = 2 * row
            known = notes[found, 3]
            if known >= 0 and memory[0, U(known)] == found:
                slot = known  # some entries were left out or have another order: continue after this one
            elif slot < REMEMBERED:
                memory[0, U(slot)] = found
                notes[found, 3] = slot
        elif slot < REMEMBERED:
            usual = key == entry + 4 and start == key + size + 2 and last_at == end
            memory[0, U(slot)] = UNWANTED if usual else UNKNOWN
            memory[1, U(slot)] = address_of(buffer) + entry
        slot += 1
    return slot, read, noted


@inlined
def all_features(buffer, at, stop, row, tables, out):
    """Return (features written, features noted) of the record from `at` to `stop`.

    The first is -1 if it is malformed. `tables` are the table, keys, places, memory and notes of `parse`, and `out` its
    arrays of values.
    """
    slot = np.int64(0)  # a literal 0 would compile `features` a second time, for literals
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
            slot, more_written, more_noted = features(buffer, start, at, slot, row, tables, out)
            if slot < 0:
                return -1, 0
            written += more_written
            noted += more_noted
        else:
            at = skip(buffer, at, stop, tag)
            if at < 0:
                return -1, 0
    return written, noted
