"""Looks at the coded bits of LANES files in turn: by a table that is the same step whatever it finds.

When a block ends cannot be foreseen, and what a processor begins in vain takes as long as several codes do. So there is
no decision here: an entry says by how much to go on, which is nothing at the end of a block, and nothing where a code
is longer. Only when no lane goes on any more is it seen why. While one lane waits for its table, others go on.

Where values of coefficients are needed (`look_near`), a lane's values lie in the order in which they come, DEEP of
them, so that no look has to know which are needed: when a block is behind its lane, `small.placed` takes them from
there. What a look finds behind a block has room, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compiled.kernel import helper, inlined, maker, rarely
from penstock.image.jpeg.kernels import codes
from penstock.image.jpeg.kernels.bits import FILLED, eight_bytes
from penstock.image.jpeg.kernels.codes import ALONE, BEYOND, LOOK, SYMBOLS

LANES = 4
ENDED = 64  # where a lane is behind its block
PAST = 1 << LANES
LOOKED = 12  # bits that entries are for
LONGER = 512  # entries for longer codes, one for each 16 bits
_LOOKS = 4  # that one reading of bits is enough for
_MOST = FILLED // _LOOKS
_SHORT, _7 = np.uint64(64 - LOOKED), np.uint64(7)
# An entry's lowest six bits say how many bits its codes use, and those from _FAR on by how much they advance.
_FAR, _END = 6, 1 << 15
_PLACE = (1 << 9) - 1  # where a lane is, at most, after all looks


@maker
def look_table(kept: Any, entries: Any) -> Any:
    """Make a table of 1 << LOOKED entries for the AC codes that `codes.prepare` keeps; how long the end's code is."""
    rarely()
    for i in range(1 << LOOKED):
        entries[i] = 0
    lengths = np.zeros(1 << LOOKED, np.int8)  # of the code alone
    code, symbol, end = 0, SYMBOLS, 0
    for length in range(1, LOOKED + 1):
        for _ in range(kept[length - 1]):
            run, size = kept[symbol] >> 4, kept[symbol] & 15
            ends = size == 0 and run != 15
            if length + size <= _MOST:
                rest = LOOKED - length
                end = length if ends else end
                for i in range(code << rest, (code + 1) << rest):
                    entries[i] = _END if ends else (run + 1) << _FAR | (length + size)
                    lengths[i] = length
            code += 1
            symbol += 1
        code <<= 1
    single = entries.copy()
    for i in range(1 << LOOKED):
        entry = np.int64(single[i])
        used = entry & 63
        while 0 < used < LOOKED:
            behind = (i << used) & ((1 << LOOKED) - 1)
            more = np.int64(single[behind])
            inside = used + lengths[behind] <= LOOKED and used + (more & 63) <= _MOST
            if more & 63 == 0 or not inside or (entry + more) >> _FAR > 63:
                break
            entry += more
            used = entry & 63
        entries[i] = entry
    return end


@helper
def long_table(kept: Any, longer_from: int, entries: Any) -> None:
    """Make a table of LONGER entries for the AC codes of more than LOOKED bits, the first of which is `longer_from`.

    An entry is one code, and as in `look_table`; 0 if it is the end of a block, or there is no such code.
    """
    rarely()
    entries[:] = 0
    code, symbol = 0, SYMBOLS
    for length in range(1, 17):
        rest = 16 - length
        for _ in range(kept[length - 1]):
            run, size = kept[symbol] >> 4, kept[symbol] & 15
            if length > LOOKED and (size or run == 15):
                begin = (code << rest) - longer_from
                for i in range(begin, min(begin + (1 << rest), LONGER)):
                    entries[i] = (run + 1) << _FAR | (length + size)
            code += 1
            symbol += 1
        code <<= 1


@inlined
def bits_at(position: int) -> Any:
    """At least FILLED bits from a position on."""
    return eight_bytes(position >> 3) << (np.uint64(position) & _7)


@inlined
def _stopped(lane: int, position: int, place: int, total: Any, entry: Any, end: int, positions: Any, at: Any) -> Any:
    """Let a lane be where it stopped; what is to be decided there: 1, or PAST, where its block ends without an end."""
    if at[lane] == ENDED:
        return 0
    if place > 63:
        positions[lane], at[lane] = position - (total & 63), place - ((total >> _FAR) & _PLACE)
        return PAST << lane
    ends = entry == _END
    positions[lane], at[lane] = position + (end if ends else 0), ENDED if ends else place
    return 1 << lane if entry == 0 else 0


@inlined
def look(positions: Any, at: Any, tables: Any, ends: Any, entries: Any, still: int) -> Any:
    """Go on in all lanes until none can, or one is past its block: the lanes where something is to be decided.

    The lowest bits are of lanes at a code that is longer, or that there is not, and from PAST on of those whose block
    ends without an end. `still` is a table by which nothing goes on.
    """
    p0, p1, p2, p3 = positions[0], positions[1], positions[2], positions[3]
    k0, k1, k2, k3 = at[0] & 63, at[1] & 63, at[2] & 63, at[3] & 63
    t0 = np.uint64(still if at[0] == ENDED else tables[0])
    t1 = np.uint64(still if at[1] == ENDED else tables[1])
    t2 = np.uint64(still if at[2] == ENDED else tables[2])
    t3 = np.uint64(still if at[3] == ENDED else tables[3])
    while True:
        b0, b1, b2, b3 = bits_at(p0), bits_at(p1), bits_at(p2), bits_at(p3)
        s0 = s1 = s2 = s3 = e0 = e1 = e2 = e3 = np.int64(0)
        for _ in range(_LOOKS):
            e0, e1 = np.int64(entries[t0 + (b0 >> _SHORT)]), np.int64(entries[t1 + (b1 >> _SHORT)])
            e2, e3 = np.int64(entries[t2 + (b2 >> _SHORT)]), np.int64(entries[t3 + (b3 >> _SHORT)])
            s0, s1, s2, s3 = s0 + e0, s1 + e1, s2 + e2, s3 + e3
            b0, b1 = b0 << np.uint64(e0 & 63), b1 << np.uint64(e1 & 63)
            b2, b3 = b2 << np.uint64(e2 & 63), b3 << np.uint64(e3 & 63)
        p0, p1, p2, p3 = p0 + (s0 & 63), p1 + (s1 & 63), p2 + (s2 & 63), p3 + (s3 & 63)
        k0, k1 = k0 + ((s0 >> _FAR) & _PLACE), k1 + ((s1 >> _FAR) & _PLACE)
        k2, k3 = k2 + ((s2 >> _FAR) & _PLACE), k3 + ((s3 >> _FAR) & _PLACE)
        if (k0 | k1 | k2 | k3) & ~63 or (e0 | e1 | e2 | e3) & 63 == 0:
            break
    return (
        _stopped(0, p0, k0, s0, e0, ends[0], positions, at)
        | _stopped(1, p1, k1, s1, e1, ends[1], positions, at)
        | _stopped(2, p2, k2, s2, e2, ends[2], positions, at)
        | _stopped(3, p3, k3, s3, e3, ends[3], positions, at)
    )


@helper
def look_long(lane: int, table: int, longer_from: int, entries: Any, positions: Any, at: Any) -> Any:
    """Go on by one code that `look` left, if it is in the table of longer ones: whether it is."""
    ahead = (bits_at(positions[lane]) >> np.uint64(48)) - np.uint64(longer_from)
    if ahead >= np.uint64(LONGER):  # and so is a shorter one, whose value takes too many bits
        return False
    entry = np.int64(entries[np.uint64(table) + ahead])
    positions[lane] += entry & 63
    at[lane] = min(at[lane] + (entry >> _FAR), ENDED)
    return entry != 0


@helper
def look_up_to_end(lane: int, table: int, entries: Any, positions: Any, at: Any) -> None:
    """Go on by those looks of a lane that stay in its block, where `look` found one that is past it."""
    position, place = positions[lane], at[lane]
    bits = bits_at(position)
    for _ in range(_LOOKS):
        entry = np.int64(entries[np.uint64(table) + (bits >> _SHORT)])
        if place + (entry >> _FAR) > 63:
            break
        place += entry >> _FAR
        position += entry & 63
        bits <<= np.uint64(entry & 63)
    positions[lane], at[lane] = position, place


FIRST_LOOK = 10  # bits that entries for first coefficients are for
LOOKS = 3  # that one reading of bits is enough for
DEEP = 192  # values of a lane: as far as looks reach from behind a block
_FIRST_SHORT, _NEAR_SHORT = np.uint64(64 - FIRST_LOOK), np.uint64(64 - LOOK)
# From its lowest bits on an entry says how many bits its codes use, how many zeros there are before the first
# coefficient, by how much the place advances, what is to be added at the last place that it passes, which is the second
# coefficient if there is one, and the first coefficient.
_ZEROS, _STEP, _LAST, _FIRST = 6, 10, 15, 23
_FARTHEST, _MOST_LAST, _MOST_FIRST = 31, 127, 255
_WAITS, _ENDS = 0, 1 << _ZEROS  # they use no bits and advance by nothing, and their values are 0
_LONGER = 1 << 4  # of first coefficients: a code that is, or that there is not


@helper
def near_table(entries: Any, nears: Any) -> None:
    """Make a table of 1 << LOOK entries for needed coefficients, of the AC entries of `codes`."""
    rarely()
    for i in range(1 << LOOK):
        entry = entries[i]
        used, alone, zeros = entry & 63, (entry >> ALONE) & 63, (entry >> codes.ZEROS) & 15
        step, first, last = (entry >> codes.STEP) & 255, (entry << 16) >> 48, entry >> codes.LAST
        if used == 0 or abs(first) > _MOST_FIRST:
            nears[i] = _WAITS
        elif step == BEYOND:
            nears[i] = _ENDS
        else:
            if used == alone or step > _FARTHEST or abs(last) > _MOST_LAST:  # one coefficient, or the first alone
                used, step, last = alone, zeros + 1, 0
            nears[i] = first << _FIRST | (last & 255) << _LAST | step << _STEP | zeros << _ZEROS | used


@helper
def first_table(kept: Any, firsts: Any) -> None:
    """Make a table of 1 << FIRST_LOOK entries for the DC codes that `codes.prepare` keeps.

    An entry's lowest four bits say how many the code and its difference use, and the others are the difference.
    """
    rarely()
    firsts[:] = _LONGER
    code, symbol = 0, SYMBOLS
    for length in range(1, FIRST_LOOK + 1):
        for _ in range(kept[length - 1]):
            size = kept[symbol]
            rest = FIRST_LOOK - length - size
            for value in range(1 << size if rest >= 0 else 0):
                number = value if size == 0 or value >> (size - 1) else value - (1 << size) + 1
                begin = (code << size | value) << rest
                firsts[begin : begin + (1 << rest)] = number << 4 | (length + size)
            code += 1
            symbol += 1
        code <<= 1


@inlined
def _first(lane: int, positions: Any, starts: Any, tables: Any, entries: Any) -> Any:
    """The entry for a lane's next first coefficient, and 0, which is for nothing, where a lane rests."""
    entry = np.int64(entries[np.uint64(tables[lane]) + (bits_at(positions[lane]) >> _FIRST_SHORT)])
    return np.int64(0) if starts[lane] else entry


@inlined
def look_first(positions: Any, starts: Any, at: Any, tables: Any, entries: Any, before: Any, values: Any) -> Any:
    """Read the first coefficients of all lanes: False, and nothing is done, where a code is longer.

    `starts` says where lanes are then, if not in their blocks: they stay where they are.
    """
    e0, e1 = _first(0, positions, starts, tables, entries), _first(1, positions, starts, tables, entries)
    e2, e3 = _first(2, positions, starts, tables, entries), _first(3, positions, starts, tables, entries)
    if e0 == _LONGER or e1 == _LONGER or e2 == _LONGER or e3 == _LONGER:
        return False
    v0, v1, v2, v3 = before[0] + (e0 >> 4), before[1] + (e1 >> 4), before[2] + (e2 >> 4), before[3] + (e3 >> 4)
    before[0], before[1], before[2], before[3] = v0, v1, v2, v3
    values[0], values[DEEP], values[2 * DEEP], values[3 * DEEP] = v0, v1, v2, v3
    positions[0], positions[1], positions[2], positions[3] = (
        positions[0] + (e0 & 15),
        positions[1] + (e1 & 15),
        positions[2] + (e2 & 15),
        positions[3] + (e3 & 15),
    )
    at[0], at[1], at[2], at[3] = max(starts[0], 1), max(starts[1], 1), max(starts[2], 1), max(starts[3], 1)
    return True


@inlined
def _keep(place: Any, entry: Any, values: Any) -> Any:
    """Put the values of an entry to their places; the place that it leads to."""
    values[np.uint64(place + ((entry >> _ZEROS) & 15))] = entry >> _FIRST
    place += (entry >> _STEP) & 31
    values[np.uint64(place - 1)] += (entry << (56 - _LAST)) >> 56
    return place


@inlined
def _near_stopped(lane: int, used: Any, place: Any, entry: Any, end: int, positions: Any, at: Any) -> Any:
    """Let a lane be where its looks led, if that is in its block; whether it waits there, as a bit."""
    if at[lane] == ENDED:
        return 0
    if place > 63:
        return 1 << lane
    ends = entry == _ENDS
    positions[lane] += used + (end if ends else 0)
    at[lane] = ENDED if ends else place
    return 1 << lane if entry == _WAITS else 0


@inlined
def look_near(positions: Any, at: Any, tables: Any, ends: Any, entries: Any, values: Any) -> Any:
    """Go on by some looks in all lanes, and keep the values: the lanes that wait for a code by itself, a bit each.

    A lane that is behind its block stays there. One that would go past it stays where it is and waits, and does so
    again from each code on: as long as coefficients are needed, all of them are put right by codes read by themselves.
    """
    b0, b1, b2, b3 = bits_at(positions[0]), bits_at(positions[1]), bits_at(positions[2]), bits_at(positions[3])
    t0, t1, t2, t3 = np.uint64(tables[0]), np.uint64(tables[1]), np.uint64(tables[2]), np.uint64(tables[3])
    k0, k1, k2, k3 = at[0], DEEP + at[1], 2 * DEEP + at[2], 3 * DEEP + at[3]
    s0 = s1 = s2 = s3 = e0 = e1 = e2 = e3 = np.int64(0)
    for _ in range(LOOKS):
        e0, e1 = np.int64(entries[t0 + (b0 >> _NEAR_SHORT)]), np.int64(entries[t1 + (b1 >> _NEAR_SHORT)])
        e2, e3 = np.int64(entries[t2 + (b2 >> _NEAR_SHORT)]), np.int64(entries[t3 + (b3 >> _NEAR_SHORT)])
        k0, k1, k2, k3 = _keep(k0, e0, values), _keep(k1, e1, values), _keep(k2, e2, values), _keep(k3, e3, values)
        s0, s1, s2, s3 = s0 + e0, s1 + e1, s2 + e2, s3 + e3
        b0, b1 = b0 << np.uint64(e0 & 63), b1 << np.uint64(e1 & 63)
        b2, b3 = b2 << np.uint64(e2 & 63), b3 << np.uint64(e3 & 63)
    return (
        _near_stopped(0, s0 & 63, k0, e0, ends[0], positions, at)
        | _near_stopped(1, s1 & 63, k1 - DEEP, e1, ends[1], positions, at)
        | _near_stopped(2, s2 & 63, k2 - 2 * DEEP, e2, ends[2], positions, at)
        | _near_stopped(3, s3 & 63, k3 - 3 * DEEP, e3, ends[3], positions, at)
    )


@inlined
def look_near_alone(lane: Any, positions: Any, at: Any, tables: Any, ends: Any, entries: Any, values: Any) -> Any:
    """`look_near` in one lane."""
    bits, table, place = bits_at(positions[lane]), np.uint64(tables[lane]), lane * DEEP + at[lane]
    used = entry = np.int64(0)
    for _ in range(LOOKS):
        entry = np.int64(entries[table + (bits >> _NEAR_SHORT)])
        place = _keep(place, entry, values)
        used += entry & 63
        bits <<= np.uint64(entry & 63)
    return _near_stopped(lane, used, place - lane * DEEP, entry, ends[lane], positions, at)
