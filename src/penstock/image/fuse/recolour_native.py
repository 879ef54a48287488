"""The numbers of `recolour`, bit for bit, compiled and run without the GIL.

Imported inside functions only: numba takes a third of a second to load. No fast-math flag is used; the loops are
written without branches, so that LLVM makes vectors of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compiled.kernel import helper, inlined, kernel, maker
from penstock.image.kernels import (
    ADD,
    BRIGHTNESS,
    CONTRAST,
    DIVIDE,
    FIVE,
    FOUR,
    HALF,
    HUE,
    LEVEL,
    MULTIPLY,
    ONE,
    SATURATION,
    SIX,
    THREE,
    TINY,
    TOP,
    TWO,
    ZERO,
)
from penstock.image.kernels.instructions import BAD_ARGUMENT, larger, pick, smaller

CHUNK = 512  # pixels at work at a time, and sums side by side


@inlined
def _settled(value: Any) -> Any:
    return larger(smaller(larger(value, ZERO), TOP) * LEVEL - HALF, ZERO)


@helper
def _colour(codes: Any, args: Any, first: int, last: int, means: Any, a: Any, n: int) -> None:
    """Operations `first` to `last` on `n` pixels, three runs of levels."""
    reds, greens, blues = a[:n], a[n : 2 * n], a[2 * n : 3 * n]
    for k in range(first, last):
        code, argument = codes[k], args[k]
        if code == BRIGHTNESS:
            more = argument * TOP
            levels = a[: 3 * n]
            for j in range(levels.size):
                levels[j] = _settled(levels[j] + more)
        elif code == SATURATION:
            limit = larger(argument, ZERO)
            for j in range(reds.size):
                red, green, blue = reds[j], greens[j], blues[j]
                high = larger(larger(red, green), blue)
                low = smaller(smaller(red, green), blue)
                t = smaller(high / larger(high - low, HALF), limit)
                reds[j] = _settled(high - (high - red) * t)
                greens[j] = _settled(high - (high - green) * t)
                blues[j] = _settled(high - (high - blue) * t)
        elif code == HUE:
            sixths = argument * SIX
            for j in range(reds.size):
                red, green, blue = reds[j], greens[j], blues[j]
                most = larger(red, green)
                low = smaller(smaller(red, green), blue)
                blue_most, green_most = blue > most, green > red
                span = larger(most, blue) - low
                d = pick(blue_most, red - green, pick(green_most, blue - red, green - blue))
                rising = pick(blue_most, FOUR, pick(green_most, TWO, ZERO))
                falling = pick(blue_most, THREE, pick(green_most, ONE, FIVE))
                ratio = abs(d) / larger(span, TINY)
                h = pick(d > ZERO, rising, falling) + pick(d > ZERO, ratio, ONE - ratio) + sixths
                h = pick(h < ZERO, h + SIX, pick(h >= SIX, h - SIX, h))
                x, y, z = larger(TWO - h, h - FOUR), smaller(h, FOUR - h), smaller(h - TWO, SIX - h)
                reds[j] = _settled(low + smaller(larger(x, ZERO) * span, span))
                greens[j] = _settled(low + smaller(larger(y, ZERO) * span, span))
                blues[j] = _settled(low + smaller(larger(z, ZERO) * span, span))
        else:
            for c in range(3):
                levels = a[c * n : c * n + n]
                mean = means[c]
                for j in range(levels.size):
                    levels[j] = _settled(mean + argument * (levels[j] - mean))


@helper
def _finish(codes: Any, numbers: Any, a: Any, n: int) -> None:
    for k in range(codes.size):
        for c in range(3):
            values, number = a[c * n : c * n + n], numbers[k, c]
            if codes[k] == MULTIPLY:
                for j in range(values.size):
                    values[j] = values[j] * number
            elif codes[k] == DIVIDE:
                for j in range(values.size):
                    values[j] = values[j] / number
            elif codes[k] == ADD:
                for j in range(values.size):
                    values[j] = values[j] + number
            else:
                for j in range(values.size):
                    values[j] = values[j] - number


@maker
def _image(image: Any, codes: Any, args: Any, last_codes: Any, last_numbers: Any, a: Any, lanes: Any) -> None:
    """One image in place: a pass for each contrast, whose mean has to be known, and one more."""
    size = image.size // 3
    means = np.zeros(3, np.float32)
    first = 0
    ready = 0  # 1 when `first` is a contrast whose means are known
    while True:
        last = first + ready
        while last < codes.size and codes[last] != CONTRAST:
            last += 1
        for k in range(lanes.size):
            lanes[k] = ZERO
        for at in range(0, size, CHUNK):
            n = min(CHUNK, size - at)
            pixels = image[3 * at : 3 * at + 3 * n]
            reds, greens, blues = a[:n], a[n : 2 * n], a[2 * n : 3 * n]
            for j in range(reds.size):
                reds[j] = pixels[3 * j]
                greens[j] = pixels[3 * j + 1]
                blues[j] = pixels[3 * j + 2]
            _colour(codes, args, first, last, means, a, n)
            if last == codes.size:
                _finish(last_codes, last_numbers, a, n)
            else:
                for c in range(3):
                    sums, values = lanes[c * CHUNK : c * CHUNK + n], a[c * n : c * n + n]
                    for j in range(values.size):
                        sums[j] = sums[j] + values[j]
            for j in range(reds.size):
                pixels[3 * j] = reds[j]
                pixels[3 * j + 1] = greens[j]
                pixels[3 * j + 2] = blues[j]
        if last == codes.size:
            return
        for c in range(3):
            half = CHUNK // 2
            while half:
                for j in range(half):
                    lanes[c * CHUNK + j] = lanes[c * CHUNK + j] + lanes[c * CHUNK + half + j]
                half //= 2
            means[c] = lanes[c * CHUNK] / np.float32(size)
        first = last
        ready = 1


@kernel
def recolour(images: Any, size: int, codes: Any, args: Any, last_codes: Any, last_numbers: Any) -> int:
    """Flat float32 `images` of `size` values each, in place; 0 or BAD_ARGUMENT."""
    if size <= 0 or size % 3 or images.size % size or args.shape[0] != images.size // size:
        return BAD_ARGUMENT
    if args.shape[1] != codes.size or last_numbers.shape[0] != last_codes.size or last_numbers.shape[1] != 3:
        return BAD_ARGUMENT
    a = np.empty(3 * CHUNK, np.float32)
    lanes = np.empty(3 * CHUNK, np.float32)
    for i in range(images.size // size):
        _image(images[i * size : (i + 1) * size], codes, args[i], last_codes, last_numbers, a, lanes)
    return 0


def warm_up() -> None:
    """Compile."""
    none, numbers = np.zeros(0, np.int64), np.zeros((0, 3), np.float32)
    recolour(np.zeros(3, np.float32), 3, none, np.zeros((1, 0), np.float32), none, numbers)
