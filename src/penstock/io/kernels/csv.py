"""The compiled CSV scanner and its numbers: whole chunks at a time, without the GIL.

`penstock.io.csv_rows` and `penstock.io.csv_values` define what they give. A number that takes more than a float64's own
arithmetic is left to the plain parser. Every index is checked before it is read.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from penstock.compiled.kernel import helper, kernel
from penstock.compiled.only_for import only_for

types: Any = numba.types

U = np.uint64

FINE, QUOTE_INSIDE, TEXT_BEHIND, UNCLOSED = 0, 1, 2, 3
GOOD, BAD, UNSURE = 0, 1, 2  # what is said about a number

_LF, _CR = 10, 13
_MOST = U(0xFFFFFFFFFFFFFFFF)
_EXACT = 1 << 53  # integers up to here are floats
_POWERS = np.array([10.0**i for i in range(23)])  # all exact

_BYTES = types.Array(types.uint8, 1, "C", readonly=True)
_INTS, _GRID = types.Array(types.int64, 1, "C"), types.Array(types.int64, 2, "C")
_FLOATS, _FLAGS = types.Array(types.float64, 1, "C"), types.Array(types.uint8, 1, "C")
_ROWS = types.int64(
    *(_BYTES, types.int64, types.boolean, types.int64, types.int64), *(_GRID, _GRID, _INTS, _INTS, _FLAGS)
)


@helper
def _field(buffer: Any, at: Any, delimiter: Any, quote: Any) -> Any:
    """The field that begins at `at`: (start, length, status, where the delimiter or line end behind it is)."""
    size = buffer.size
    start = at
    stop = -1
    status = FINE
    doubled = False
    if at < size and buffer[at] == quote:
        at += 1
        start = at
        while True:
            while at < size and buffer[at] != quote:
                at += 1
            if at == size:
                return start, at - start, UNCLOSED, at
            if at + 1 == size or buffer[at + 1] != quote:
                break
            doubled = True
            at += 2
        stop = at
        at += 1
    while at < size:
        byte = buffer[at]
        if byte == delimiter or byte == _LF or byte == _CR:  # noqa: SIM109 - numba is quicker so
            break
        if stop >= 0:
            status = TEXT_BEHIND
        elif byte == quote:
            status = QUOTE_INSIDE
        at += 1
    length = at - start if stop < 0 else stop - start
    return start, ~length if doubled else length, status, at


@only_for(_ROWS)
@kernel
def rows(
    buffer: Any,
    at: Any,
    final: Any,
    delimiter: Any,
    quote: Any,
    starts: Any,
    lengths: Any,
    offsets: Any,
    counts: Any,
    statuses: Any,
) -> Any:
    """What `csv_rows.plain_rows` gives."""
    size = buffer.size
    for row in range(counts.size):
        offsets[row] = at
        if at >= size:
            return row
        count = 0
        worst = FINE
        while True:
            start, length, status, at = _field(buffer, at, delimiter, quote)
            if count < starts.shape[0]:
                starts[count, row] = start
                lengths[count, row] = length
            count += 1
            if worst == FINE:
                worst = status
            if at == size or buffer[at] != delimiter:
                break
            at += 1
        if not final and (at == size or (buffer[at] == _CR and at + 1 == size)):
            return row
        counts[row] = count
        statuses[row] = worst
        if at < size:
            at += 2 if buffer[at] == _CR and at + 1 < size and buffer[at + 1] == _LF else 1
    offsets[counts.size] = at
    return counts.size


@helper
def _is_space(byte: Any) -> Any:
    return byte == 32 or 9 <= byte <= 13


@helper
def _trimmed(buffer: Any, start: Any, length: Any) -> Any:
    """(start, stop) of a field without the spaces around it; empty where it is not inside the buffer."""
    stop = start + length
    if start < 0 or length < 0 or stop > buffer.size:
        return 0, 0
    while start < stop and _is_space(buffer[start]):
        start += 1
    while start < stop and _is_space(buffer[stop - 1]):
        stop -= 1
    return start, stop


@only_for(types.void(_BYTES, _INTS, _INTS, types.int64, types.int64, _INTS, _FLAGS))
@kernel
def ints(buffer: Any, starts: Any, lengths: Any, low: Any, high: Any, values: Any, states: Any) -> Any:
    """The integers that fields are, and whether each is one from `low` to `high`."""
    for i in range(starts.size):
        at, stop = _trimmed(buffer, starts[i], lengths[i])
        states[i] = BAD
        values[i] = 0
        negative = at < stop and buffer[at] == 45
        if at < stop and (negative or buffer[at] == 43):
            at += 1
        if at == stop:
            continue
        most = U(-(low + 1)) + U(1) if negative else U(high)
        value = U(0)
        good = True
        while at < stop:
            digit = U(buffer[at]) - U(48)  # what is below "0" becomes very large
            if digit > U(9) or value > most // U(10) or value * U(10) > most - digit:
                good = False
                break
            value = value * U(10) + digit
            at += 1
        if good:
            states[i] = GOOD
            values[i] = np.int64(U(0) - value) if negative else np.int64(value)


@helper
def _float(buffer: Any, at: Any, stop: Any) -> Any:
    """(state, value) of a number without spaces around it.

    A mantissa below 2**53 and a power of ten up to 22 are floats themselves, and one operation on them rounds correctly
    (Clinger 1990).
    """
    negative = at < stop and buffer[at] == 45
    if at < stop and (negative or buffer[at] == 43):
        at += 1
    mantissa = 0
    digits = 0
    behind = 0  # digits behind the point
    point = False
    exact = True
    while at < stop:
        byte = buffer[at]
        if byte == 46:
            if point:
                return BAD, 0.0
            point = True
        elif 48 <= byte <= 57:
            digits += 1
            mantissa = mantissa * 10 + (byte - 48)
            behind += point
            if mantissa > _EXACT:
                exact = False
                mantissa = _EXACT
        else:
            break
        at += 1
    if digits == 0:
        return UNSURE, 0.0  # a name, or no number
    exponent = 0
    if at < stop:
        if buffer[at] != 101 and buffer[at] != 69:
            return UNSURE, 0.0
        at += 1
        down = at < stop and buffer[at] == 45
        if at < stop and (down or buffer[at] == 43):
            at += 1
        if at == stop:
            return BAD, 0.0
        while at < stop:
            byte = buffer[at]
            if byte < 48 or byte > 57:
                return BAD, 0.0
            exponent = min(exponent * 10 + (byte - 48), 100000)
            at += 1
        if down:
            exponent = -exponent
    exponent -= behind
    if not exact or exponent < -22 or exponent > 22:
        return UNSURE, 0.0
    value = np.float64(mantissa)
    value = value / _POWERS[-exponent] if exponent < 0 else value * _POWERS[exponent]
    return GOOD, -value if negative else value


@only_for(types.void(_BYTES, _INTS, _INTS, types.boolean, _FLOATS, _FLAGS))
@kernel
def floats(buffer: Any, starts: Any, lengths: Any, single: Any, values: Any, states: Any) -> Any:
    """The numbers that fields are, and whether each is one; UNSURE leaves it to the plain parser.

    `values` are correctly rounded; with `single` those whose rounding to float32 might differ are UNSURE.
    """
    for i in range(starts.size):
        at, stop = _trimmed(buffer, starts[i], lengths[i])
        state, value = _float(buffer, at, stop)
        if state == GOOD and single:
            low = values[i : i + 1]
            low[0] = value
            if low.view(np.uint64)[0] & U(0x1FFFFFFF) == U(0x10000000):
                state = UNSURE
        values[i] = value
        states[i] = state
