"""Decoding of a file to samples: the planes of luma and colour, in whole blocks, with a margin around each row.

The module also has the blocks of a unit, and the restarts between units.
"""

from __future__ import annotations

import numpy as np

from penstock.image.jpeg.kernels import (
    AC,
    ACROSS,
    COMPONENTS,
    DC,
    DOWN,
    HEIGHT,
    LOOK,
    QUANT,
    RESTART,
    SCAN,
    WIDTH,
)
from penstock.image.jpeg.kernels.bits import ZERO, at_marker, byte, fill, signed
from penstock.image.jpeg.kernels.codes import (
    ALONE,
    FIRST,
    LAST,
    LOOKS,
    STEP,
    ZEROS,
    difference,
    long_code,
    prepare,
    tables_in,
)
from penstock.image.jpeg.kernels.dct import SAMPLES, WIDE, accurate_idct, fast_idct
from penstock.image.jpeg.kernels.headers import EOI
from penstock.native.kernel import helper, maker

MOST_BLOCKS = 6  # blocks per unit
RST0 = 0xD0
_UNTIL, _DONE = 0, 1  # in `restarts`: units until the next restart, and number of restarts so far


SPARE = 8 * SAMPLES  # coefficients for the blocks that are read but not needed


@maker
def new_numbers():
    """Return memory for numbers of each component, or of each block of a unit.

    It has each component's DC and AC tables; each block's component, its position in a row of units, and the distance
    to its position in the next unit; each component's last DC; and the restarts.
    """
    used, components, begins = np.zeros(6, np.int64), np.zeros(MOST_BLOCKS, np.int64), np.zeros(MOST_BLOCKS, np.int64)
    return used, components, begins, np.zeros(MOST_BLOCKS, np.int64), np.zeros(3, np.int64), np.zeros(2, np.int64)


@helper
def lay_out_unit(header, blocks, colour_blocks, numbers):
    """Return the number of blocks in a unit, luma row by row, then one of each colour.

    Reset the DC values and restarts.
    """
    _, components, begins, steps, before, restarts = numbers
    across, down = header[ACROSS], header[DOWN]
    luma = across * down
    for b in range(luma):
        components[b] = 0
        begins[b] = (b // across) * blocks + b % across
        steps[b] = across
    for c in range(header[COMPONENTS] - 1):
        components[luma + c] = c + 1
        begins[luma + c] = down * blocks + c * colour_blocks
        steps[luma + c] = 1
    before[0] = before[1] = before[2] = 0
    restarts[_UNTIL], restarts[_DONE] = header[RESTART], 0
    return luma + header[COMPONENTS] - 1


@helper
def before_unit(at, end, bits, count, missing, header, before, restarts):
    """Skip a restart marker if one is due. Return the reader's state, and False if the marker is missing."""
    if restarts[_UNTIL] == 0:
        if not at_marker(at, end, count, missing, RST0 + restarts[_DONE] % 8):
            return at, bits, count, missing, False
        at += 2
        bits = count = missing = ZERO
        before[0] = before[1] = before[2] = 0
        restarts[_UNTIL] = header[RESTART]
        restarts[_DONE] += 1
    restarts[_UNTIL] -= 1
    return at, bits, count, missing, True


MARGIN = 32  # samples that vector steps may access on either side of a row

_SHORT = np.uint64(64 - LOOK)
_63 = np.uint64(63)


def _along_diagonals(cell: tuple[int, int]) -> tuple[int, int]:
    diagonal = cell[0] + cell[1]
    return diagonal, cell[0] if diagonal % 2 else cell[1]


_ZIGZAG = np.array(sorted(((r, c) for r in range(8) for c in range(8)), key=_along_diagonals))
NATURAL = _ZIGZAG[:, 0] * 8 + _ZIGZAG[:, 1]
# The position of coefficient k in its half of a vector's rows. Positions after the end, from damage, map to the last.
_PLACES = np.append(_ZIGZAG[:, 0] * SAMPLES + _ZIGZAG[:, 1], np.full(192, 7 * SAMPLES + 7)).astype(np.int64)

# The fast DCT's own factors, by which a table of quantisation is multiplied: cos(k pi / 16) sqrt(2), and 1 for k = 0.
_COSINES = np.array([1.0, *(np.cos(np.arange(1, 8) * np.pi / 16) * np.sqrt(2))])
_SCALES = np.round(np.outer(_COSINES, _COSINES) * (1 << 14)).astype(np.int64).reshape(-1)


@helper
def layout(header):
    """Return the sizes of the planes of luma and of colour.

    These are blocks across (rounded up to whole vectors), bytes of a row, and bytes of a plane.

    The order is (luma, colour, luma, colour, luma, colour). The planes of luma, Cb and Cr follow one another.
    """
    across, down = header[ACROSS], header[DOWN]
    units_x = (header[WIDTH] + 8 * across - 1) // (8 * across)
    units_y = (header[HEIGHT] + 8 * down - 1) // (8 * down)
    blocks = (units_x * across + WIDE - 1) // WIDE * WIDE
    colour_blocks = (units_x + WIDE - 1) // WIDE * WIDE
    stride, colour_stride = blocks * 8 + 2 * MARGIN, colour_blocks * 8 + 2 * MARGIN
    return blocks, colour_blocks, stride, colour_stride, units_y * down * 8 * stride, units_y * 8 * colour_stride


@helper
def room(header):
    """Return the number of coefficients in a row of units, and the number of samples in the image."""
    blocks, colour_blocks, _, _, plane, colour_plane = layout(header)
    others = header[COMPONENTS] - 1
    return (header[DOWN] * blocks + others * colour_blocks) * 64, plane + others * colour_plane


@maker
def new_work(in_row, memory):
    """Return working memory of `decode_planes`, for up to `in_row` coefficients in a row of units.

    `memory` is that of `tables_in`.
    """
    return tables_in(memory), np.empty(3 * 64, np.int16), np.empty(in_row + SPARE, np.int16), new_numbers()


@helper
def share_tables(header, used):
    """Compute the table of each component, DC, then AC.

    A table that several components share has the first's number.
    """
    for i in range(header[COMPONENTS]):
        for kind in range(2):
            number, column = 3 * kind + i, AC if kind else DC
            used[number] = number
            for j in range(i):
                if header[column + j] == header[column + i]:
                    used[number] = used[3 * kind + j]


@helper
def make_tables(start, header, tables, factors, used, accurate):
    """Compute the factors of each component's coefficients, and its tables: `used` by DC, then by AC."""
    share_tables(header, used)
    for i in range(header[COMPONENTS]):
        for k in range(64):
            factor = byte(start + header[QUANT + i] + k)
            if not accurate:
                factor = (factor * _SCALES[NATURAL[k]] + (1 << 11)) >> 12
            factors[i * 64 + NATURAL[k]] = factor
        for kind in range(2):
            column = AC if kind else DC
            number = 3 * kind + i
            if used[number] == number and not prepare(start + header[column + i], number, tables):
                return False
    return True


@helper
def _idct(accurate, coefficients, at, factors, number, samples, to, stride):
    if accurate:
        accurate_idct(coefficients, at, factors, number, samples, to, stride)
    else:
        fast_idct(coefficients, at, factors, number, samples, to, stride)


@helper
def _transform(header, unit_y, window, only_luma, accurate, work, samples):
    """Compute the samples of a row of units, of the columns that the window needs."""
    blocks, colour_blocks, stride, colour_stride, plane, colour_plane = layout(header)
    _, factors, coefficients, _ = work
    _, _, left, right = window
    down = header[DOWN]
    for v in range(down):
        to = (unit_y * down + v) * 8 * stride + MARGIN
        for i in range(left // SAMPLES * WIDE, min(blocks, (right + 7) // 8), WIDE):
            _idct(accurate, coefficients, (v * blocks + i) * 64, factors, 0, samples, to + i * 8, stride)
    if only_luma:
        return
    across = header[ACROSS]
    width = (header[WIDTH] + across - 1) // across
    first, last = max(left // across - 1, 0) // SAMPLES * WIDE, min((right // across + 9) // 8, colour_blocks)
    for c in range(header[COMPONENTS] - 1):
        to = plane + c * colour_plane + unit_y * 8 * colour_stride + MARGIN
        begin = (down * blocks + c * colour_blocks) * 64
        for i in range(first, last, WIDE):
            _idct(accurate, coefficients, begin + i * 64, factors, (c + 1) * 64, samples, to + i * 8, colour_stride)
        for i in range(8):  # the edges of a row are repeated beyond it
            samples[to + i * colour_stride - 1] = samples[to + i * colour_stride]
            samples[to + i * colour_stride + width] = samples[to + i * colour_stride + width - 1]


@helper
def decode_planes(
    start,
    size,
    header,
    work,
    samples,
    only_luma,
    window,
    accurate,
):
    """Decode a file of `size` bytes at `start` into `samples`. Return True if all of it was valid.

    `work` is the result of `new_work`, and `samples` has the size from `room`. All codes are read, but only blocks for
    the `window` are transformed: it has the first row and the end of the rows, then those of the columns.
    """
    top, bottom, left, right = window
    across, down = header[ACROSS], header[DOWN]
    blocks, colour_blocks, _, _, _, _ = layout(header)
    in_row, in_picture = room(header)
    tables, factors, coefficients, numbers = work
    used, components, begins, steps, before, restarts = numbers
    if (
        in_row + SPARE > coefficients.size
        or in_picture > samples.size
        or not make_tables(start, header, tables, factors, used, accurate)
    ):
        return False
    entries = tables[1]
    in_unit = lay_out_unit(header, blocks, colour_blocks, numbers)
    at = start + header[SCAN]
    end = start + size
    bits = count = missing = ZERO
    for unit_y in range((header[HEIGHT] + 8 * down - 1) // (8 * down)):
        # Interpolated colour needs one more sample, which is two rows or columns of the image.
        row_needed = unit_y * 8 * down < bottom + 2 and (unit_y + 1) * 8 * down > top - 2
        if row_needed:
            for i in range(in_row):
                coefficients[i] = 0
        for unit_x in range((header[WIDTH] + 8 * across - 1) // (8 * across)):
            if header[RESTART]:
                at, bits, count, missing, fine = before_unit(at, end, bits, count, missing, header, before, restarts)
                if not fine:
                    return False
            needed = row_needed and unit_x * 8 * across < right + 2 and (unit_x + 1) * 8 * across > left - 2
            for b in range(in_unit):
                component = components[b]
                block = begins[b] + unit_x * steps[b]
                place = (block // WIDE) * (8 * SAMPLES) + block % WIDE * 8
                at, bits, count, missing = fill(at, end, bits, count, missing)
                number = used[component]
                entry = entries[np.uint64(number << LOOK) + (bits >> _SHORT)]
                if entry == 0:
                    entry = long_code(bits, number, tables)
                    if entry == 0:
                        return False
                value, bits, count = difference(entry, bits, count)
                before[component] += value
                number = used[3 + component]
                if not needed or (only_luma and component):
                    place = in_row
                coefficients[np.uint64(place)] = before[component]
                base = np.uint64(number << LOOK)
                k = 1
                while k < 64:
                    at, bits, count, missing = fill(at, end, bits, count, missing)
                    held = bits
                    first = 0
                    for _ in range(LOOKS):
                        entry = entries[base + (bits >> _SHORT)]
                        n = np.uint64(entry & 63)
                        if n == ZERO:
                            break
                        held = bits
                        bits <<= n
                        count -= n
                        first = k + ((entry >> ZEROS) & 15)
                        k += (entry >> STEP) & 255
                        coefficients[np.uint64(place + _PLACES[np.uint64(first)])] = entry >> FIRST
                        coefficients[np.uint64(place + _PLACES[np.uint64(k - 1)])] = entry >> LAST
                        if k > 63:
                            break
                    alone = np.uint64((entry >> ALONE) & 63)
                    if n == ZERO:
                        at, bits, count, missing = fill(at, end, bits, count, missing)
                        if entry == 0:
                            entry = long_code(bits, number, tables)
                            if entry == 0:
                                return False
                            alone = np.uint64((entry >> ALONE) & 63)
                        bits <<= alone
                        count -= alone
                        run = (entry >> ZEROS) & 15
                        n = np.uint64(entry >> FIRST)
                        k += run + 1
                        if n != ZERO:
                            coefficients[np.uint64(place + _PLACES[np.uint64(k - 1)])] = signed(bits, n)
                            bits <<= n
                            count -= n
                        elif run != 15:
                            break
                    elif first > 62 and alone != n:
                        # The block ended with the first coefficient. The rest of the entry belongs to the next block.
                        coefficients[np.uint64(place + _PLACES[_63])] = entry >> FIRST
                        bits = held << alone
                        count += n - alone
        if count < missing:
            return False
        if row_needed:
            _transform(header, unit_y, window, only_luma, accurate, work, samples)
    return at_marker(at, end, count, missing, EOI)
