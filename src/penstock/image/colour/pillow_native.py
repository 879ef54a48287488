"""The fast kernels of `pillow`: operations that mix channels, the mean of the luma and sharpness, without the GIL.

The three channels of a row are copied to arrays of their own, which LLVM vectorises, and each operation changes them.
"""

from __future__ import annotations

import numpy as np

from penstock.image.colour.pillow import SATURATION
from penstock.image.colour.pixels_native import level
from penstock.image.kernels import BAD_ARGUMENT
from penstock.image.kernels.instructions import pick
from penstock.image.kernels.tables import fits_result, look_up
from penstock.native.kernel import helper, inlined, kernel

_u, _i = np.uint64, np.int32
_RED, _GREEN, _BLUE, _ROUND = _i(19595), _i(38470), _i(7471), _i(0x8000)


@inlined
def _luma(red, green, blue):
    return (_i(red) * _RED + _i(green) * _GREEN + _i(blue) * _BLUE + _ROUND) >> _i(16)


@inlined
def _blended(one, other, factor):
    """Return Pillow's blend of two integers."""
    return level(np.float32(one) + factor * np.float32(_i(other - one)))


@helper
def _saturate(red, green, blue, factor):
    for j in range(_u(red.size)):
        grey = _luma(red[j], green[j], blue[j])
        red[j] = _blended(grey, _i(red[j]), factor)
        green[j] = _blended(grey, _i(green[j]), factor)
        blue[j] = _blended(grey, _i(blue[j]), factor)


@inlined
def _rounded(value):
    whole = _i(value)
    return whole + pick(value - np.float64(whole) >= 0.5, _i(1), _i(0))


@helper
def _turn(red, green, blue, shift, hues, floats, at, parts):
    """Add `shift` to the hue of a row. `at` and `parts` have room for three and two values of each pixel."""
    places, hue_rests, share_parts = floats
    count = _u(red.size)
    hue_at, share_at, high_of = at[0], at[1], at[2]
    for j in range(count):
        r, g, b = _i(red[j]), _i(green[j]), _i(blue[j])
        high, low = max(max(r, g), b), min(min(r, g), b)
        first = pick(g < b, _i(1), _i(0))
        second = pick(r < b, _i(3), _i(2))
        third = pick(g < r, _i(5), _i(4))
        sector = pick(r == high, first, pick(g == high, second, third))
        span = high - low
        hue_at[j] = (sector << _i(16)) + (span << _i(8)) + high + high + low - r - g - b
        share_at[j] = (_i(6) << _i(16)) + (span << _i(8)) + high
        high_of[j] = high
    rests, shared = parts[0], parts[1]
    for j in range(count):
        hue = _u((int(hues[_u(hue_at[j])]) + shift) & 255)
        rests[j] = hue_rests[hue]
        shared[j] = share_parts[_u(hues[_u(share_at[j])])]
        hue_at[j] = places[hue]
    for j in range(count):
        top, part, rest, place = high_of[j], shared[j], rests[j], hue_at[j]
        highest = np.float64(top)
        falling = 1.0 - np.float64(part * rest)
        rising = 1.0 - np.float64(part) * (1.0 - np.float64(rest))
        bottom = _rounded(highest * (1.0 - np.float64(part)))
        mixed = _rounded(highest * pick((place & _i(1)) == _i(1), falling, rising))
        low_red, low_green = (place == _i(2)) | (place == _i(3)), (place == _i(4)) | (place == _i(5))
        low_blue = (place == _i(0)) | (place == _i(1))
        top_red, top_green = (place == _i(0)) | (place == _i(5)), (place == _i(1)) | (place == _i(2))
        top_blue = (place == _i(3)) | (place == _i(4))
        red[j] = np.uint8(pick(top_red, top, pick(low_red, bottom, mixed)))
        green[j] = np.uint8(pick(top_green, top, pick(low_green, bottom, mixed)))
        blue[j] = np.uint8(pick(top_blue, top, pick(low_blue, bottom, mixed)))


@helper
def _load(src, begin, rows):
    """Copy the values from `begin` on to one row for each channel."""
    channels, start = rows.shape[0], _u(begin)
    if channels == 3:
        for j in range(_u(rows.shape[1])):
            at = start + j * _u(3)
            red, green, blue = src[at], src[at + _u(1)], src[at + _u(2)]
            rows[0, j], rows[1, j], rows[2, j] = red, green, blue
        return
    for c in range(_u(channels)):
        for j in range(_u(rows.shape[1])):
            rows[c, j] = src[start + j * _u(channels) + c]


@helper
def _changes(table):
    """Return the number of values that the table changes."""
    changes = 0
    for k in range(256):
        changes += int(table[k]) != k
    return changes


@helper
def _replace(values, table):
    for j in range(_u(values.size)):
        values[j] = table[values[j]]


@kernel(
    "src: u8[:], shape: i64[:], tables: u8[:, :, :], codes: i64[:], numbers: f32[:], hues: u8[:], table: T[:, :],"
    " planes: i64, out: w T[:, :, :] -> i64",
    makes_arrays=True,
    T="u8 f32",
)
def mix(src, shape, tables, codes, numbers, hues, table, planes, out):
    """Write `table`'s values for the flat image `src` after operations that mix three channels.

    `shape` is height, width and channels. Operation k takes the values in `tables[k]`. `out` is (channels, height,
    width) with `planes`.
    """
    height, width, channels, count = shape[0], shape[1], shape[2], codes.size
    fits = src.size == height * width * channels and (channels == 3 or count == 0) and numbers.size == count
    fits = fits and tables.shape[0] == count and tables.shape[1] == channels and tables.shape[2] == 256
    fits = fits and hues.size == 7 * 65536
    if not fits or not fits_result(table, out, planes, height, width, channels):
        return BAD_ARGUMENT
    rows, at = np.empty((channels, width), np.uint8), np.empty((3, width), np.int32)
    parts = np.empty((2, width), np.float32)
    hue_rests, share_parts, places = np.empty(256, np.float32), np.empty(256, np.float32), np.empty(256, np.int32)
    for k in range(256):
        place = k * 6 // 255
        hue_rests[k] = np.float64(k) * 6.0 / 255.0 - np.float64(place)
        share_parts[k] = np.float64(k) / 255.0
        places[k] = place % 6
    changes = np.empty((count, 3), np.int64)
    for k in range(count):
        for c in range(3):
            changes[k, c] = _changes(tables[k, c])
    for y in range(height):
        _load(src, y * width * channels, rows)
        for k in range(count):
            for c in range(3):
                if changes[k, c]:
                    _replace(rows[c], tables[k, c])
            if codes[k] == SATURATION:
                _saturate(rows[0], rows[1], rows[2], numbers[k])
            else:
                floats = places, hue_rests, share_parts
                _turn(rows[0], rows[1], rows[2], int(numbers[k]), hues, floats, at, parts)
        for c in range(channels):
            look_up(rows[c], 0, width, table, c, out, y, planes)
    return 0


@kernel("src: u8[:], width: i64, tables: u8[:, :] -> i64", makes_arrays=True)
def luma_sum(src, width, tables):
    """Return the sum of the luma of the values in `tables`, for the flat RGB image `src`."""
    if width < 1 or tables.shape[0] != 3 or tables.shape[1] != 256:
        return 0
    rows, total = np.empty((3, width), np.uint8), 0
    changes = _changes(tables[0]), _changes(tables[1]), _changes(tables[2])
    for y in range(src.size // (3 * width)):
        _load(src, y * width * 3, rows)
        for c in range(3):
            if changes[c]:
                _replace(rows[c], tables[c])
        row_sum = _i(0)
        for j in range(_u(width)):
            row_sum += _luma(rows[0, j], rows[1, j], rows[2, j])
        total += int(row_sum)
    return total


@kernel("src: u8[:], height: i64, width: i64, channels: i64, factor: f32, dst: w u8[:]")
def sharpen(src, height, width, channels, factor, dst):
    """Blend the flat image `src` of at least 3 x 3 pixels with the same image smoothed.

    A smoothed value is the rounded mean of its eight neighbours and 5 times itself. The border stays as it is.
    """
    line = width * channels
    if height < 3 or width < 3 or channels < 1 or src.size != height * line or dst.size != src.size:
        return
    for k in range(src.size):
        dst[_u(k)] = src[_u(k)]
    step, row = _u(channels), _u(line)
    for y in range(1, height - 1):
        begin = _u(y * line + channels)
        for j in range(_u(line - 2 * channels)):
            i = begin + j
            own = _i(src[i])
            total = _i(src[i - row - step]) + _i(src[i - row]) + _i(src[i - row + step])
            total += _i(src[i - step]) + _i(5) * own + _i(src[i + step])
            total += _i(src[i + row - step]) + _i(src[i + row]) + _i(src[i + row + step])
            dst[i] = _blended((_i(2) * total + _i(13)) // _i(26), own, factor)
