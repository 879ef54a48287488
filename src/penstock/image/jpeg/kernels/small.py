"""From a file to samples at a half, a quarter or an eighth of its size: what is not needed of a block is skipped.

A block's lowest coefficients, which lie row by row in 4 columns, become 4 × 4, 2 × 2 or 1 sample by the transform of
that many points, in integers, which keeps more of what is fine than the mean of an area does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from penstock.compiled.kernel import helper, maker, rarely
from penstock.image.jpeg.kernels.bits import ZERO, at_marker, byte, fill
from penstock.image.jpeg.kernels.codes import (
    FAR,
    FIRST,
    LAST,
    LOOK,
    LOOKS,
    OVER,
    SKIP_LOOK,
    SKIP_LOOKS,
    STEP,
    ZEROS,
    difference,
    long_code,
    new_skips,
    new_tables,
    prepare_skips,
    single,
)
from penstock.image.jpeg.kernels.headers import ACROSS, COMPONENTS, DOWN, EOI, HEIGHT, QUANT, RESTART, SCAN, WIDTH
from penstock.image.jpeg.kernels.planes import MARGIN, NATURAL, before_unit, lay_out_unit, make_tables, new_numbers
from penstock.image.kernels.instructions import I8, I32, Code, vector_step

NEEDED = 16  # coefficients of a block, at most
UNUSED = NEEDED  # the one of a block's memory that takes what is not needed
IN_PLACES = 256  # of PLACES, for one side


def _places(side: int) -> list[int]:
    """Where coefficient k lies, also of a damaged run that goes past the end."""
    cells = [divmod(int(natural), 8) for natural in NATURAL]
    places = [4 * row + column if max(row, column) < side else UNUSED for row, column in cells]
    return places + [UNUSED] * (IN_PLACES - 64)


def _furthest(side: int) -> int:
    return max((k for k, place in enumerate(_places(side)) if place != UNUSED), default=0)


PLACES = np.array([_places(side) for side in range(5)], np.int64).reshape(-1)
FURTHEST = np.array([_furthest(side) for side in range(5)], np.int64)


def _placed(code: Code) -> None:
    _, at, _, to = code.args
    order = [_places(4).index(place) for place in range(NEEDED)]
    values = code.load(code.at(0, at), 32)
    code.store(code.shuffled(values, values, order), code.at(2, to))
    code.store(code.all(0, values), code.at(0, at))


placed = vector_step(_placed, "aiai")
"""placed(values, at, coefficients, to): a block's coefficients, from those in the order of its codes, now zeros."""


LANES = 16  # samples of a row that one step makes, so LANES // side blocks
APART = 20  # coefficients from one block to the next: 16, and what is not needed
_BITS = 2  # that numbers have behind the point between the passes


def _times(code: Code, vector: Any, factor: float) -> Any:
    b = code.builder
    product = b.add(b.mul(vector, code.all(round(factor * 8192), vector)), code.all(4096, vector))
    return b.ashr(product, code.all(13, vector))


def _pass(code: Code, v: list[Any]) -> list[Any]:
    """One dimension, √8 times as large."""
    b = code.builder
    if len(v) == 1:
        return v
    if len(v) == 2:
        return [b.add(v[0], v[1]), b.sub(v[0], v[1])]
    outer, inner = b.add(v[0], v[2]), b.sub(v[0], v[2])
    p = b.add(_times(code, v[1], 1.306563), _times(code, v[3], 0.541196))
    q = b.sub(_times(code, v[1], 0.541196), _times(code, v[3], 1.306563))
    return [b.add(outer, p), b.add(inner, q), b.sub(inner, q), b.sub(outer, p)]


def _transposed(code: Code, rows: list[Any]) -> list[Any]:
    """Each block's values with rows and columns exchanged."""
    step = 1
    while step < len(rows):
        upper = [lane if not lane & step else LANES + lane - step for lane in range(LANES)]
        lower = [lane + step if not lane & step else LANES + lane for lane in range(LANES)]
        for i in (i for i in range(len(rows)) if not i & step):
            top, bottom = rows[i], rows[i + step]
            rows[i], rows[i + step] = code.shuffled(top, bottom, upper), code.shuffled(top, bottom, lower)
        step *= 2
    return rows


def _lowered(side: int) -> Callable[[Code], None]:
    def write(code: Code) -> None:
        b = code.builder
        _, at, _, factors_at, _, to, stride = code.args
        rows = []
        for row in range(side):
            parts = [code.load(code.at(0, code.offset(at, APART * i + 4 * row)), side) for i in range(LANES // side)]
            factors = [code.load(code.at(2, code.offset(factors_at, 4 * row)), side)] * len(parts)
            while len(parts) > 1:
                parts = [code.both(*parts[i : i + 2]) for i in range(0, len(parts), 2)]
                factors = [code.both(*factors[i : i + 2]) for i in range(0, len(factors), 2)]
            wide = [code.widened(vector, I32, signed=True) for vector in (parts[0], factors[0])]
            product = b.mul(*wide)
            rows.append(b.shl(product, code.all(_BITS, product)))
        rows = _transposed(code, _pass(code, _transposed(code, _pass(code, rows))))
        for row in rows:
            rounded = b.ashr(b.add(row, code.all(4 << _BITS, row)), code.all(3 + _BITS, row))
            level = code.clamped(b.add(rounded, code.all(128, rounded)), 0, 255)
            code.store(code.narrowed(level, I8), code.at(4, to))
            to = b.add(to, stride)

    return write


lowered_4, lowered_2, lowered_1 = (vector_step(_lowered(side), "aiaiaii") for side in (4, 2, 1))
"""lowered_4(coefficients, at, factors, factors_at, samples, to, stride): LANES // 4 blocks beside each other."""


_SHORT, _SKIP = np.uint64(64 - LOOK), np.uint64(64 - SKIP_LOOK)


@helper
def small_layout(header: Any, sides: Any) -> Any:
    """`layout` of a picture whose blocks of luma and of colour become `sides` samples wide."""
    across, down = header[ACROSS], header[DOWN]
    units_x = (header[WIDTH] + 8 * across - 1) // (8 * across)
    units_y = (header[HEIGHT] + 8 * down - 1) // (8 * down)
    wide, colour_wide = LANES // sides[0], LANES // sides[1]
    blocks = (units_x * across + wide - 1) // wide * wide
    colour_blocks = (units_x + colour_wide - 1) // colour_wide * colour_wide
    stride, colour_stride = blocks * sides[0] + 2 * MARGIN, colour_blocks * sides[1] + 2 * MARGIN
    plane, colour_plane = units_y * down * sides[0] * stride, units_y * sides[1] * colour_stride
    return blocks, colour_blocks, stride, colour_stride, plane, colour_plane


@helper
def small_room(header: Any, sides: Any) -> Any:
    """How many coefficients a row of units holds, and how many samples the picture."""
    blocks, colour_blocks, _, _, plane, colour_plane = small_layout(header, sides)
    others = header[COMPONENTS] - 1
    return (header[DOWN] * blocks + others * colour_blocks) * APART, plane + others * colour_plane


@maker
def new_small_work(in_row: int) -> Any:
    """Memory that `decode_small` works with, for pictures of up to `in_row` coefficients in a row of units."""
    rarely()
    return new_tables(), new_skips(), np.zeros(3 * 64, np.int16), np.zeros(in_row, np.int16), new_numbers()


@helper
def _lower(
    side: int, coefficients: Any, begin: int, blocks: int, factors: Any, which: int, out: Any, to: int, stride: int
) -> None:
    """The samples of a row of blocks."""
    step = LANES // side
    for i in range(0, blocks, step):
        if side == 4:
            lowered_4(coefficients, begin + i * APART, factors, which, out, to + i * 4, stride)
        elif side == 2:
            lowered_2(coefficients, begin + i * APART, factors, which, out, to + i * 2, stride)
        else:
            lowered_1(coefficients, begin + i * APART, factors, which, out, to + i, stride)


@helper
def lower_rows(
    header: Any, sides: Any, unit_y: int, coefficients: Any, at: int, factors: Any, samples: Any, begin: int
) -> None:
    """The samples of a row of units, of coefficients from `at` on, in the picture that begins at `begin`."""
    down = header[DOWN]
    blocks, colour_blocks, stride, colour_stride, plane, colour_plane = small_layout(header, sides)
    for v in range(down):
        to = begin + (unit_y * down + v) * sides[0] * stride + MARGIN
        _lower(sides[0], coefficients, at + v * blocks * APART, blocks, factors, 0, samples, to, stride)
    for c in range(header[COMPONENTS] - 1):
        to = begin + plane + c * colour_plane + unit_y * sides[1] * colour_stride + MARGIN
        colour = at + (down * blocks + c * colour_blocks) * APART
        _lower(sides[1], coefficients, colour, colour_blocks, factors, (c + 1) * 64, samples, to, colour_stride)


@helper
def decode_small(start: int, size: int, header: Any, sides: Any, work: Any, samples: Any) -> Any:
    """Decode a file of `size` bytes at `start` into `samples`; whether all of it was as it should be.

    `work` is that of `new_small_work`, and `samples` has the `small_room`.
    """
    across, down = header[ACROSS], header[DOWN]
    blocks, colour_blocks, _, _, _, _ = small_layout(header, sides)
    in_row, in_picture = small_room(header, sides)
    tables, all_skips, factors, coefficients, numbers = work
    skips = all_skips[1]
    used, components, begins, steps, before, restarts = numbers
    if in_row > coefficients.size or in_picture > samples.size or not make_tables(start, header, tables, factors, used):
        return False
    for i in range(header[COMPONENTS]):
        if used[3 + i] == 3 + i:
            prepare_skips(i, tables[0][3 + i], all_skips)
        for k in range(25):
            place = PLACES[4 * IN_PLACES + k]
            if place != UNUSED:
                factors[i * 64 + place] = byte(start + header[QUANT + i] + k)
    in_unit = lay_out_unit(header, blocks, colour_blocks, numbers)
    entries = tables[1]
    at, end = start + header[SCAN], start + size
    bits = count = missing = ZERO
    for unit_y in range((header[HEIGHT] + 8 * down - 1) // (8 * down)):
        for unit_x in range((header[WIDTH] + 8 * across - 1) // (8 * across)):
            if header[RESTART]:
                at, bits, count, missing, fine = before_unit(at, end, bits, count, missing, header, before, restarts)
                if not fine:
                    return False
            for b in range(in_unit):
                component = components[b]
                place = (begins[b] + unit_x * steps[b]) * APART
                at, bits, count, missing = fill(at, end, bits, count, missing)
                number = used[component]
                entry = entries[np.uint64(number << LOOK) + (bits >> _SHORT)]
                if entry == 0:
                    entry = long_code(bits, number, tables)
                    if entry == 0:
                        return False
                value, bits, count = difference(entry, bits, count)
                for i in range(NEEDED):
                    coefficients[np.uint64(place + i)] = 0
                before[component] += value
                coefficients[np.uint64(place)] = before[component]
                side = sides[0] if component == 0 else sides[1]
                needed, row = FURTHEST[side], side * IN_PLACES
                number = used[3 + component]
                base, skip_base = np.uint64(number << LOOK), np.uint64((number - 3) << SKIP_LOOK)
                k = 1
                while k < 64:
                    at, bits, count, missing = fill(at, end, bits, count, missing)
                    rare: Any = False
                    if k > needed:
                        so_far = k << FAR  # and, below it, the bits used
                        skip: Any = np.int64(0)
                        for _ in range(SKIP_LOOKS):
                            skip = np.int64(skips[skip_base + (bits >> _SKIP)])
                            after = so_far + skip
                            if after >= 64 << FAR:
                                break
                            bits <<= np.uint64(skip & 63)
                            so_far = after
                            skip = 0
                        count -= np.uint64(so_far & 63)
                        k = so_far >> FAR
                        if skip:
                            n = np.uint64(skip & 63)
                            rare = skip >> OVER == 0 or n == ZERO or k + ((skip >> FAR) & 63) > 63
                            if not rare:
                                bits <<= n
                                count -= n
                                k = 64
                    else:
                        for _ in range(LOOKS):
                            entry = entries[base + (bits >> _SHORT)]
                            n = np.uint64(entry & 63)
                            after = k + ((entry >> STEP) & 255)
                            rare = n == ZERO or after & 64 != 0
                            if rare:
                                break
                            bits <<= n
                            count -= n
                            first = k + ((entry >> ZEROS) & 15)
                            coefficients[np.uint64(place + PLACES[np.uint64(row + first)])] = entry >> FIRST
                            coefficients[np.uint64(place + PLACES[np.uint64(row + after - 1)])] = entry >> LAST
                            k = after
                            if k > needed:
                                break
                    if not rare:
                        continue
                    # One code by itself: it is long, or what follows it is of the next block.
                    at, bits, count, missing = fill(at, end, bits, count, missing)
                    n, run, value, ends = single(bits, number, tables)
                    if n == 0:
                        return False
                    bits <<= np.uint64(n)
                    count -= np.uint64(n)
                    if ends:
                        break
                    coefficients[np.uint64(place + PLACES[np.uint64(row + k + run)])] = value
                    k += run + 1
        if count < missing:
            return False
        lower_rows(header, sides, unit_y, coefficients, 0, factors, samples, 0)
    return at_marker(at, end, count, missing, EOI)
