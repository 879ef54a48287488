"""The fast kernels of `pillow`: Pillow's resize, and copies of parts of images, without the GIL.

The pass along the width runs on columns: squares of eight bytes are transposed. Each result is then a weighted sum
of whole rows of bytes, which LLVM vectorises.
"""

from __future__ import annotations

import numpy as np

from penstock.image.kernels import BAD_ARGUMENT
from penstock.image.kernels.tables import fits_result, look_up
from penstock.image.resizing.pillow import BICUBIC, BILINEAR, BITS
from penstock.native.kernel import helper, inlined, kernel, maker

_u = np.uint64
_BYTES, _PAIRS, _FOURS = _u(0x00FF00FF00FF00FF), _u(0x0000FFFF0000FFFF), _u(0xFFFFFFFF)
_ONE, _HALF = np.int32(1 << BITS), np.int32(1 << (BITS - 1))


@inlined
def _height(kind, x):
    """Return the value of a filter at `x`."""
    if kind == BILINEAR:
        return max(1.0 - abs(x), 0.0)
    if kind == BICUBIC:
        x = abs(x)
        if x < 1.0:
            return ((-0.5 + 2.0) * x - (-0.5 + 3.0)) * x * x + 1
        return (((x - 5) * x + 8) * x - 4) * -0.5 if x < 2.0 else 0.0
    return 1.0 if -0.5 < x <= 0.5 else 0.0


@maker
def _taps(size, new, first, count, kind):
    """Return the first tap of each result from `first` on, the number of its taps, and their weights."""
    scale = size / new
    wide = max(scale, 1.0)
    support = (1.0 if kind == BILINEAR else 2.0 if kind == BICUBIC else 0.5) * wide
    most = int(np.ceil(support)) * 2 + 1
    low, many = np.empty(count, np.int64), np.empty(count, np.int64)
    weights, exact = np.zeros((count, most), np.int32), np.empty(most)
    for i in range(count):
        if size == new:  # a pass that Pillow leaves out
            low[i], many[i], weights[i, 0] = first + i, 1, _ONE
            continue
        centre = (first + i + 0.5) * scale
        start = max(int(centre - support + 0.5), 0)
        taps = min(int(centre + support + 0.5), size) - start
        total = 0.0
        for j in range(taps):
            exact[j] = _height(kind, (j + start - centre + 0.5) * (1.0 / wide))
            total += exact[j]
        for j in range(taps):
            value = (exact[j] / total if total != 0.0 else exact[j]) * (1 << BITS)
            weights[i, j] = int(value - 0.5) if value < 0 else int(value + 0.5)
        low[i], many[i] = start, taps
    return low, many, weights


@helper
def _blend(rows, start, step, taps, weights, sums, out, at, size):
    """Write the weighted sum of `taps` rows of `size` bytes, `step` apart, to `out` from `at` on."""
    count, to = _u(size), _u(at)
    for j in range(count):
        sums[j] = _HALF
    for i in range(taps):
        first, weight = _u(start + i * step), weights[i]
        for j in range(count):
            sums[j] += np.int32(rows[first + j]) * weight
    for j in range(count):
        out[to + j] = min(max(sums[j] >> np.int32(BITS), np.int32(0)), np.int32(255))


@inlined
def _word(src, at):
    j = _u(at)
    low = _u(src[j]) | _u(src[j + _u(1)]) << _u(8) | _u(src[j + _u(2)]) << _u(16) | _u(src[j + _u(3)]) << _u(24)
    high = (
        _u(src[j + _u(4)]) | _u(src[j + _u(5)]) << _u(8) | _u(src[j + _u(6)]) << _u(16) | _u(src[j + _u(7)]) << _u(24)
    )
    return low | high << _u(32)


@inlined
def _swap(a, b, mask, shift):
    return (a & mask) | ((b & mask) << shift), ((a >> shift) & mask) | (b & ~mask)


@helper
def _transpose(src, start, stride, height, width, words, turned, to, pitch):
    """Write column j of the bytes from `start` on to the words from `to + j * pitch` on; `turned` are their bytes."""
    for block in range((height + 7) // 8):
        y, j = block * 8, 0
        while j < width and width >= 8:
            j = min(j, width - 8)
            q = start + j
            r0, r1 = q + y * stride, q + min(y + 1, height - 1) * stride
            r2, r3 = q + min(y + 2, height - 1) * stride, q + min(y + 3, height - 1) * stride
            r4, r5 = q + min(y + 4, height - 1) * stride, q + min(y + 5, height - 1) * stride
            r6, r7 = q + min(y + 6, height - 1) * stride, q + min(y + 7, height - 1) * stride
            b0, b1 = _swap(_word(src, r0), _word(src, r1), _BYTES, _u(8))
            b2, b3 = _swap(_word(src, r2), _word(src, r3), _BYTES, _u(8))
            b4, b5 = _swap(_word(src, r4), _word(src, r5), _BYTES, _u(8))
            b6, b7 = _swap(_word(src, r6), _word(src, r7), _BYTES, _u(8))
            c0, c2 = _swap(b0, b2, _PAIRS, _u(16))
            c1, c3 = _swap(b1, b3, _PAIRS, _u(16))
            c4, c6 = _swap(b4, b6, _PAIRS, _u(16))
            c5, c7 = _swap(b5, b7, _PAIRS, _u(16))
            at = to + j * pitch + block
            words[at], words[at + 4 * pitch] = _swap(c0, c4, _FOURS, _u(32))
            words[at + pitch], words[at + 5 * pitch] = _swap(c1, c5, _FOURS, _u(32))
            words[at + 2 * pitch], words[at + 6 * pitch] = _swap(c2, c6, _FOURS, _u(32))
            words[at + 3 * pitch], words[at + 7 * pitch] = _swap(c3, c7, _FOURS, _u(32))
            j += 8
    if width < 8:
        for y in range(height):
            for j in range(width):
                turned[(to + j * pitch) * 8 + y] = src[start + y * stride + j]


@kernel(
    "src: u8[:], size: i64, stored: i64, channels: i64, places: i64[:], vertical_first: i64, table: T[:, :],"
    " words: w u64[:], turned: w u8[:], planes: i64, out: w T[:, :, :] -> i64",
    makes_arrays=True,
    T="u8 f32",
)
def resize_part(src, size, stored, channels, places, vertical_first, table, words, turned, planes, out):
    """Resize a window of the flat image `src` as Pillow does, and write `table`'s values for a part of it to `out`.

    The window may reach beyond the image, if the part reads no pixel there.

    The image has `size` rows of `stored` pixels. `places` holds top, left, height and width of the window, the new
    height and width, top, left, height and width of the part, flags of a flip left to right and top to bottom, and the
    filter. `words` and `turned` are the same scratch memory. `out` is (channels, height, width) with `planes`.
    """
    top, left, height, width, new_height, new_width = (places[0], places[1], places[2], places[3], places[4], places[5])
    y, x, rows, columns, mirrored, upside, kind = (
        places[6],
        places[7],
        places[8],
        places[9],
        places[10],
        places[11],
        places[12],
    )
    fits = min(y, x) >= 0 and min(height, width, new_height, new_width, rows, columns) > 0
    fits = fits and size * stored * channels == src.size
    fits = fits and y + rows <= new_height and x + columns <= new_width
    if not fits or not fits_result(table, out, planes, rows, columns, channels):
        return BAD_ARGUMENT
    pitch, edge = stored * channels, (columns + 7) // 8
    y_low, y_many, y_weights = _taps(height, new_height, y, rows, kind)
    x_low, x_many, x_weights = _taps(width, new_width, x, columns, kind)
    first, end = y_low[0], y_low[rows - 1] + y_many[rows - 1]
    begin, wide = x_low[0], x_low[columns - 1] + x_many[columns - 1] - x_low[0]
    if min(top + first, left + begin) < 0 or top + end > size or left + begin + wide > stored:
        return BAD_ARGUMENT
    line = wide * channels
    sums = np.empty(max(line, columns, end - first), np.int32)
    down = vertical_first != 0 and width != new_width and height > new_height
    down = down and height - new_height > 2 * (width - new_width)
    tall = rows if down else end - first
    blocks = (tall + 7) // 8
    back = line * blocks  # words before the results that are transposed again
    if words.size < back + max(tall, 8) * edge or turned.size != 8 * words.size:
        return BAD_ARGUMENT
    if down:
        between = np.empty(rows * line, np.uint8)
        for i in range(rows):
            start = (top + y_low[i]) * pitch + (left + begin) * channels
            _blend(src, start, pitch, y_many[i], y_weights[i], sums, between, i * line, line)
        _transpose(between, 0, line, tall, line, words, turned, 0, blocks)
    else:
        start = (top + first) * pitch + (left + begin) * channels
        _transpose(src, start, pitch, tall, line, words, turned, 0, blocks)
    results, row = np.empty(max(columns, 8) * blocks * 8, np.uint8), np.empty(columns, np.uint8)
    for c in range(channels):
        for j in range(columns):
            to = columns - 1 - j if mirrored else j
            start = ((x_low[j] - begin) * channels + c) * blocks * 8
            _blend(turned, start, channels * blocks * 8, x_many[j], x_weights[j], sums, results, to * blocks * 8, tall)
        _transpose(results, 0, blocks * 8, columns, max(tall, 8), words, turned, back, edge)
        for i in range(rows):
            to = rows - 1 - i if upside else i
            source, at = turned, (back + i * edge) * 8
            if not down:
                start = (back + (y_low[i] - first) * edge) * 8
                _blend(turned, start, edge * 8, y_many[i], y_weights[i], sums, row, 0, columns)
                source, at = row, 0
            look_up(source, at, columns, table, c, out, to, planes)
    return 0


@kernel(
    "src: u8[:, :, :, :], which: i64[:], places: i64[:, :], fill: u8[:], table: T[:, :], planes: i64,"
    " out: w T[:, :, :, :] -> i64",
    T="u8 f32",
)
def copy_parts(src, which, places, fill, table, planes, out):
    """Write the `table`'s values for parts of images to `out`. Pixels outside of an image are `fill`.

    `places` holds top and left of each part, and flags of a flip left to right and top to bottom.
    """
    count, channels = which.size, src.shape[3]
    rows, columns = (out.shape[2], out.shape[3]) if planes else (out.shape[1], out.shape[2])
    fits = places.shape[0] == count and places.shape[1] == 4 and out.shape[0] == count and fill.size == channels
    fits = fits and table.shape[0] == channels and table.shape[1] == 256
    fits = fits and (out.shape[1] if planes else out.shape[3]) == channels
    for n in range(count):
        fits = fits and 0 <= which[n] < src.shape[0]
    if not fits:
        return BAD_ARGUMENT
    height, width = src.shape[1], src.shape[2]
    for n in range(count):
        number, top, left, mirrored, upside = _u(which[n]), places[n, 0], places[n, 1], places[n, 2], places[n, 3]
        begin, end = min(max(-left, 0), columns), max(min(width - left, columns), 0)
        for i in range(rows):
            y = top + i
            to = _u(rows - 1 - i if upside else i)
            inside = 0 <= y < height
            for c in range(_u(channels)):
                for j in range(columns):
                    if inside and begin <= j < end:
                        value = table[c, src[number, _u(y), _u(left + j), c]]
                    else:
                        value = table[c, fill[c]]
                    x = _u(columns - 1 - j if mirrored else j)
                    if planes:
                        out[_u(n), c, to, x] = value
                    else:
                        out[_u(n), to, x, c] = value
    return 0
