"""Colour operations on runs of levels. Each returns the integers of the single operation.

They use equal float32 operations in equal order, or formulas with proven equal rounding. No fast-math flag is used. The
loops are written so that LLVM vectorises them without it.

Levels are the integers of a uint8 image, as float32, in runs by channel. This module also converts pixels to levels and
levels to bytes. It also computes the mean of a channel for contrast, with TensorFlow's result for each level.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.image.colour.pixels_native import saturated
from penstock.image.kernels import (
    BRIGHTNESS,
    FIVE,
    FOUR,
    HALF,
    HUE,
    LEFT_RIGHT,
    LEVEL,
    LEVELS,
    ONE,
    PER_LEVEL,
    SATURATION,
    SIX,
    THREE,
    TINY,
    TOP,
    TWO,
    UP_DOWN,
    ZERO,
)
from penstock.image.kernels.instructions import larger, pick, smaller, whole
from penstock.native.kernel import helper, specialised

_NEXT, _TWICE, _THRICE = np.uint64(1), np.uint64(2), np.uint64(3)


@helper
def load(src, at, n, a):
    """Load `n` pixels of three bytes each as three runs of levels."""
    start, run = np.uint64(at), np.uint64(n)
    for j in range(run):
        k = start + _THRICE * j
        a[j] = np.float32(src[k])
        a[run + j] = np.float32(src[k + _NEXT])
        a[run + run + j] = np.float32(src[k + _TWICE])


@helper
def load_planes(planes, size, at, n, a):
    for c in range(3):
        start, to = np.uint64(c * size + at), np.uint64(c * n)
        for j in range(np.uint64(n)):
            a[to + j] = np.float32(planes[start + j])


@specialised
def load_columns(src, at, step, apart, columns, a):
    """Load the pixels in `columns` of a row. Value c of pixel x is at `at + x * step + c * apart`."""
    n = columns.size
    for c in range(3):
        for j in range(n):
            a[np.uint64(c * n + j)] = np.float32(src[np.uint64(at + columns[j] * step + c * apart)])


@helper
def store_planes(a, n, planes, size, at, sums):
    """Store levels as bytes, one plane per channel, and their sums."""
    for c in range(3):
        start, to = np.uint64(c * n), np.uint64(c * size + at)
        total = np.int32(0)
        for j in range(np.uint64(n)):
            value = np.int32(a[start + j])
            planes[to + j] = np.uint8(value)
            total = np.int32(total + value)
        sums[c] += total


_CLOSE = np.float32(3e-4), np.float32(4e-5)  # see `_saturate`


@helper
def _brighten(a, n, delta):
    for j in range(np.uint64(n)):
        y = (a[j] * PER_LEVEL + delta) * LEVELS
        a[j] = whole(smaller(larger(y, ZERO), TOP))


@helper
def _contrast(a, first, n, factor, mean):
    start = np.uint64(first)
    for j in range(start, start + np.uint64(n)):
        y = (mean + factor * (a[j] * PER_LEVEL - mean)) * LEVELS
        a[j] = whole(smaller(larger(y, ZERO), TOP))


@helper
def _saturate(a, b, doubts, n, factor):
    """Write levels of `a` with changed saturation to `b`, with a fast formula.

    Pixels near a rounding edge are computed again.

    The fast formula needs no hue: saturation moves each channel towards or away from the largest. Before truncation,
    its result differs from that of `_saturate_exactly` by at most 1.8e-4 for factors up to 3. For larger factors, it
    differs by 1.6e-5 times the factor. A test of all colours found these limits. `_CLOSE` is twice as large.
    """
    limit: Any = larger(factor, ZERO)
    close = _CLOSE[0] + _CLOSE[1] * smaller(limit, TOP)
    run = np.uint64(n)
    twice = run + run
    for j in range(run):
        red, green, blue = a[j], a[run + j], a[twice + j]
        high = larger(larger(red, green), blue)
        low = smaller(smaller(red, green), blue)
        t = smaller(high / larger(high - low, HALF), limit) * LEVEL
        most = high * LEVEL
        over, under = most + close, most - close
        r, g, u = (high - red) * t, (high - green) * t, (high - blue) * t
        above, below = whole(over - r), whole(under - r)
        doubt = above != below
        b[j] = below
        above, below = whole(over - g), whole(under - g)
        doubt |= above != below
        b[run + j] = below
        above, below = whole(over - u), whole(under - u)
        doubt |= above != below
        b[twice + j] = below
        doubts[j] = np.uint8(doubt)
    by_eight = doubts.view(np.uint64)
    for k in range((n + 7) // 8):
        if by_eight[k] != 0:
            for j in range(8 * k, min(8 * k + 8, n)):
                if doubts[j] != 0:
                    b[j], b[n + j], b[2 * n + j] = _saturate_exactly(a[j], a[n + j], a[2 * n + j], factor)


@helper
def _saturate_exactly(red, green, blue, factor):
    """Return one pixel's levels, computed by hue, saturation and value, like tf.image.adjust_saturation."""
    red, green, blue = saturated(red * PER_LEVEL, green * PER_LEVEL, blue * PER_LEVEL, factor)
    return whole(red * LEVELS), whole(green * LEVELS), whole(blue * LEVELS)


@helper
def _turn_hue(a, n, turn):
    """Rotate the hue by `turn` sixths of the circle, at most a whole one. The largest and smallest value stay."""
    edge: Any = pick(turn < ZERO, ZERO, SIX)  # a backward rotation may make h negative, a forward one may make it 6
    below, beyond = edge * np.float32(-1) + SIX, -edge
    run = np.uint64(n)
    twice = run + run
    for j in range(run):
        r, g, b = a[j] * PER_LEVEL, a[run + j] * PER_LEVEL, a[twice + j] * PER_LEVEL
        most = larger(r, g)
        blue_most, green_most = b > most, g > r
        low = smaller(smaller(r, g), b)
        span = larger(most, b) - low
        d = pick(blue_most, r - g, pick(green_most, b - r, g - b))
        rising = pick(blue_most, FOUR, pick(green_most, TWO, ZERO))
        falling = pick(blue_most, THREE, pick(green_most, ONE, FIVE))
        ratio = abs(d) / larger(span, TINY)
        up = d > ZERO
        h = pick(up, rising, falling) + pick(up, ratio, ONE - ratio) + turn
        h = h + pick(h < edge, below, beyond)
        # Each channel has its full value for two sixths of the circle, and rises and falls during one.
        x = larger(larger(TWO - h, h - FOUR), ZERO)
        y = larger(smaller(h, FOUR - h), ZERO)
        w = larger(smaller(h - TWO, SIX - h), ZERO)
        a[j] = whole((low + smaller(x * span, span)) * LEVELS)
        a[run + j] = whole((low + smaller(y * span, span)) * LEVELS)
        a[twice + j] = whole((low + smaller(w * span, span)) * LEVELS)


@helper
def colour(codes, args, first, last, means, a, b, doubts, n):
    """Apply operations `first` to `last` to `n` pixels. Return True if the result is in `b`."""
    moved = False
    for k in range(first, last):
        code = codes[k]
        if code == BRIGHTNESS:
            _brighten(a, 3 * n, args[k])
        elif code == SATURATION:
            _saturate(a, b, doubts, n, args[k])
            a, b = b, a
            moved = not moved
        elif code == HUE:
            _turn_hue(a, n, args[k] * SIX)
        else:
            for c in range(3):
                _contrast(a, c * n, n, args[k], means[c])
    return moved


_ROUNDING = np.float32(1.2e-7)  # relative error of two roundings of a float32


@helper
def _mean_by_halves(read, first, n, halves):
    """Return the mean of `n` levels as numbers up to 1, added in TensorFlow's order: right half onto left."""
    left = n - n // 2
    values = halves[:left]
    for j in range(left):
        values[j] = np.float32(read[np.uint64(first + j)]) * PER_LEVEL
    for j in range(n // 2):
        values[j] = values[j] + np.float32(read[np.uint64(first + left + j)]) * PER_LEVEL
    while left > 1:
        right = left // 2
        left -= right
        for j in range(right):
            values[j] = values[j] + values[np.uint64(left + j)]
    return values[0] * (ONE / np.float32(n))


@helper
def settled(factor, mean, error):
    """Return True if every mean that differs from `mean` by at most `error` gives equal levels."""
    doubts = 0
    for level in range(256):
        far = factor * (np.float32(level) * PER_LEVEL - mean)
        y = mean + far
        margin = LEVELS * (abs(ONE - factor) * error + TWO * _ROUNDING * (abs(far) + abs(y)))
        y = smaller(larger(y * LEVELS, HALF), LEVELS)  # larger values do not change the level
        doubts += abs(y - whole(y) - HALF) > HALF - margin
    return doubts == 0


@helper
def mean_of(total, factor, read, first, height, width, flip, spare, halves):
    """Return the mean for contrast of a channel with the sum `total`. Its levels are in `read` from `first` on.

    TensorFlow's mean depends on the order of addition. Usually this changes no level, so the exact sum is used.
    """
    n = height * width
    exact = np.float64(total) / np.float64(n) / 255.0
    mean = np.float32(exact)
    # There are at most 24 roundings: of 1 / 255, of products with it, of 20 sums, of 1 / n, of its product, and ours.
    if settled(factor, mean, np.float32(exact * 2e-6)):
        return mean
    if flip == 0:
        return _mean_by_halves(read, first, n, halves)
    step = -1 if flip & LEFT_RIGHT else 1
    for y in range(height):
        at = first + width * (height - 1 - y if flip & UP_DOWN else y) + (width - 1 if flip & LEFT_RIGHT else 0)
        for x in range(width):
            spare[np.uint64(y * width + x)] = read[np.uint64(at + x * step)]
    return _mean_by_halves(read, 3 * n, n, halves)
