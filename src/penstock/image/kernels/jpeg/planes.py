"""From a file to samples: the planes of luma and colour, as large as their blocks, with a margin around each row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from penstock.image.kernels.jpeg.bits import ZERO, at_marker, byte, fill, signed
from penstock.image.kernels.jpeg.codes import (
    ALONE,
    FIRST,
    LAST,
    LOOK,
    LOOKS,
    STEP,
    ZEROS,
    long_code,
    new_tables,
    prepare,
)
from penstock.image.kernels.jpeg.dc import difference
from penstock.image.kernels.jpeg.headers import (
    AC,
    ACROSS,
    COMPONENTS,
    DC,
    DOWN,
    EOI,
    HEIGHT,
    QUANT,
    RESTART,
    SCAN,
    WIDTH,
)
from penstock.image.kernels.jpeg.transform import SAMPLES, WIDE, idct
from penstock.image.kernels.jpeg.units import before_unit, lay_out_unit, new_numbers

MARGIN = 32  # samples that vector steps may touch on either side of a row

_SHORT = np.uint64(64 - LOOK)
_63 = np.uint64(63)


def _along_diagonals(cell: tuple[int, int]) -> tuple[int, int]:
    diagonal = cell[0] + cell[1]
    return diagonal, cell[0] if diagonal % 2 else cell[1]


_ZIGZAG = np.array(sorted(((r, c) for r in range(8) for c in range(8)), key=_along_diagonals))
NATURAL = _ZIGZAG[:, 0] * 8 + _ZIGZAG[:, 1]
# Where coefficient k lies in its half of a vector's rows; what a damaged run puts past the end falls on the last.
_PLACES = np.append(_ZIGZAG[:, 0] * SAMPLES + _ZIGZAG[:, 1], np.full(192, 7 * SAMPLES + 7)).astype(np.int64)

# The fast DCT's own factors, by which a table of quantisation is multiplied: cos(k pi / 16) sqrt(2), and 1 for k = 0.
_COSINES = np.array([1.0, *(np.cos(np.arange(1, 8) * np.pi / 16) * np.sqrt(2))])
_SCALES = np.round(np.outer(_COSINES, _COSINES) * (1 << 14)).astype(np.int64).reshape(-1)


@njit(nogil=True, error_model="numpy")
def layout(header: Any) -> Any:
    """Of luma and of colour: blocks across, rounded up to whole vectors, bytes of a row, and bytes of a plane.

    As (luma, colour, luma, colour, luma, colour); the planes of luma, Cb and Cr follow one another.
    """
    across, down = header[ACROSS], header[DOWN]
    units_x = (header[WIDTH] + 8 * across - 1) // (8 * across)
    units_y = (header[HEIGHT] + 8 * down - 1) // (8 * down)
    blocks = (units_x * across + WIDE - 1) // WIDE * WIDE
    colour_blocks = (units_x + WIDE - 1) // WIDE * WIDE
    stride, colour_stride = blocks * 8 + 2 * MARGIN, colour_blocks * 8 + 2 * MARGIN
    return blocks, colour_blocks, stride, colour_stride, units_y * down * 8 * stride, units_y * 8 * colour_stride


@njit(nogil=True, error_model="numpy")
def room(header: Any) -> Any:
    """How many coefficients a row of units holds, and how many samples the picture."""
    blocks, colour_blocks, _, _, plane, colour_plane = layout(header)
    others = header[COMPONENTS] - 1
    return (header[DOWN] * blocks + others * colour_blocks) * 64, plane + others * colour_plane


@njit(nogil=True, error_model="numpy")
def new_work(in_row: int) -> Any:
    """Memory that `decode_planes` works with, for pictures of up to `in_row` coefficients in a row of units."""
    return new_tables(), np.empty(3 * 64, np.int16), np.empty(in_row, np.int16), new_numbers()


@njit(nogil=True, error_model="numpy")
def share_tables(header: Any, used: Any) -> None:
    """Which table each component uses, of DC, then of AC: one that several share has the number of the first."""
    for i in range(header[COMPONENTS]):
        for kind in range(2):
            number, column = 3 * kind + i, AC if kind else DC
            used[number] = number
            for j in range(i):
                if header[column + j] == header[column + i]:
                    used[number] = used[3 * kind + j]


@njit(nogil=True, error_model="numpy")
def make_tables(start: int, header: Any, tables: Any, factors: Any, used: Any) -> bool:
    """The factors of each component's coefficients, and its tables: `used` by DC, then by AC."""
    share_tables(header, used)
    for i in range(header[COMPONENTS]):
        for k in range(64):
            scaled = byte(start + header[QUANT + i] + k) * _SCALES[NATURAL[k]]
            factors[i * 64 + NATURAL[k]] = (scaled + (1 << 11)) >> 12
        for kind in range(2):
            column = AC if kind else DC
            number = 3 * kind + i
            if used[number] == number and not prepare(start + header[column + i], number, tables):
                return False
    return True


@njit(nogil=True, error_model="numpy")
def _transform(header: Any, unit_y: int, only_luma: bool, coefficients: Any, factors: Any, samples: Any) -> None:
    """The samples of a row of units."""
    blocks, colour_blocks, stride, colour_stride, plane, colour_plane = layout(header)
    down = header[DOWN]
    for v in range(down):
        to = (unit_y * down + v) * 8 * stride + MARGIN
        for i in range(0, blocks, WIDE):
            idct(coefficients, (v * blocks + i) * 64, factors, 0, samples, to + i * 8, stride)
    if only_luma:
        return
    width = (header[WIDTH] + header[ACROSS] - 1) // header[ACROSS]
    for c in range(header[COMPONENTS] - 1):
        to = plane + c * colour_plane + unit_y * 8 * colour_stride + MARGIN
        begin = (down * blocks + c * colour_blocks) * 64
        for i in range(0, colour_blocks, WIDE):
            idct(coefficients, begin + i * 64, factors, (c + 1) * 64, samples, to + i * 8, colour_stride)
        for i in range(8):  # beyond its edges a row goes on as it ends
            samples[to + i * colour_stride - 1] = samples[to + i * colour_stride]
            samples[to + i * colour_stride + width] = samples[to + i * colour_stride + width - 1]


@njit(nogil=True, error_model="numpy")
def decode_planes(
    start: int,
    size: int,
    header: Any,
    work: Any,
    samples: Any,
    only_luma: bool,
    top: int,
    bottom: int,
) -> Any:
    """Decode a file of `size` bytes at `start` into `samples`; whether all of it was as it should be.

    `work` is that of `new_work`, and `samples` has the `room`. Transformed is only what rows `top` to `bottom` of the
    picture need.
    """
    across, down = header[ACROSS], header[DOWN]
    blocks, colour_blocks, _, _, _, _ = layout(header)
    in_row, in_picture = room(header)
    tables, factors, coefficients, numbers = work
    used, components, begins, steps, before, restarts = numbers
    if in_row > coefficients.size or in_picture > samples.size or not make_tables(start, header, tables, factors, used):
        return False
    entries = tables[1]
    in_unit = lay_out_unit(header, blocks, colour_blocks, numbers)
    at = start + header[SCAN]
    end = start + size
    bits = count = missing = ZERO
    for unit_y in range((header[HEIGHT] + 8 * down - 1) // (8 * down)):
        for i in range(in_row):
            coefficients[i] = 0
        for unit_x in range((header[WIDTH] + 8 * across - 1) // (8 * across)):
            if header[RESTART]:
                at, bits, count, missing, fine = before_unit(at, end, bits, count, missing, header, before, restarts)
                if not fine:
                    return False
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
                coefficients[np.uint64(place)] = before[component]
                number = used[3 + component]
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
                        # The block ended with the first coefficient; what the entry has behind it is of the next one.
                        coefficients[np.uint64(place + _PLACES[_63])] = entry >> FIRST
                        bits = held << alone
                        count += n - alone
        if count < missing:
            return False
        # Interpolated colour looks one sample further, which is two rows of the picture.
        if unit_y * 8 * down < bottom + 2 and (unit_y + 1) * 8 * down > top - 2:
            _transform(header, unit_y, only_luma, coefficients, factors, samples)
    return at_marker(at, end, count, missing, EOI)
