"""The fast kernels of `pillow`: operations that mix channels, the mean of the luma and sharpness, without the GIL.

The three channels of a row are copied to arrays of their own, which LLVM vectorises, and each operation changes them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.image.colour.pillow import SATURATION
from penstock.image.colour.pixels_native import level
from penstock.image.kernels import BAD_ARGUMENT
from penstock.native.kernel import helper, inlined, kernel

_u, _i = np.uint64, np.int32
_RED, _GREEN, _BLUE, _ROUND = _i(19595), _i(38470), _i(7471), _i(0x8000)


@inlined
def _luma(red: Any, green: Any, blue: Any) -> Any:
    return (_i(red) * _RED + _i(green) * _GREEN + _i(blue) * _BLUE + _ROUND) >> _i(16)


@inlined
def _blended(one: Any, other: Any, factor: Any) -> Any:
    """Return Pillow's blend of two integers."""
    return level(np.float32(one) + factor * np.float32(_i(other - one)))


@helper
def _saturate(red: Any, green: Any, blue: Any, factor: Any) -> None:
    for j in range(_u(red.size)):
        grey = _luma(red[j], green[j], blue[j])
        red[j] = _blended(grey, _i(red[j]), factor)
        green[j] = _blended(grey, _i(green[j]), factor)
        blue[j] = _blended(grey, _i(blue[j]), factor)


@inlined
def _rounded(value: Any) -> Any:
    whole = _i(value)
    return np.uint8(whole + _i(value - np.float64(whole) >= 0.5))


@helper
def _turn(rows: Any, shift: int, hues: Any, shares: Any) -> None:
    """Add `shift` to the hue of a row."""
    for j in range(_u(rows.shape[1])):
        red, green, blue = _i(rows[0, j]), _i(rows[1, j]), _i(rows[2, j])
        high, low = max(red, green, blue), min(red, green, blue)
        if red == high:
            sector = _i(green < blue)
        elif green == high:
            sector = _i(2) + _i(red < blue)
        else:
            sector = _i(4) + _i(green < red)
        span, below = high - low, high + high + low - red - green - blue
        hue = (_i(hues[_u((sector << _i(16)) + (span << _i(8)) + below)]) + _i(shift)) & _i(255)
        part = np.float32(np.float64(shares[_u((span << _i(8)) + high)]) / 255.0)
        place = hue * _i(6) // _i(255)
        rest = np.float32(np.float64(hue) * 6.0 / 255.0 - np.float64(place))
        if place & _i(1):
            kept = 1.0 - np.float64(part * rest)
        else:
            kept = 1.0 - np.float64(part) * (1.0 - np.float64(rest))
        top, bottom = np.uint8(high), _rounded(np.float64(high) * (1.0 - np.float64(part)))
        mixed = _rounded(np.float64(high) * kept)
        first = place == _i(0) or place == _i(6)
        rows[0, j] = top if first or place == _i(5) else bottom if place == _i(2) or place == _i(3) else mixed
        rows[1, j] = top if place == _i(1) or place == _i(2) else bottom if place == _i(4) or place == _i(5) else mixed
        rows[2, j] = top if place == _i(3) or place == _i(4) else bottom if first or place == _i(1) else mixed


@kernel(
    "src: u8[:, :, :], tables: u8[:, :, :], codes: i64[:], numbers: f32[:], hues: u8[:], shares: u8[:], table: T[:, :],"
    " planes: i64, out: w T[:, :, :] -> i64",
    makes_arrays=True,
    T="u8 f32",
)
def mix(
    src: Any, tables: Any, codes: Any, numbers: Any, hues: Any, shares: Any, table: Any, planes: int, out: Any
) -> int:
    """Write `table`'s values for the image `src` after operations that mix three channels.

    Operation k takes the values in `tables[k]`. `out` is (channels, height, width) with `planes`.
    """
    height, width, channels, count = src.shape[0], src.shape[1], src.shape[2], codes.size
    fits = (channels == 3 or count == 0) and table.shape[0] == channels and table.shape[1] == 256
    fits = fits and tables.shape[0] == count and tables.shape[1] == channels and tables.shape[2] == 256
    fits = fits and numbers.size == count and hues.size == 6 * 65536 and shares.size == 65536
    if planes:
        fits = fits and out.shape[0] == channels and out.shape[1] == height and out.shape[2] == width
    else:
        fits = fits and out.shape[0] == height and out.shape[1] == width and out.shape[2] == channels
    if not fits:
        return BAD_ARGUMENT
    rows = np.empty((channels, width), np.uint8)
    for y in range(_u(height)):
        for c in range(_u(channels)):
            for j in range(_u(width)):
                rows[c, j] = src[y, j, c]
        for k in range(count):
            for c in range(_u(3)):
                for j in range(_u(width)):
                    rows[c, j] = tables[_u(k), c, rows[c, j]]
            if codes[k] == SATURATION:
                _saturate(rows[0], rows[1], rows[2], numbers[k])
            else:
                _turn(rows, int(numbers[k]), hues, shares)
        for c in range(_u(channels)):
            if planes:
                for j in range(_u(width)):
                    out[c, y, j] = table[c, rows[c, j]]
            else:
                for j in range(_u(width)):
                    out[y, j, c] = table[c, rows[c, j]]
    return 0


@kernel("src: u8[:], tables: u8[:, :] -> i64", makes_arrays=True)
def luma_sum(src: Any, tables: Any) -> int:
    """Return the sum of the luma of the values in `tables`, for the flat RGB image `src`."""
    if tables.shape[0] != 3 or tables.shape[1] != 256:
        return 0
    shares = np.empty((3, 256), np.int32)
    for k in range(256):
        shares[0, k] = _i(tables[0, k]) * _RED + _ROUND
        shares[1, k] = _i(tables[1, k]) * _GREEN
        shares[2, k] = _i(tables[2, k]) * _BLUE
    total = 0
    for pixel in range(src.size // 3):
        at = _u(3 * pixel)
        total += int((shares[0, src[at]] + shares[1, src[at + _u(1)]] + shares[2, src[at + _u(2)]]) >> _i(16))
    return total


@kernel("src: u8[:], height: i64, width: i64, channels: i64, factor: f32, dst: w u8[:]")
def sharpen(src: Any, height: int, width: int, channels: int, factor: Any, dst: Any) -> None:
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
