"""decode_small_block: a Block of JPEGs into a batch where results may be approximate.

    coded bits → the lowest coefficients → planes → per row of the result: rows of planes → pixels → the batch

What the result does not show of a picture is not computed: coefficients of a size that is not needed are skipped, and
planes are mixed between their rows first, so that there are pixels for rows of the result only.
Imported inside functions only: numba takes a third of a second to load.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compiled.kernel import helper, kernel, maker, rarely
from penstock.image.jpeg.kernels.block import as_bytes, between_rows
from penstock.image.jpeg.kernels.headers import ACROSS, COMPONENTS, DOWN, FIELDS, HEIGHT, RESTART, TAKEN, WIDTH
from penstock.image.jpeg.kernels.lanes import COST as COST
from penstock.image.jpeg.kernels.lanes import enter, file_of, is_worth_it, leave, new_lanes, walk
from penstock.image.jpeg.kernels.looks import LANES
from penstock.image.jpeg.kernels.pixels import PIXELS, SAMPLES, STEP, WEIGHTS, along, colour_full, colour_half, upright
from penstock.image.jpeg.kernels.planes import MARGIN, decode_planes, layout, new_work, room
from penstock.image.jpeg.kernels.small import decode_small, new_small_work, small_layout, small_room

_MOST_SAMPLES = 1 << 24  # of all lanes: each thread keeps as much memory


@helper
def _sides(header: Any, ratio: int, sides: Any) -> None:
    """How many samples a block of luma and one of colour become: colour is as fine as luma where that is possible."""
    sides[0] = 8 // ratio
    sides[1] = min(4, sides[0] * header[ACROSS]) if ratio > 1 else 8


@helper
def _between(scale: Any, n_in: int, n_out: int, mirrored: bool, low: Any, high: Any, weight: Any) -> None:
    """Between which samples each result lies, and where, if results are `scale` samples apart."""
    half = np.float32(0.5)
    for i in range(n_out):
        where = (np.float32(i) + half) * scale - half
        floor = np.floor(where)
        to = n_out - 1 - i if mirrored else i
        low[to] = min(max(np.int64(floor), 0), n_in - 1)
        high[to] = min(max(np.int64(floor) + 1, 0), n_in - 1)
        weight[to] = where - floor


@helper
def _resized(header: Any, samples: Any, sides: Any, flip: Any, start: int, target: Any) -> None:
    """Write a picture from `start` on; `target` is the same for all pictures."""
    (height, width), (factor, divide, behind), (floats_out, bytes_out), taps, lines, rgbx, floats = target
    y, colour_y, x = taps
    across, down = header[ACROSS], header[DOWN]
    if sides[0] == 8:
        _, _, stride, colour_stride, plane, colour_plane = layout(header)
    else:
        _, _, stride, colour_stride, plane, colour_plane = small_layout(header, sides)
    part, colour_part = np.float32(sides[0]) / np.float32(8), np.float32(sides[1]) / np.float32(8)
    columns = (header[WIDTH] * sides[0] + 7) // 8
    rows = (header[HEIGHT] * sides[0] + 7) // 8
    colour_rows = (header[HEIGHT] * sides[1] + 8 * down - 1) // (8 * down)
    tall = np.float32(header[HEIGHT]) / np.float32(height)
    wide = np.float32(header[WIDTH]) / np.float32(width)
    _between(tall * part, rows, height, flip[1] != 0, *y)
    _between(tall * colour_part / np.float32(down), colour_rows, height, flip[1] != 0, *colour_y)
    _between(wide * part, columns, width, flip[0] != 0, *x)
    for j in range(width):
        x[0][j] *= 4
        x[1][j] *= 4
    halved = across * sides[0] == 2 * sides[1]
    colour_columns = (columns + 1) // 2 if halved else columns
    in_row = width * 3
    row = floats_out if floats_out.size else floats[4 * x[0].size : 4 * x[0].size + in_row]
    luma, cb = MARGIN, lines.size // 3 + MARGIN
    cr = cb + lines.size // 3
    for i in range(lines.size):
        lines[i] = 128
    for i in range(height):
        above, below = y[0][i] * stride + MARGIN, y[1][i] * stride + MARGIN
        share = np.int64(y[2][i] * WEIGHTS + np.float32(0.5))
        for j in range(0, columns, SAMPLES):
            upright(samples, above + j, below + j, share, lines, luma + j)
        if header[COMPONENTS] == 3:
            above, below = colour_y[0][i] * colour_stride + MARGIN, colour_y[1][i] * colour_stride + MARGIN
            share = np.int64(colour_y[2][i] * WEIGHTS + np.float32(0.5))
            for c in range(2):
                begin, to = plane + c * colour_plane, cr if c else cb
                for j in range(0, colour_columns, SAMPLES):
                    upright(samples, begin + above + j, begin + below + j, share, lines, to + j)
                lines[np.uint64(to - 1)] = lines[np.uint64(to)]
                lines[np.uint64(to + colour_columns)] = lines[np.uint64(to + colour_columns - 1)]
        if halved:
            for j in range(0, columns, PIXELS):
                h = j >> 1
                colour_half(lines, luma + j, cb + h, cb + h, cr + h, cr + h, 8, 7, rgbx, 4 * j)
        else:
            for j in range(0, columns, PIXELS):
                colour_full(lines, luma + j, cb + j, cr + j, rgbx, 4 * j)
        for j in range(0, x[0].size, STEP):
            along(rgbx, x[0], x[1], x[2], j, floats, 4 * j)
        at = start + i * (width if behind else in_row)
        if floats_out.size:
            between_rows(floats, 0, 0, np.float32(0), width, factor, divide, row, at, behind)
        else:
            between_rows(floats, 0, 0, np.float32(0), width, factor, divide, row, 0, 0)
            as_bytes(row, bytes_out, at, behind)


@helper
def _kind(header: Any, ratio: int, sides: Any) -> Any:
    """What files must have in common to be decoded side by side; 0 for a file that is decoded by itself."""
    if not header[TAKEN] or ratio < 2 or header[RESTART]:
        return 0
    _sides(header, ratio, sides)
    shape = header[ACROSS] | header[DOWN] << 4 | header[COMPONENTS] << 8
    return shape | sides[0] << 12 | sides[1] << 16


@maker
def _target(size: Any, scale: Any, outs: Any, widest: int) -> Any:
    """What `_resized` has for all pictures, up to `widest`: what it is told, and memory."""
    rarely()
    height, width = size
    steps = (width + STEP - 1) // STEP * STEP
    y = np.empty(height, np.int64), np.empty(height, np.int64), np.empty(height, np.float32)
    colour_y = np.empty(height, np.int64), np.empty(height, np.int64), np.empty(height, np.float32)
    x = np.zeros(steps, np.int64), np.zeros(steps, np.int64), np.zeros(steps, np.float32)
    lines, rgbx = np.empty(3 * (widest + 3 * MARGIN), np.uint8), np.empty(4 * (widest + PIXELS), np.uint8)
    return size, scale, outs, (y, colour_y, x), lines, rgbx, np.empty((4 + 3) * steps, np.float32)


@maker
def _side_by_side(
    files: Any,
    addresses: Any,
    lengths: Any,
    table: Any,
    sides: Any,
    flips: Any,
    samples: Any,
    in_row: int,
    cost: int,
    target: Any,
    done: Any,
) -> None:
    """Decode files of one kind in lanes, as long as that is worth its cost."""
    rarely()
    (height, width), room, lanes = target[0], samples.size // LANES, new_lanes(in_row)
    entered = 0
    while True:
        for lane in range(LANES):
            while file_of(lane, lanes)[0] < 0 and entered < files.size:
                n = files[entered]
                enter(lane, n, addresses[n], lengths[n], table[n], sides, lanes)
                entered += 1
        if entered == files.size and not is_worth_it(table, cost, lanes):
            break
        ended = walk(table, sides, samples, lanes)
        if ended == 0:
            break
        for lane in range(LANES):
            if ended >> lane & 1:
                n, whole = file_of(lane, lanes)
                leave(lane, lanes)
                if whole:
                    done[n] = 2
                    _resized(table[n], samples[lane * room :], sides, flips[n], n * height * width * 3, target)


@kernel
def decode_small_block(
    addresses: Any,
    lengths: Any,
    table: Any,
    ratios: Any,
    flips: Any,
    samples: Any,
    factor: Any,
    divide: bool,
    height: int,
    width: int,
    separate: bool,
    floats_out: Any,
    bytes_out: Any,
    done: Any,
    cost: int,
) -> int:
    """Decode each file to three channels, into its row of a flat `floats_out` or `bytes_out`; the other is empty.

    A picture is decoded at 1 / `ratios[n]` of its size (1, 2, 4 or 8), mirrored where `flips[n]` (columns, rows) says
    so, resized to `height` and `width`, and multiplied or divided by `factor`; its channels are `separate`, one
    behind the other, or lie side by side. `table` is that of `read_headers`.
    `done[n]` is not 0 where the row was written; where a ratio is 0, and where a file is not as it should be, it is
    left as it was. Files are decoded side by side where that is worth its `cost`, as `lanes` has it: `done[n]` is 2
    then. The result says how much memory `samples` were enough; if they are less, it is taken anew.
    """
    rarely()
    size = height * width * 3
    rows = max(floats_out.size, bytes_out.size) // size
    sides, kinds, alike = np.empty(2, np.int64), np.zeros(table.shape[0], np.int64), np.empty(table.shape[0], np.int64)
    widest = 0
    for n in range(table.shape[0]):
        done[n] = 0
        if n < rows:
            kinds[n] = _kind(table[n], ratios[n], sides)
        if table[n, TAKEN] and ratios[n]:
            widest = max(widest, table[n, WIDTH])
    scale = factor, divide, height * width if separate else 0
    target = _target((height, width), scale, (floats_out, bytes_out), widest)
    needed = 0
    for first in range(table.shape[0]):
        if kinds[first] == 0:
            continue
        kind, found = kinds[first], 0
        for n in range(first, kinds.size):
            if kinds[n] == kind:
                kinds[n] = 0
                alike[found] = n
                found += 1
        of_kind = alike[:found]
        if of_kind.size < cost:
            continue
        _sides(table[first], ratios[first], sides)
        in_row = in_picture = 0
        for each in of_kind:
            coefficients, planes = small_room(table[each], sides)
            in_row, in_picture = max(in_row, coefficients), max(in_picture, planes)
        if LANES * in_picture > _MOST_SAMPLES:
            continue
        needed = max(needed, LANES * in_picture)
        if needed > samples.size:
            samples = np.empty(needed, np.uint8)
        _side_by_side(of_kind, addresses, lengths, table, sides, flips, samples, in_row, cost, target, done)
    in_row = in_small_row = in_picture = 0
    for n in range(min(rows, table.shape[0])):
        if table[n, TAKEN] and ratios[n] and not done[n]:
            if ratios[n] == 1:
                coefficients, planes = room(table[n])
                in_row = max(in_row, coefficients)
            else:
                _sides(table[n], ratios[n], sides)
                coefficients, planes = small_room(table[n], sides)
                in_small_row = max(in_small_row, coefficients)
            in_picture = max(in_picture, planes)
    needed = max(needed, in_picture)
    if needed > samples.size:
        samples = np.empty(needed, np.uint8)
    work, small_work = new_work(in_row), new_small_work(in_small_row)
    for n in range(min(rows, table.shape[0])):
        header = table[n]
        if not header[TAKEN] or not ratios[n] or done[n]:
            continue
        _sides(header, ratios[n], sides)
        if ratios[n] == 1:
            fine = decode_planes(addresses[n], lengths[n], header, work, samples, False, 0, header[HEIGHT])
        else:
            fine = decode_small(addresses[n], lengths[n], header, sides, small_work, samples)
        if fine:
            done[n] = 1
            _resized(header, samples, sides, flips[n], n * size, target)
    return needed


def warm_up() -> None:
    """Compile the kernel."""
    nothing, table, flips = np.zeros(0, np.int64), np.zeros((0, FIELDS), np.int64), np.zeros((0, 2), np.int8)
    few, floats, done = np.zeros(0, np.uint8), np.zeros(0, np.float32), np.zeros(0, np.int8)
    decode_small_block(
        nothing, nothing, table, nothing, flips, few, np.float32(1), False, 1, 1, False, floats, few, done, 0
    )
