"""A chain of image operations on one image as few passes: colour by chunks of pixels, resize row by row.

bytes → levels of some hundred pixels, in the first cache → colour operations, one after the other → bytes
rows that the resize reads → the last colour operations → along the row → between two rows → scaled → the batch
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from penstock.image.fuse.chain_colours_native import colour, load, load_columns, load_planes, mean_of, store_planes
from penstock.image.kernels import BAD_ARGUMENT, CONTRAST, HALF, LEFT_RIGHT, LINE, UP_DOWN, ZERO
from penstock.image.kernels.instructions import Code, calculate, vector_step
from penstock.native.kernel import helper, kernel, maker


def _lerp_pixel(*, falling: bool) -> Callable[[Code], None]:
    def write(code: Code) -> None:
        levels, out = 0, 4
        _, run, at, weight, _, to = code.args
        b = code.builder
        green = b.add(at, run)
        reds, greens = (code.load(code.at(levels, place), 2) for place in (at, green))
        both = code.shuffled(reds, greens, [0, 2, 1, 3])
        blues = code.load(code.at(levels, b.add(green, run)), 2)
        blue = code.shuffled(blues, blues, [0, 1, 0, 1])
        near, far = code.shuffled(both, blue, [0, 1, 4, 5]), code.shuffled(both, blue, [2, 3, 5, 4])
        a, c = (far, near) if falling else (near, far)
        result = b.fadd(a, b.fmul(b.fsub(c, a), code.splat(weight, 4)))
        code.store(result, code.at(out, to))

    return write


lerp_rising, lerp_falling = (vector_step(_lerp_pixel(falling=falling), "aiifai") for falling in (False, True))
"""lerp_rising(levels, run, at, weight, out, to): interpolate two neighbours of a row; write one value too many.

The row is three runs of `run` values. The neighbours are at `at` and at the next position. `weight` is the share of the
second pixel; with `lerp_falling` it is the share of the first. LLVM does not find these vectors of four.
"""


@helper
def taps(n_in, n_out, mirrored, low, high, weight):
    """Compute the numbers of `bilinear_taps`. If both taps are one pixel, the weight is 0."""
    scale = np.float32(n_in) / np.float32(n_out)
    for i in range(n_out):
        at = (np.float32(i) + HALF) * scale - HALF
        floor = np.floor(at)
        low[i] = min(max(np.int64(floor), 0), n_in - 1)
        high[i] = min(max(np.int64(floor) + 1, 0), n_in - 1)
        weight[i] = at - floor
        if low[i] == high[i]:
            weight[i] = ZERO
        if mirrored:
            low[i], high[i] = n_in - 1 - low[i], n_in - 1 - high[i]


@maker
def columns_read(left, right, width, columns):
    """Return the number of columns to extract from each row, or 0. `left` then has positions among these columns."""
    number = np.empty(width, np.int64)
    for x in range(width):
        number[x] = -1
    for j in range(left.size):
        number[left[j]] = 0
        number[right[j]] = 0
    found = 0
    for x in range(width):
        if number[x] == 0:
            number[x] = found
            columns[found] = x
            found += 1
    if 5 * found > 3 * width:
        return 0
    for j in range(left.size):
        left[j] = number[left[j]]
    return found


@helper
def along(levels, n, at, weight, falling, reverse, row):
    """Resize a row of `n` pixels, left to right. The extra value of a pixel is overwritten by the next pixel."""
    count = at.size
    for j in range(count):
        k = np.uint64(count - 1 - j if reverse else j)
        if falling:
            lerp_falling(levels, n, at[k] - 1, weight[k], row, 3 * j)
        else:
            lerp_rising(levels, n, at[k], weight[k], row, 3 * j)


@helper
def between(top, bottom, weight, line):
    for j in range(np.uint64(line.size)):
        a = top[j]
        line[j] = a + (bottom[j] - a) * weight


CHUNK = 512  # pixels per chunk, with 6 kB of levels


@maker
def _passes(
    src, height, width, codes, args, flips, planes, read, halves,
    means,
):  # fmt: skip
    """Run all passes over the whole image except the last. Return the next operation, and True if it reads `planes`."""
    n = height * width
    a, b = np.zeros(3 * CHUNK, np.float32), np.zeros(3 * CHUNK, np.float32)
    doubts = np.zeros(CHUNK, np.uint8)
    sums = np.zeros(3, np.int64)
    first = 0
    ready = 0  # 1 when `first` is a contrast whose means are known
    in_planes = False
    while True:
        last = first + ready
        while last < codes.size and codes[last] != CONTRAST:
            last += 1
        if last == codes.size:
            return first, in_planes
        for c in range(3):
            sums[c] = 0
        for at in range(0, n, CHUNK):
            m = min(CHUNK, n - at)
            if in_planes:
                load_planes(read, n, at, m, a)
            else:
                load(src, 3 * at, m, a)
            moved = colour(codes, args, first, last, means, a, b, doubts, m)
            store_planes(b if moved else a, m, planes, n, at, sums)
        in_planes = True
        for c in range(3):
            means[c] = mean_of(sums[c], args[last], read, c * n, height, width, flips[last], planes[3 * n :], halves)
        first = last
        ready = 1


@helper
def _separated(line, floats_out, bytes_out, start, plane):
    """Write a row with each channel in a plane of its own, at a distance of `plane` values."""
    count = np.uint64(line.size // 3)
    for c in range(np.uint64(3)):
        to = np.uint64(start) + c * np.uint64(plane)
        if floats_out.size:
            for j in range(count):
                floats_out[to + j] = line[np.uint64(3) * j + c]
        else:
            for j in range(count):
                bytes_out[to + j] = np.uint8(np.int32(line[np.uint64(3) * j + c]))


@helper
def _lay_on_line(levels, first, n, slope, rest, begin):
    start = np.uint64(first)
    for j in range(start, start + np.uint64(n)):
        levels[j] = levels[j] * slope + levels[j] * rest + begin


@maker
def _one(image, colours, turns, table, finish, out_size, separate, work, out):
    """Process one image into its place. All sizes have been checked.

    The tuples are the image with its height and width; codes, arguments and flips of the operations on colours; the
    flips before and after the resize; codes and values of the last operations; the size of the result; the scratch
    memory; and the results.
    """
    src, height, width = image
    codes, args, flips = colours
    before, after = turns
    last_codes, last_values = finish
    out_height, out_width = out_size
    planes, read, halves = work
    floats_out, bytes_out = out
    size, line_size = height * width, 3 * out_width
    means = np.zeros(3, np.float32)
    first, in_planes = _passes(src, height, width, codes, args, flips, planes, read, halves, means)
    last = codes.size

    top, bottom = np.empty(out_height, np.int64), np.empty(out_height, np.int64)
    left, right = np.empty(out_width, np.int64), np.empty(out_width, np.int64)
    y_weight, x_weight = np.empty(out_height, np.float32), np.empty(out_width, np.float32)
    mirrored, reverse = before & LEFT_RIGHT != 0, after & LEFT_RIGHT != 0
    taps(height, out_height, before & UP_DOWN != 0, top, bottom, y_weight)
    taps(width, out_width, mirrored, left, right, x_weight)
    columns = np.empty(width, np.int64)
    columns = columns[: columns_read(left, right, width, columns)]
    n = columns.size if columns.size else width

    # If both taps are one pixel at an edge, the next position is read too, with weight 0.
    a, b = np.zeros(3 * n + 2, np.float32)[1:], np.zeros(3 * n + 2, np.float32)[1:]
    doubts = np.zeros((n + 7) // 8 * 8, np.uint8)
    upper, lower = np.empty(line_size + 1, np.float32), np.empty(line_size + 1, np.float32)
    line = np.empty(line_size, np.float32)
    in_upper, in_lower = -1, -1  # the source rows in the two buffers
    for i in range(out_height):
        tap = out_height - 1 - i if after & UP_DOWN else i
        if in_lower == top[tap] or in_upper == bottom[tap]:
            upper, lower = lower, upper
            in_upper, in_lower = in_lower, in_upper
        for side in range(2):
            y = bottom[tap] if side else top[tap]
            if y == (in_lower if side else in_upper):
                continue
            if columns.size and in_planes:
                load_columns(read, y * width, 1, size, columns, a)
            elif columns.size:
                load_columns(src, 3 * y * width, 3, 1, columns, a)
            elif in_planes:
                load_planes(read, size, y * width, n, a)
            else:
                load(src, 3 * y * width, n, a)
            levels = b if colour(codes, args, first, last, means, a, b, doubts, n) else a
            for c in range(3 if table.size else 0):
                if table.size == LINE:
                    _lay_on_line(levels, c * n, n, table[c], table[4 + c], table[8 + c])
                else:
                    for j in range(np.uint64(c * n), np.uint64((c + 1) * n)):
                        levels[j] = table[np.uint64(256 * c) + np.uint64(levels[j])]
            row = lower if side else upper
            along(levels, n, left, x_weight, mirrored, reverse, row)
            if side:
                in_lower = y
            else:
                in_upper = y
        between(upper, lower, y_weight[tap], line)
        calculate(last_codes, last_values, line)
        to = np.uint64(i * line_size)
        if separate:
            _separated(line, floats_out, bytes_out, i * out_width, out_height * out_width)
        elif floats_out.size:
            for j in range(np.uint64(line_size)):
                floats_out[to + j] = line[j]
        else:
            for j in range(np.uint64(line_size)):
                bytes_out[to + j] = np.uint8(np.int32(line[j]))


@kernel(
    "src: u8[:], starts: w i64[:], heights: w i64[:], widths: w i64[:], codes: w i64[:], args: w f32[:, :], "
    "flips: w i64[:, :], before: w i64[:], after: w i64[:], table: w f32[:], last_codes: w i64[:], last_values: w "
    "f32[:, :], out_height: i64, out_width: i64, separate: bool, planes: w u8[:], read: u8[:], halves: w f32[:], "
    "floats_out: w f32[:], bytes_out: w u8[:] -> i64"
)
def chain(
    src,
    starts,
    heights,
    widths,
    codes,
    args,
    flips,
    before,
    after,
    table,
    last_codes,
    last_values,
    out_height,
    out_width,
    separate,
    planes,
    read,
    halves,
    floats_out,
    bytes_out,
):
    """Colour, look up, resize and finish the images in flat `src`. Return 0 or BAD_ARGUMENT.

    Image i begins at `starts[i]`. Operation k is `codes[k]` with `args[i, k]`, on the image with the flips `flips[i,
    k]`. The resize reads the image with the flips `before[i]`, and its result is flipped by `after[i]`. `table` has the
    values to resize in place of 0 to 255, for each of 3 channels, or is empty; see `line_of`.
    `last_values[k]` has a number for each value of a row. `planes` (4 bytes per pixel of the largest image), `read`
    (the same memory) and `halves` (half a number per pixel) are scratch memory. Results go to one of the flat
    `floats_out` and `bytes_out`, truncated; the other is empty. Channels are `separate` planes, or interleaved.
    """
    count = starts.size
    room = floats_out.size + bytes_out.size
    if out_height <= 0 or out_width <= 0 or out_width > room // 3 or out_height > room // (3 * out_width):
        return BAD_ARGUMENT
    line_size = 3 * out_width
    out_size = out_height * line_size
    if (
        heights.size != count
        or widths.size != count
        or before.size != count
        or after.size != count
        or args.shape[0] != count
        or args.shape[1] != codes.size
        or flips.shape[0] != count
        or flips.shape[1] != codes.size
        or table.size not in (0, LINE, 3 * 256)
        or room != count * out_size
        or (floats_out.size and bytes_out.size)
        or last_values.shape[0] != last_codes.size
        or (last_codes.size and last_values.shape[1] != line_size)
    ):
        return BAD_ARGUMENT
    finish, shape, work = (last_codes, last_values), (out_height, out_width), (planes, read, halves)
    for i in range(count):
        height, width = heights[i], widths[i]
        # Checks are done step by step, so that no product can overflow.
        if height <= 0 or width <= 0 or starts[i] < 0 or starts[i] > src.size:
            return BAD_ARGUMENT
        there = (src.size - starts[i]) // 3
        if width > there or height > there // width:
            return BAD_ARGUMENT
        size = height * width
        if planes.size // 4 < size or read.size // 4 < size or halves.size < size - size // 2:
            return BAD_ARGUMENT
    for i in range(count):
        image = src[starts[i] : starts[i] + 3 * heights[i] * widths[i]], heights[i], widths[i]
        out = floats_out[i * out_size : (i + 1) * out_size], bytes_out[i * out_size : (i + 1) * out_size]
        colours, turns = (codes, args[i], flips[i]), (before[i], after[i])
        _one(image, colours, turns, table, finish, shape, separate, work, out)
    return 0
