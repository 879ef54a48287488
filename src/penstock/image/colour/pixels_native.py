"""Kernels of the colour operations on single pixels. Their bits equal those of `pixels`; they run without the GIL.

The code has no branches, so that LLVM vectorises it. A branch, or a division that may raise, makes it twenty times
slower. No fast-math flag is used: the operations and their order are those of `pixels`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.core.extending import overload

from penstock.image.kernels import FIVE, FOUR, HALF, LEVELS, ONE, PER_LEVEL, SIX, THREE, TOP, TWO, ZERO
from penstock.image.kernels.instructions import floor, pick
from penstock.native.kernel import INLINED, inlined, kernel


@inlined
def clipped(value, top):
    """Return `value` limited to 0 to `top`."""
    value = pick(value > ZERO, value, ZERO)
    return pick(value < top, value, top)


@inlined
def level(value):
    """Return a float32 as a uint8, saturated and truncated."""
    return np.uint8(np.int32(clipped(value, TOP)))


def unit(pixel: Any) -> Any:
    """Return a stored value as float32. A level becomes its share of 255."""


@overload(unit, jit_options=INLINED, strict=False)
def _unit(pixel: Any) -> Any:
    if pixel == types.uint8:
        return lambda pixel: np.float32(pixel) * PER_LEVEL
    return lambda pixel: pixel


def stored(value: Any, like: Any) -> Any:
    """Return a float32 in the dtype of `like`: as a level, saturated and truncated, or unchanged."""


@overload(stored, jit_options=INLINED, strict=False)
def _stored(value: Any, like: Any) -> Any:
    if like.dtype == types.uint8:
        return lambda value, like: level(value * LEVELS)
    return lambda value, like: value


@inlined
def saturated(red, green, blue, factor):
    """Return one pixel with its saturation times `factor`."""
    value = pick(red < green, green, red)
    value = pick(value < blue, blue, value)
    low = pick(green < red, green, red)
    low = pick(blue < low, blue, low)
    span = value - low
    share = pick(value > ZERO, span / value, ZERO)
    norm = ONE / (SIX * span)
    is_red = red == value
    is_green = green == value
    turn = norm * pick(is_red, green - blue, pick(is_green, blue - red, red - green))
    moved = np.float64(turn) + pick(is_green, 2.0 / 6.0, 4.0 / 6.0)
    turn = pick(is_red, turn, np.float32(moved))
    turn = pick(turn == turn, turn, ZERO)  # grey has none
    turn = pick(turn < ZERO, turn + ONE, turn)
    share = clipped(share * factor, ONE)
    chroma = share * value
    rest = value - chroma
    turn = turn * SIX
    past = turn - TWO * floor(turn * HALF)
    second = chroma * (ONE - abs(past - ONE))
    red, green, blue = around(turn, chroma, second, ZERO)
    return red + rest, green + rest, blue + rest


@inlined
def turned(red, green, blue, sixths):
    """Return one pixel with its hue rotated by `sixths` of a sixth of the circle."""
    rising = red < green
    low = pick(green < red, green, red)
    high = pick(rising, green, red)
    below = blue < low
    above = high < blue
    middle = pick(below, low, pick(above, high, blue))
    low = pick(below, blue, low)
    high = pick(above, blue, high)
    span = high - low
    sector = pick(below, pick(rising, ONE, ZERO), pick(above, pick(rising, THREE, FOUR), pick(rising, TWO, FIVE)))
    odd = rising == (below | above)
    share = (middle - low) / span
    turn = sector + pick(odd, ONE - share, share)
    turn = pick(high == low, ZERO, turn)
    turn = turn + sixths
    turn = pick(turn < ZERO, turn + SIX, turn)
    turn = pick(turn >= SIX, turn - SIX, turn)
    turn = pick(turn >= SIX, turn - SIX, turn)
    past = turn - TWO * floor(turn * HALF)
    share = pick(past < ONE, past, TWO - past)
    return around(turn, high, low + share * span, low)


@inlined
def around(turn, high, middle, low):
    """Return red, green and blue for a hue of 0 to 6 sixths."""
    first, second, third, fourth, fifth = turn < ONE, turn < TWO, turn < THREE, turn < FOUR, turn < FIVE
    red = pick(first, high, pick(second, middle, pick(fourth, low, pick(fifth, middle, high))))
    green = pick(first, middle, pick(third, high, pick(fourth, middle, low)))
    blue = pick(second, low, pick(third, middle, pick(fifth, high, middle)))
    return red, green, blue


@kernel("src: T[:], pixels: i64, channels: i64, deltas: f32[:], dst: w T[:]", T="u8 f32")
def brightness(src, pixels, channels, deltas, dst):
    """Add a delta per image to each flat image of `pixels` times `channels` values."""
    size = pixels * channels
    for image in range(fitting(src, size, deltas, dst)):
        delta = deltas[image]
        for i in range(image * size, (image + 1) * size):
            at = np.uint64(i)  # numba would test each signed index for a negative value
            dst[at] = stored(unit(src[at]) + delta, dst)


@kernel("src: T[:], pixels: i64, channels: i64, factors: f32[:], dst: w T[:]", T="u8 f32")
def saturation(src, pixels, channels, factors, dst):
    """Multiply the saturation of each flat RGB image of `pixels` pixels by a factor per image."""
    for image in range(fitting(src, 3 * pixels, factors, dst)):
        factor = factors[image]
        for i in range(image * pixels, (image + 1) * pixels):
            at = np.uint64(3 * i)
            second, third = at + np.uint64(1), at + np.uint64(2)
            red, green, blue = saturated(unit(src[at]), unit(src[second]), unit(src[third]), factor)
            dst[at] = stored(red, dst)
            dst[second] = stored(green, dst)
            dst[third] = stored(blue, dst)


@kernel("src: T[:], pixels: i64, channels: i64, deltas: f32[:], dst: w T[:]", T="u8 f32")
def hue(src, pixels, channels, deltas, dst):
    """Rotate the hue of each flat RGB image of `pixels` pixels by a delta per image, a share of the circle."""
    for image in range(fitting(src, 3 * pixels, deltas, dst)):
        sixths = deltas[image] * SIX
        for i in range(image * pixels, (image + 1) * pixels):
            at = np.uint64(3 * i)
            second, third = at + np.uint64(1), at + np.uint64(2)
            red, green, blue = turned(unit(src[at]), unit(src[second]), unit(src[third]), sixths)
            dst[at] = stored(red, dst)
            dst[second] = stored(green, dst)
            dst[third] = stored(blue, dst)


@inlined
def fitting(src, size, factors, dst):
    """Return the number of images of `size` values that have room in `dst` and a factor."""
    return min(src.size, dst.size) // size if size > 0 and factors.size * size >= min(src.size, dst.size) else 0


SIXTH, THIRD, TWO_THIRDS = ONE / SIX, TWO / SIX, FOUR / SIX
RED, GREEN, BLUE = (np.float32(weight) for weight in (0.2989, 0.5870, 0.1140))


@kernel("src: f32[:], dst: w f32[:]")
def to_hsv(src, dst):
    """Write hue, saturation and value of the flat RGB pixels of `src`."""
    for i in range(min(src.size, dst.size) // 3):
        at = np.uint64(3 * i)  # numba would test each signed index for a negative value
        second, third = at + np.uint64(1), at + np.uint64(2)
        red, green, blue = src[at], src[second], src[third]
        value = pick(red < green, green, red)
        value = pick(value < blue, blue, value)
        low = pick(green < red, green, red)
        span = value - pick(blue < low, blue, low)
        norm = (ONE / span) * SIXTH
        warm = pick(green == value, norm * (blue - red) + THIRD, norm * (red - green) + TWO_THIRDS)
        hue = pick(red == value, norm * (green - blue), warm)
        hue = pick(span > ZERO, hue, ZERO)
        dst[at] = pick(hue < ZERO, hue + ONE, hue)
        dst[second] = pick(value > ZERO, span / value, ZERO)
        dst[third] = value


@kernel("src: f32[:], dst: w f32[:]")
def to_rgb(src, dst):
    """Write red, green and blue of the flat HSV pixels of `src`."""
    for i in range(min(src.size, dst.size) // 3):
        at = np.uint64(3 * i)
        second, third = at + np.uint64(1), at + np.uint64(2)
        turn, share, value = src[at] * SIX, src[second], src[third]
        rest = ONE - share
        dst[at] = (rest + share * clipped(abs(turn - THREE) - ONE, ONE)) * value
        dst[second] = (rest + share * clipped(TWO - abs(turn - TWO), ONE)) * value
        dst[third] = (rest + share * clipped(TWO - abs(turn - FOUR), ONE)) * value


@kernel("src: T[:], dst: w T[:]", T="u8 f32")
def to_grey(src, dst):
    """Write the luma of the flat RGB pixels of `src`."""
    for i in range(min(src.size // 3, dst.size)):
        at = np.uint64(3 * i)
        second, third = at + np.uint64(1), at + np.uint64(2)
        dst[i] = stored(unit(src[at]) * RED + unit(src[second]) * GREEN + unit(src[third]) * BLUE, dst)


@kernel("src: T[:], dst: w T[:]", T="u8 f32")
def spread(src, dst):
    """Write each value of `src` three times."""
    for i in range(min(src.size, dst.size // 3)):
        at = np.uint64(3 * i)
        value = src[i]
        dst[at] = value
        dst[at + np.uint64(1)] = value
        dst[at + np.uint64(2)] = value


THIRTEEN = np.float32(13)


def average(total: Any, like: Any) -> Any:
    """Return a thirteenth of `total`.

    For levels it is the nearest level; the error of float32 is too small to change it.
    """


@overload(average, jit_options=INLINED, strict=False)
def _average(total: Any, like: Any) -> Any:
    if like.dtype == types.uint8:
        return lambda total, like: np.float32(np.int32(total / THIRTEEN + HALF))
    return lambda total, like: total / THIRTEEN


def blended(value: Any, like: Any) -> Any:
    """Return a float32 in the dtype of `like`, clipped to its range. A level is truncated."""


@overload(blended, jit_options=INLINED, strict=False)
def _blended(value: Any, like: Any) -> Any:
    if like.dtype == types.uint8:
        return lambda value, like: level(value)
    return lambda value, like: clipped(value, ONE)


@inlined
def blend_plain(src, begin, end, other, dst):
    """Blend the border, whose smoothed values are its own values."""
    for i in range(begin, end):
        value = np.float32(src[np.uint64(i)])
        dst[np.uint64(i)] = blended(value + other * (value - value), dst)


@kernel("src: T[:], height: i64, width: i64, channels: i64, other: f32, dst: w T[:]", T="u8 f32")
def sharpen(src, height, width, channels, other, dst):
    """Blend each flat image with its smoothed copy by `other`. Images are at least 3 x 3."""
    row = width * channels
    size = height * row
    if height < 3 or width < 3 or channels < 1:
        return
    for line in range(min(src.size, dst.size) // size * height):
        begin = line * row
        if line % height == 0 or line % height == height - 1:
            blend_plain(src, begin, begin + row, other, dst)
            continue
        blend_plain(src, begin, begin + channels, other, dst)
        for i in range(begin + channels, begin + row - channels):
            total = ZERO
            for up in range(-1, 2):
                at = i + up * row
                centre = np.float32(src[np.uint64(at)])
                total = total + np.float32(src[np.uint64(at - channels)])
                total = total + (centre * FIVE if up == 0 else centre)
                total = total + np.float32(src[np.uint64(at + channels)])
            value = np.float32(src[np.uint64(i)])
            dst[np.uint64(i)] = blended(value + other * (average(total, src) - value), dst)
        blend_plain(src, begin + row - channels, begin + row, other, dst)


WAYS = 4  # parallel counts; neighbouring pixels are often equal, and repeated additions to one place are slow


@kernel("src: u8[:], tables: u8[:], channels: i64, pixels: i64, dst: w u8[:]")
def look_up(src, tables, channels, pixels, dst):
    """Replace each level of the flat `src`, images of `pixels` pixels each, by its entry in the flat `tables`.

    There is one table of 256 entries for each channel of each image, or one for all.
    """
    size = min(src.size, dst.size)
    if tables.size == 256:
        for k in range(size):
            dst[k] = tables[np.uint64(src[k])]
        return
    if pixels < 1 or channels < 1:
        return
    for plane in range(min(size // (pixels * channels), tables.size // (256 * channels)) * channels):
        begin = first(plane, channels, pixels)
        for pixel in range(pixels):
            i = np.uint64(begin + pixel * channels)
            dst[i] = tables[np.uint64(plane * 256 + src[i])]


@kernel("src: u8[:], channels: i64, pixels: i64, counts: w i64[:]", makes_arrays=True)
def count(src, channels, pixels, counts):
    """Add to the flat `counts` the count of each level in each channel of each image."""
    if pixels < 1 or channels < 1:
        return
    ways = np.empty(WAYS * 256, np.int64)
    for plane in range(min(src.size // (pixels * channels), counts.size // (256 * channels)) * channels):
        ways[:] = 0
        begin = first(plane, channels, pixels)
        for pixel in range(pixels):
            ways[np.uint64(pixel % WAYS * 256 + src[np.uint64(begin + pixel * channels)])] += 1
        for k in range(256):
            for way in range(WAYS):
                counts[plane * 256 + k] += ways[way * 256 + k]


@inlined
def first(plane, channels, pixels):
    """Return the position of the first value of the plane (image × channels + channel)."""
    return plane // channels * channels * pixels + plane % channels
