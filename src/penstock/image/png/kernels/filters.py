"""Compiled filters of PNG's rows: their removal, and their choice for encoding."""

from __future__ import annotations

import numpy as np

from penstock.image.png.kernels.memory import B, S, U, add_paeth, narrow, widen
from penstock.native.kernel import helper, inlined, kernel, specialised

HALF = 5  # filter 3 in the first row, with nothing above: half of the left neighbour


@helper
def _paeth(left, up, corner):
    """Return the neighbour nearest to left + up - corner, with comparisons that need no branches."""
    bound = 3 * corner - (left + up)
    low, high = min(left, up), max(left, up)
    inner = low if high <= bound else corner
    return high if bound <= low else inner


@helper
def _undo(kind, value, left, up, corner):
    """Return a byte under filter 1, 3 or 4, or HALF, from its difference and its three neighbours."""
    if kind == 1:
        return B(value + left)
    if kind == HALF:
        return B(value + (left >> 1))
    if kind == 3:
        return B(np.int32(value) + ((np.int32(left) + np.int32(up)) >> 1))
    return B(np.int32(value) + _paeth(np.int32(left), np.int32(up), np.int32(corner)))


@specialised
def _undo_row(kind, raw, source, out, row, above, stride, step):
    """Decode a row under filter 1, 3 or 4, or HALF. Neighbours stay in registers, with three channels in parallel."""
    if step == 3:
        a, b, c = B(0), B(0), B(0)
        d, e, f = B(0), B(0), B(0)
        for x in range(0, stride, 3):
            u, v, w = out[U(above + x)], out[U(above + x + 1)], out[U(above + x + 2)]
            a = _undo(kind, raw[U(source + x)], a, u, d)
            b = _undo(kind, raw[U(source + x + 1)], b, v, e)
            c = _undo(kind, raw[U(source + x + 2)], c, w, f)
            out[U(row + x)], out[U(row + x + 1)], out[U(row + x + 2)] = a, b, c
            d, e, f = u, v, w
        return
    for first in range(step):
        left, corner = B(0), B(0)
        for x in range(first, stride, step):
            up = out[U(above + x)]
            left = _undo(kind, raw[U(source + x)], left, up, corner)
            out[U(row + x)] = left
            corner = up


@helper
def _last_pixel(data, at, step):
    """Return the pixel of three or four bytes at `at` as lanes of 16 bits, without reading further bytes."""
    value = U(data[U(at)]) | U(data[U(at + 1)]) << U(16) | U(data[U(at + 2)]) << U(32)
    return value | U(data[U(at + 3)]) << U(48) if step == 4 else value


@helper
def _put_last(out, at, value, step):
    """Write the first `step` lanes of `value` as bytes, without writing further bytes."""
    for c in range(step):
        out[U(at + c)] = B(value >> U(16 * c))


@helper
def _undo_two_paeth_rows(raw, source, out, row, stride, step):
    """Decode two rows under filter 4. Pixels have three or four bytes, and rows at least three pixels.

    A pixel needs its left neighbour, so a single row leaves most of the processor idle. The second row runs one pixel
    after the first. If pixels have three bytes, a store writes one extra byte, which the next pixel overwrites.
    """
    above, below, second = row - stride, row + stride, source + stride + 1
    corner = widen(out, above)
    left = add_paeth(widen(raw, source), U(0), corner, U(0))
    narrow(out, row, left)
    left_below, corner_below = U(0), U(0)
    last = stride - step
    for x in range(step, last, step):
        up = widen(out, above + x)
        value = add_paeth(widen(raw, source + x), left, up, corner)
        left_below = add_paeth(widen(raw, second + x - step), left_below, left, corner_below)
        narrow(out, row + x, value)
        narrow(out, below + x - step, left_below)
        corner, corner_below, left = up, left, value
    value = add_paeth(_last_pixel(raw, source + last, step), left, _last_pixel(out, above + last, step), corner)
    _put_last(out, row + last, value, step)
    left_below = add_paeth(widen(raw, second + last - step), left_below, left, corner_below)
    narrow(out, below + last - step, left_below)
    value = add_paeth(_last_pixel(raw, second + last, step), left_below, value, left)
    _put_last(out, below + last, value, step)


@kernel("raw: w u8[:], height: i64, stride: i64, step: i64, out: w u8[:], to: i64 -> bool")
def unfilter(raw, height, stride, step, out, to):
    """Undo the filters of `height` rows of `raw`, each a filter's number and `stride` bytes, into `out[to:]`.

    `step` is the distance in bytes to the left neighbour, and divides `stride`. Returns False for an invalid filter
    number. The caller has checked that both arrays are long enough.
    """
    paired = (step == 3 or step == 4) and stride >= 3 * step
    done = 0  # rows that are finished already
    for y in range(height):
        if y < done:
            continue
        source = y * (stride + 1) + 1
        row = to + y * stride
        above = row - stride
        kind = S(raw[source - 1])
        if kind > 4:
            return False
        if paired and kind == 4 and 0 < y < height - 1 and raw[source + stride] == 4:
            _undo_two_paeth_rows(raw, source, out, row, stride, step)
            done = y + 2
            continue
        if y == 0:  # above the first row everything is 0
            above = row
            kind = 0 if kind == 2 else HALF if kind == 3 else 1 if kind == 4 else kind
        if kind == 0:
            for x in range(stride):
                out[U(row + x)] = raw[U(source + x)]
        elif kind == 1:
            _undo_row(1, raw, source, out, row, above, stride, step)
        elif kind == 2:
            for x in range(stride):
                out[U(row + x)] = B(raw[U(source + x)] + out[U(above + x)])
        elif kind == 3:
            _undo_row(3, raw, source, out, row, above, stride, step)
        elif kind == 4:
            _undo_row(4, raw, source, out, row, above, stride, step)
        else:
            _undo_row(HALF, raw, source, out, row, above, stride, step)
    return True


_FILTERS = 5


@inlined
def _paeth_guess(left, up, corner):
    to_left, to_up, to_corner = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
    if to_left <= to_up and to_left <= to_corner:
        return left
    return up if to_up <= to_corner else corner


@inlined
def _guess(kind, left, up, corner):
    """Return the prediction of a filter for a byte, from its neighbours."""
    if kind == 0:
        return np.int32(0)
    if kind == 1:
        return left
    if kind == 2:
        return up
    if kind == 3:
        return (left + up) >> 1
    return _paeth_guess(left, up, corner)


@helper
def _row(above, row, stride, kind, out):
    """Write the differences of a row under one filter into out[1:]. Return the sum of their absolute signed values."""
    cost = 0
    for x in range(row.size):
        left = np.int32(row[x - stride]) if x >= stride else np.int32(0)
        corner = np.int32(above[x - stride]) if x >= stride else np.int32(0)
        difference = (np.int32(row[x]) - _guess(kind, left, np.int32(above[x]), corner)) & 255
        out[1 + x] = np.uint8(difference)
        cost += difference if difference < 128 else 256 - difference
    return cost


@kernel("rows: w u8[:, :], stride: i64, best: w u8[:, :], tried: w u8[:]", makes_arrays=True)
def choose(rows, stride, best, tried):
    """Write each of `rows` into `best`, after the number of its filter. `tried` has room for one row of `best`."""
    height, width = rows.shape
    above = np.zeros(width, np.uint8)
    for y in range(height):
        least = np.int64(-1)
        for kind in range(_FILTERS):
            cost = _row(above, rows[y], stride, kind, tried)
            if least < 0 or cost < least:
                least = cost
                tried[0] = kind
                for x in range(1 + width):
                    best[y, x] = tried[x]
        above = rows[y]
