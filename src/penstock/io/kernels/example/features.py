"""An Example message: the map from names to values, whose entries often stand where they stood in the record before."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compiled.kernel import helper, inlined
from penstock.compiled.uncounted import uncounted
from penstock.io.kernels.example.keys import expected_entry, find, same_unwanted
from penstock.io.kernels.example.table import HEAD, REMEMBERED, UNKNOWN, UNWANTED
from penstock.io.kernels.example.values import direct
from penstock.io.kernels.example.wire import address_of, skip, span, varint

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


@uncounted
@helper
def as_before(
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
        size = expected_entry(buffer, at, stop, table, k, keys)
        if size < 0:
            break
        value = at + table[k, HEAD]
        if not direct(buffer, value, size, table, k, row, ints, floats, starts, lengths):
            break
        at = value + size
        notes[k, 2] = 2 * row + 1
        slot += 1
    return at, slot, slot - first


@uncounted
@helper
def features(
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
        at, slot, more = as_before(
            *(buffer, at, stop, slot, row, table, keys, memory, notes),
            *(ints, floats, starts, lengths),
        )
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
                if direct(buffer, value, size, table, k, row, ints, floats, starts, lengths):
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
                slot = known  # some were left out, or have another order: go on behind this one
            elif slot < REMEMBERED:
                memory[0, U(slot)] = found
                notes[found, 3] = slot
        elif slot < REMEMBERED:
            usual = key == entry + 4 and start == key + size + 2 and last_at == end
            memory[0, U(slot)] = UNWANTED if usual else UNKNOWN
            memory[1, U(slot)] = address_of(buffer) + entry
        slot += 1
    return slot, read, noted


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
