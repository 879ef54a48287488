"""decode_block: a Block of JPEGs decoded, cropped, flipped, resized and scaled into a batch in one call.

coded bits → coefficients of one row of blocks → samples of the image → rows of pixels → the batch
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.image.jpeg.kernels import AFTER, BEFORE, CODES, HEIGHT, TAKEN, WIDTH
from penstock.image.jpeg.kernels.headers import read_headers
from penstock.image.jpeg.kernels.pixels import (
    PIXELS,
    STEP,
    along,
    along_line,
    apart,
    between,
    packed,
    row_of_pixels,
)
from penstock.image.jpeg.kernels.planes import MARGIN, decode_planes, layout, new_work, room
from penstock.image.kernels import LINE
from penstock.image.kernels.instructions import calculate
from penstock.native.kernel import helper, kernel, maker

__all__ = ["decode_block", "read_headers"]


@helper
def _taps(start, n_in, n_out, flip, low, high, weight):
    """Compute `bilinear_taps` of the `n_in` pixels from `start` on."""
    half = np.float32(0.5)
    scale = np.float32(n_in) / np.float32(n_out)
    for i in range(n_out):
        where = (np.float32(i) + half) * scale - half
        floor = np.floor(where)
        a: Any = min(max(np.int64(floor), 0), n_in - 1)
        b: Any = min(max(np.int64(floor) + 1, 0), n_in - 1)
        to = n_out - 1 - i if flip == AFTER else i
        low[to] = start + (n_in - 1 - a if flip == BEFORE else a)
        high[to] = start + (n_in - 1 - b if flip == BEFORE else b)
        weight[to] = where - floor


@helper
def _copied(header, samples, rgbx, y, x, channels, out, start):
    """Write pixels without a resize. `y` and `x` are the source rows and columns."""
    width = x.size
    along_the_row = x[width - 1] - x[0] == width - 1
    stride = layout(header)[2]
    for i in range(y.size):
        at = start + i * width * channels
        if channels == 1:
            for j in range(width):
                out[at + j] = samples[np.uint64(y[i] * stride + MARGIN + x[j])]
            continue
        row_of_pixels(header, samples, y[i], min(x[0], x[width - 1]), max(x[0], x[width - 1]) + 1, rgbx)
        done = 0
        if along_the_row:
            for j in range(0, width // PIXELS * PIXELS, PIXELS):
                packed(rgbx, 4 * (x[0] + j), out, at + 3 * j)
            done = width // PIXELS * PIXELS
        for j in range(done, width):
            for c in range(3):
                out[np.uint64(at + 3 * j + c)] = rgbx[np.uint64(4 * x[j] + c)]


@maker
def _resized(source, floats, y, x, width, table, finish, channels, plane, out):
    """Resize the image of a `source`: its header, its samples, and memory for a row of pixels.

    `source` ends with the columns that the result needs. `table` has the levels. `finish` has codes and values of the
    operations after the resize. `out` has the two arrays for results, and the place in them.
    """
    header, samples, rgbx, left, right = source
    last_codes, last_values = finish
    floats_out, bytes_out, start = out
    y_low, y_high, y_weight = y
    in_row = width * channels
    stride = width if plane else in_row
    direct = floats_out.size > 0 and plane == 0
    line = np.empty(0 if direct else in_row, np.float32)  # values that are then separated or converted to bytes
    known = np.empty(2, np.int64)  # the rows in the halves of `floats`, each interpolated along its length
    known[0] = known[1] = -1
    steps = x[0].size
    is_line = table.size == LINE
    levels = np.empty(2 * 4 * steps, np.float32)  # table entries of the pixels on both sides of each column
    lefts, rights = 8 * np.arange(steps), 8 * np.arange(steps) + 4  # positions of these entries
    if channels == 3:
        for j in range(width):
            x[0][j] *= 4
            x[1][j] *= 4
    for i in range(y_low.size):
        at = start + i * stride
        target = floats_out[at : at + in_row] if direct else line
        if channels == 1:
            _row_of_luma(header, samples, y_low[i], y_high[i], y_weight[i], x, table, target)
        else:
            for side in range(2):
                row, other = (y_high[i], y_low[i]) if side else (y_low[i], y_high[i])
                if row != known[0] and row != known[1]:
                    half = 1 if known[0] == other else 0
                    known[half] = row
                    row_of_pixels(header, samples, row, left, right, rgbx)
                    if is_line:
                        for j in range(0, steps, STEP):
                            along_line(rgbx, x[0], x[1], x[2], j, floats, half * 4 * steps + 4 * j, table)
                    elif table.size:
                        _look_up(table, rgbx, x[0], width, levels, 0)
                        _look_up(table, rgbx, x[1], width, levels, 4)
                        for j in range(0, steps, STEP):
                            along(levels, lefts, rights, x[2], j, floats, half * 4 * steps + 4 * j)
                    else:
                        for j in range(0, steps, STEP):
                            along(rgbx, x[0], x[1], x[2], j, floats, half * 4 * steps + 4 * j)
            above = 0 if y_low[i] == known[0] else 4 * steps
            below = 0 if y_high[i] == known[0] else 4 * steps
            _between_rows(floats, above, below, y_weight[i], width, target)
        calculate(last_codes, last_values, target)
        if bytes_out.size:
            _as_bytes(line, bytes_out, at, plane)
        elif plane:
            _in_planes(line, floats_out, at, plane)


@helper
def _look_up(table, rgbx, places, width, levels, to):
    """Write the entries of `table` for the pixels at `places` of a row, from `to` on, 8 values apart."""
    for j in range(np.uint64(width)):
        at, out = np.uint64(places[j]), np.uint64(to) + np.uint64(8) * j
        for c in range(np.uint64(3)):
            levels[out + c] = table[np.uint64(256) * c + np.uint64(rgbx[at + c])]


@helper
def _in_planes(line, out, at, plane):
    """Write a row of values with each channel in a plane of `plane` values."""
    width = line.size // 3
    vectors = width // STEP * STEP
    for j in range(0, vectors, STEP):
        apart(line, 3 * j, out, at + j, plane)
    for j in range(vectors, width):
        for c in range(3):
            out[at + j + c * plane] = line[3 * j + c]


@helper
def _as_bytes(line, out, at, plane):
    """Write a row of values, truncated: interleaved, or with each channel in a plane of `plane` values."""
    if plane == 0:
        for j in range(line.size):
            out[np.uint64(at + j)] = np.uint8(np.int32(line[j]))
    else:
        for j in range(line.size // 3):
            for c in range(3):
                out[np.uint64(at + j + c * plane)] = np.uint8(np.int32(line[3 * j + c]))


@helper
def _between_rows(floats, above, below, weight, width, out):
    """Write the pixels between two rows."""
    vectors = width // STEP * STEP
    for j in range(0, vectors, STEP):
        between(floats, above + 4 * j, below + 4 * j, weight, out, 3 * j)
    for j in range(vectors, width):
        for c in range(3):
            a = floats[above + 4 * j + c]
            out[3 * j + c] = a + (floats[below + 4 * j + c] - a) * weight


@helper
def _level(table, sample):
    return table[np.uint64(sample)] if table.size else np.float32(sample)


@helper
def _row_of_luma(header, samples, low, high, weight, x, table, out):
    left, right, across = x
    stride = layout(header)[2]
    top, bottom = low * stride + MARGIN, high * stride + MARGIN
    for j in range(out.size):
        a = _level(table, samples[np.uint64(top + left[j])])
        b = _level(table, samples[np.uint64(bottom + left[j])])
        a = a + (_level(table, samples[np.uint64(top + right[j])]) - a) * across[j]
        b = b + (_level(table, samples[np.uint64(bottom + right[j])]) - b) * across[j]
        out[np.uint64(j)] = a + (b - a) * weight


@kernel(
    "addresses: w i64[:], lengths: w i64[:], table: w i64[:, :], codes: w i64[:], samples: w u8[:], windows: w i64[:, "
    ":], flips: w i8[:, :], copies: bool, levels: w f32[:], last_codes: w i64[:], last_values: w f32[:, :], "
    "height: i64, width: i64, channels: i64, separate: bool, floats_out: w f32[:], bytes_out: w u8[:], places: w "
    "i64[:], accurate: bool, done: w i8[:] -> i64",
    makes_arrays=True,
)
def decode_block(
    addresses,
    lengths,
    table,
    codes,
    samples,
    windows,
    flips,
    copies,
    levels,
    last_codes,
    last_values,
    height,
    width,
    channels,
    separate,
    floats_out,
    bytes_out,
    places,
    accurate,
    done,
):
    """Decode each file to its place, an index into a flat `floats_out` or `bytes_out`. The other array is empty.

    With `copies` an image keeps its size. Otherwise it is resized to `height` and `width`. `levels` (256 for each
    channel), unless empty, are resized in place of the values from 0 to 255. For three channels they may be a LINE.
    Then the operations `last_codes` follow, each with its row of `last_values`. Channels are `separate` planes, or
    interleaved. `table` is that of `read_headers`. `codes` has tables of Huffman codes from earlier calls, or CODES
    zeros. `windows` (N, 4) has top, left, height and width of the part to decode, or is empty. `flips` (N, 2) has the
    flips of columns and of rows. With `accurate` the DCT is libjpeg's accurate one. `done[n]` is 1 if the place was
    written, 0 if it is unchanged. The result is the needed size of `samples`. If `samples` is smaller, new memory is
    allocated.
    """
    done[:] = 0
    if codes.size != CODES:
        return 0
    in_row = in_picture = tallest = widest = 0
    for n in range(table.shape[0]):
        if table[n, TAKEN]:
            coefficients, planes = room(table[n])
            in_row, in_picture = max(in_row, coefficients), max(in_picture, planes)
            tallest, widest = max(tallest, table[n, HEIGHT]), max(widest, table[n, WIDTH])
    if in_picture > samples.size:
        samples = np.empty(in_picture, np.uint8)
    work = new_work(in_row, codes)
    rgbx = np.empty(4 * (widest + PIXELS), np.uint8)
    lines = tallest if copies else height
    steps = ((widest if copies else width) + STEP - 1) // STEP * STEP
    y = np.empty(lines, np.int64), np.empty(lines, np.int64), np.empty(lines, np.float32)
    x = np.zeros(steps, np.int64), np.zeros(steps, np.int64), np.zeros(steps, np.float32)
    floats = np.empty(2 * 4 * steps, np.float32)
    for n in range(table.shape[0]):
        header = table[n]
        if not header[TAKEN]:
            continue
        top, left, rows, columns = 0, 0, header[HEIGHT], header[WIDTH]
        if windows.size:
            top, left, rows, columns = windows[n, 0], windows[n, 1], windows[n, 2], windows[n, 3]
            if min(top, left) < 0 or min(rows, columns) < 1:
                continue
            if rows > header[HEIGHT] - top or columns > header[WIDTH] - left:
                continue
        out_rows, out_columns = (rows, columns) if copies else (height, width)
        size = out_rows * out_columns * channels
        if places[n] < 0 or places[n] + size > max(floats_out.size, bytes_out.size):
            continue
        if levels.size not in (0, 256 * channels, LINE if channels == 3 else 0):
            continue
        only_luma = channels == 1
        window = top, top + rows, left, left + columns
        if not decode_planes(addresses[n], lengths[n], header, work, samples, only_luma, window, accurate):
            continue
        done[n] = 1
        _taps(top, rows, out_rows, flips[n, 1], *y)
        _taps(left, columns, out_columns, flips[n, 0], *x)
        if copies:
            _copied(header, samples, rgbx, y[0][:rows], x[0][:columns], channels, bytes_out, places[n])
        else:
            source, out = (header, samples, rgbx, left, left + columns), (floats_out, bytes_out, places[n])
            plane = height * width if separate and channels == 3 else 0
            _resized(source, floats, y, x, width, levels, (last_codes, last_values), channels, plane, out)
    return in_picture
