"""The numbers of `recolour_reference`, bit for bit, compiled and run without the GIL.

Imported inside functions only: numba takes a third of a second to load. No fast-math flag is used; the loops are
written without branches, so that LLVM makes vectors of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.core.extending import intrinsic

BAD_ARGUMENT = 1  # status: sizes that do not fit; nothing was written

BRIGHTNESS, SATURATION, HUE, CONTRAST = 0, 1, 2, 3
MULTIPLY, DIVIDE, ADD, SUBTRACT = 0, 1, 2, 3
CHUNK = 512  # pixels at work at a time, and sums side by side

_ZERO, _ONE, _TWO, _THREE, _FOUR, _FIVE, _SIX = (np.float32(x) for x in range(7))
_TINY, _HALF, _TOP, _LEVEL = (np.float32(x) for x in (1e-9, 0.5, 255, 255.5 / 255))


def _pick_code(typing: Any, condition: Any, yes: Any, no: Any) -> Any:
    number = types.float32
    return number(types.boolean, number, number), lambda context, builder, signature, args: builder.select(*args)


def _comparison(sign: str) -> Any:
    @intrinsic
    def chosen(typing: Any, a: Any, b: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.select(builder.fcmp_ordered(sign, *args), *args)

        return types.float32(types.float32, types.float32), generate

    return chosen


_pick: Any = intrinsic(_pick_code)  # pick(c, a, b): a if c else b
_larger, _smaller = _comparison(">"), _comparison("<")


@njit(nogil=True, error_model="numpy", forceinline=True)
def _settled(value: Any) -> Any:
    return _larger(_smaller(_larger(value, _ZERO), _TOP) * _LEVEL - _HALF, _ZERO)


@njit(nogil=True, cache=True, error_model="numpy")
def _colour(codes: Any, args: Any, first: int, last: int, means: Any, a: Any, n: int) -> None:
    """Operations `first` to `last` on `n` pixels, three runs of levels."""
    reds, greens, blues = a[:n], a[n : 2 * n], a[2 * n : 3 * n]
    for k in range(first, last):
        code, argument = codes[k], args[k]
        if code == BRIGHTNESS:
            more = argument * _TOP
            levels = a[: 3 * n]
            for j in range(levels.size):
                levels[j] = _settled(levels[j] + more)
        elif code == SATURATION:
            limit = _larger(argument, _ZERO)
            for j in range(reds.size):
                red, green, blue = reds[j], greens[j], blues[j]
                high = _larger(_larger(red, green), blue)
                low = _smaller(_smaller(red, green), blue)
                t = _smaller(high / _larger(high - low, _HALF), limit)
                reds[j] = _settled(high - (high - red) * t)
                greens[j] = _settled(high - (high - green) * t)
                blues[j] = _settled(high - (high - blue) * t)
        elif code == HUE:
            sixths = argument * _SIX
            for j in range(reds.size):
                red, green, blue = reds[j], greens[j], blues[j]
                most = _larger(red, green)
                low = _smaller(_smaller(red, green), blue)
                blue_most, green_most = blue > most, green > red
                span = _larger(most, blue) - low
                d = _pick(blue_most, red - green, _pick(green_most, blue - red, green - blue))
                rising = _pick(blue_most, _FOUR, _pick(green_most, _TWO, _ZERO))
                falling = _pick(blue_most, _THREE, _pick(green_most, _ONE, _FIVE))
                ratio = abs(d) / _larger(span, _TINY)
                h = _pick(d > _ZERO, rising, falling) + _pick(d > _ZERO, ratio, _ONE - ratio) + sixths
                h = _pick(h < _ZERO, h + _SIX, _pick(h >= _SIX, h - _SIX, h))
                x, y, z = _larger(_TWO - h, h - _FOUR), _smaller(h, _FOUR - h), _smaller(h - _TWO, _SIX - h)
                reds[j] = _settled(low + _smaller(_larger(x, _ZERO) * span, span))
                greens[j] = _settled(low + _smaller(_larger(y, _ZERO) * span, span))
                blues[j] = _settled(low + _smaller(_larger(z, _ZERO) * span, span))
        else:
            for c in range(3):
                levels = a[c * n : c * n + n]
                mean = means[c]
                for j in range(levels.size):
                    levels[j] = _settled(mean + argument * (levels[j] - mean))


@njit(nogil=True, cache=True, error_model="numpy")
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


@njit(nogil=True, cache=True, error_model="numpy")
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
            lanes[k] = _ZERO
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


@njit(nogil=True, cache=True, error_model="numpy")
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
