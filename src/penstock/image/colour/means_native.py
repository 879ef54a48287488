"""Compiled contrast, standardisation and normalisation. Their bits equal those of `means`; they run without the GIL.

A folded sum adds the second half of an array to its first half until one row is left. Here one pass over the image does
three foldings. For each remaining row, one eighth of all rows, eight rows are read. The remaining rows fit the cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.core.extending import overload

from penstock.image.colour.pixels_native import stored, unit
from penstock.image.kernels import ONE
from penstock.image.kernels.instructions import pick
from penstock.native.kernel import INLINED, inlined, kernel

NOTHING = np.float32(-0.0)
LANES = 1024  # parallel float64 sums: long enough for vectors, short enough for the cache
TILE = 1024  # minimum of values in a row of repeated means: long enough for vectors, short enough for the cache


@inlined
def gather(src, start, row, rows, channels, parts):
    """Load the eight values that three foldings add to one row. A missing value is -0.0, which adds nothing."""
    one = rows - rows // 2
    two = one - one // 2
    three = two - two // 2
    for leaf in range(8):
        upper = row + (leaf >> 2) * three
        middle = upper + (leaf >> 1 & 1) * two
        lower = middle + (leaf & 1) * one
        there = (leaf < 4 or upper < two) and (leaf >> 1 & 1 == 0 or middle < one) and (leaf & 1 == 0 or lower < rows)
        parts[leaf] = unit(src[np.uint64(start + lower * channels)]) if there else NOTHING


@inlined
def fold(src, start, rows, channels, parts, buffer):
    """Write the folded sum of `rows` rows of `src`, from `start` on, into the first `channels` values of `buffer`.

    `parts` has room for eight values.
    """
    one = rows - rows // 2
    two = one - one // 2
    three = two - two // 2
    whole = max(three - 3, 0)  # a folding of an odd count leaves one row alone, which is among the last three
    a, b, c = one * channels, two * channels, three * channels
    for i in range(whole * channels):
        j = start + i
        first = unit(src[np.uint64(j)]) + unit(src[np.uint64(j + a)])
        second = unit(src[np.uint64(j + b)]) + unit(src[np.uint64(j + b + a)])
        j += c
        third = unit(src[np.uint64(j)]) + unit(src[np.uint64(j + a)])
        fourth = unit(src[np.uint64(j + b)]) + unit(src[np.uint64(j + b + a)])
        buffer[np.uint64(i)] = (first + second) + (third + fourth)
    for i in range(whole * channels, c):
        gather(src, start + i % channels, i // channels, rows, channels, parts)
        buffer[i] = ((parts[0] + parts[1]) + (parts[2] + parts[3])) + ((parts[4] + parts[5]) + (parts[6] + parts[7]))
    left = three
    while left > 1:
        half = left // 2
        left -= half
        far = left * channels
        for i in range(half * channels):
            buffer[np.uint64(i)] += buffer[np.uint64(i + far)]


@kernel("src: T[:], pixels: i64, channels: i64, factors: f32[:], dst: w T[:]", T="u8 f32", makes_arrays=True)
def contrast(src, pixels, channels, factors, dst):
    """Multiply the distance from the channel's mean by a factor per image, in flat images of `pixels` pixels."""
    size = pixels * channels
    if pixels < 1 or channels < 1 or factors.size * size < min(src.size, dst.size):
        return
    period = channels * (TILE // channels + 1)
    tile = np.empty(period, np.float32)
    buffer = np.empty((pixels // 8 + 1) * channels, np.float32)
    parts = np.empty(8, np.float32)
    share = ONE / np.float32(pixels)
    for image in range(min(src.size, dst.size) // size):
        start, factor = image * size, factors[image]
        fold(src, start, pixels, channels, parts, buffer)
        for k in range(period):
            tile[k] = buffer[k % channels] * share
        for begin in range(0, size, period):
            for k in range(min(period, size - begin)):
                i = np.uint64(start + begin + k)
                mean = tile[np.uint64(k)]
                dst[i] = stored(mean + factor * (unit(src[i]) - mean), dst)


@inlined
def levels_moments(src, start, size):
    """Return mean and standard deviation of levels, from exact sums."""
    total, squares = np.int64(0), np.int64(0)
    for i in range(start, start + size):
        value = np.int64(src[np.uint64(i)])
        total += value
        squares += value * value
    mean = np.float64(total) / size
    return bounded(mean, np.float64(squares) / size - mean * mean, size)


@inlined
def floats_moments(src, start, size, lanes):
    """Return mean and standard deviation of floats, from float64 sums in lanes."""
    mean = 0.0
    variance = 0.0
    for squared in range(2):
        for k in range(LANES):
            lanes[k] = 0.0
        for begin in range(0, size, LANES):
            for k in range(min(LANES, size - begin)):
                distance = np.float64(src[np.uint64(start + begin + k)]) - mean
                lanes[np.uint64(k)] += pick(squared == 1, distance * distance, distance)
        half = LANES // 2
        while half > 0:
            for k in range(half):
                lanes[np.uint64(k)] += lanes[np.uint64(k + half)]
            half //= 2
        if squared:
            variance = lanes[0] / size
        else:
            mean = lanes[0] / size
    return bounded(mean, variance, size)


@inlined
def bounded(mean, variance, size):
    spread = np.sqrt(variance if variance > 0 else 0.0 * variance)
    least = 1 / np.sqrt(np.float64(size))
    return np.float32(mean), np.float32(least if spread < least else spread)


def moments(src: Any, start: int, size: int, lanes: Any) -> Any:
    """Return the mean of `size` values, and their standard deviation, at least 1 / sqrt(size)."""


@overload(moments, jit_options=INLINED, strict=False)
def _moments(src: Any, start: int, size: int, lanes: Any) -> Any:
    if src.dtype == types.uint8:
        return lambda src, start, size, lanes: levels_moments(src, start, size)
    return lambda src, start, size, lanes: floats_moments(src, start, size, lanes)


@kernel("src: T[:], size: i64, dst: w f32[:]", T="u8 f32", makes_arrays=True)
def standardise(src, size, dst):
    """Give each flat image of `size` values mean 0 and variance 1."""
    lanes = np.empty(LANES, np.float64)
    if size < 1:
        return
    for image in range(min(src.size, dst.size) // size):
        start = image * size
        mean, spread = moments(src, start, size, lanes)
        for k in range(size):
            i = np.uint64(start + k)
            dst[i] = (np.float32(src[i]) - mean) / spread


@kernel("src: T[:], mean: f32[:], std: f32[:], dst: w f32[:]", T="u8 f32", makes_arrays=True)
def normalise(src, mean, std, dst):
    """Subtract the channel's mean from each value, and divide by the channel's std."""
    channels = min(mean.size, std.size)
    if channels < 1:
        return
    period = channels * (TILE // channels + 1)
    means, stds = np.empty(period, np.float32), np.empty(period, np.float32)
    for k in range(period):
        means[k], stds[k] = mean[k % channels], std[k % channels]
    size = min(src.size, dst.size)
    for begin in range(0, size, period):
        for k in range(min(period, size - begin)):
            i = np.uint64(begin + k)
            dst[i] = (np.float32(src[i]) - means[np.uint64(k)]) / stds[np.uint64(k)]
