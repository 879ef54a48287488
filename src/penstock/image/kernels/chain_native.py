"""A chain of image operations on one image as few passes: colour by chunks of pixels, resize row by row.

    bytes → levels of some hundred pixels, in the first cache → colour operations, one after the other → bytes
    rows that the resize reads → the last colour operations → along the row → between two rows → scaled → the batch

Levels are the integers of a uint8 image, as float32. Each colour operation gives the integers that the single operation
gives: it does the same float32 operations in the same order, or others whose result is proven to round the same way.
No fast-math flag is used; the loops are written so that LLVM makes vectors of them without.

Imported inside functions only: numba takes a third of a second to load.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core.extending import intrinsic
from numba.np import arrayobj

BAD_ARGUMENT = 1  # status: sizes that do not fit; nothing was written

BRIGHTNESS, SATURATION, HUE, CONTRAST = 0, 1, 2, 3  # colour operations
MULTIPLY, DIVIDE, ADD, SUBTRACT = 0, 1, 2, 3  # what is done to the resized values
LEFT_RIGHT, UP_DOWN = 1, 2  # bits: how an image is flipped

CHUNK = 512  # pixels at work at a time: 6 kB of levels

_ZERO, _TINY, _HALF, _ONE, _TWO, _THREE, _FOUR, _FIVE, _SIX, _TOP = (
    np.float32(x) for x in (0, 1e-9, 0.5, 1, 2, 3, 4, 5, 6, 255)
)
_NEXT, _TWICE, _THRICE = np.uint64(1), np.uint64(2), np.uint64(3)
_UNIT = np.float32(1 / 255)  # a level as a number up to 1 ...
_LEVELS = np.float32(255.5)  # ... and back, before the fraction is dropped
_LEVEL = np.float32(255.5 / 255)  # there and back in one
_CLOSE = np.float32(3e-4), np.float32(4e-5)  # see `_saturate`
_ROUNDING = np.float32(1.2e-7)  # two roundings of a float32, relative


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


def _whole_code(typing: Any, number: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.call(builder.module.declare_intrinsic("llvm.trunc", [ir.FloatType()]), args)

    return types.float32(types.float32), generate


# Without branches, into which LLVM would move other work.
_pick: Any = intrinsic(_pick_code)  # pick(c, a, b): a if c else b
_larger, _smaller = _comparison(">"), _comparison("<")
_whole: Any = intrinsic(_whole_code)  # a number without its fraction


def _lerp_pixel(*, falling: bool) -> Any:
    """Build the intrinsic that weighs two neighbouring pixels of a row, to `to`: three values, and one too many.

    The row is three runs of `run` values; the neighbours lie at `at` and right behind. The first counts in full, or if
    `falling` the second, and the other by `weight`. LLVM does not find these vectors of four. The caller has checked
    the places.
    """

    @intrinsic
    def lerp_pixel(typing: Any, levels: Any, run: Any, at: Any, weight: Any, out: Any, to: Any) -> Any:
        signature = types.none(levels, types.int64, types.int64, types.float32, out, types.int64)
        return signature, lambda context, builder, signature, args: _lerp(context, builder, signature, args, falling)

    return lerp_pixel


def _lerp(context: Any, builder: Any, signature: Any, args: Any, falling: bool) -> Any:
    levels, run, at, weight, out, to = args
    lane = ir.IntType(32)
    pair, four = ir.VectorType(ir.FloatType(), 2), ir.VectorType(ir.FloatType(), 4)

    def place(position: int, array: Any, index: Any, kind: Any) -> Any:
        made: Any = arrayobj.make_array
        data = made(signature.args[position])(context, builder, array).data
        return builder.bitcast(builder.gep(data, [index]), kind.as_pointer())

    def two(index: Any) -> Any:
        value = builder.load(place(0, levels, index, pair))
        value.align = 4
        return value

    def shuffled(a: Any, b: Any, lanes: list[int]) -> Any:
        return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(lane, len(lanes)), lanes))

    green = builder.add(at, run)
    both = shuffled(two(at), two(green), [0, 2, 1, 3])
    blue = shuffled(two(builder.add(green, run)), ir.Constant(pair, ir.Undefined), [0, 1, 0, 1])
    near, far = shuffled(both, blue, [0, 1, 4, 5]), shuffled(both, blue, [2, 3, 5, 4])
    a, b = (far, near) if falling else (near, far)
    unused = ir.Constant(four, ir.Undefined)
    weights = shuffled(builder.insert_element(unused, weight, ir.Constant(lane, 0)), unused, [0] * 4)
    result = builder.fadd(a, builder.fmul(builder.fsub(b, a), weights))
    builder.store(result, place(4, out, to, four)).align = 4
    return context.get_dummy_value()


_lerp_rising = _lerp_pixel(falling=False)
_lerp_falling = _lerp_pixel(falling=True)


@njit(nogil=True, cache=True, error_model="numpy")
def _load(src: Any, at: int, n: int, a: Any) -> None:
    """`n` pixels of three bytes each as three runs of levels."""
    start, run = np.uint64(at), np.uint64(n)
    for j in range(run):
        k = start + _THRICE * j
        a[j] = np.float32(src[k])
        a[run + j] = np.float32(src[k + _NEXT])
        a[run + run + j] = np.float32(src[k + _TWICE])


@njit(nogil=True, cache=True, error_model="numpy")
def _load_planes(planes: Any, size: int, at: int, n: int, a: Any) -> None:
    for c in range(3):
        start, to = np.uint64(c * size + at), np.uint64(c * n)
        for j in range(np.uint64(n)):
            a[to + j] = np.float32(planes[start + j])


@njit(nogil=True, cache=True, error_model="numpy")
def _load_columns(src: Any, at: int, step: int, apart: int, columns: Any, a: Any) -> None:
    """The pixels in `columns` of a row: value c of pixel x lies at `at + x * step + c * apart`."""
    n = columns.size
    for c in range(3):
        for j in range(n):
            a[np.uint64(c * n + j)] = np.float32(src[np.uint64(at + columns[j] * step + c * apart)])


@njit(nogil=True, cache=True, error_model="numpy")
def _store_planes(a: Any, n: int, planes: Any, size: int, at: int, sums: Any) -> None:
    """Levels as bytes, one plane per channel, and their sums."""
    for c in range(3):
        start, to = np.uint64(c * n), np.uint64(c * size + at)
        total = np.int32(0)
        for j in range(np.uint64(n)):
            value = np.int32(a[start + j])
            planes[to + j] = np.uint8(value)
            total = np.int32(total + value)
        sums[c] += total


@njit(nogil=True, cache=True, error_model="numpy")
def _brighten(a: Any, n: int, delta: Any) -> None:
    for j in range(np.uint64(n)):
        y = (a[j] * _UNIT + delta) * _LEVELS
        a[j] = _whole(_smaller(_larger(y, _ZERO), _TOP))


@njit(nogil=True, cache=True, error_model="numpy")
def _contrast(a: Any, first: int, n: int, factor: Any, mean: Any) -> None:
    start = np.uint64(first)
    for j in range(start, start + np.uint64(n)):
        y = (mean + factor * (a[j] * _UNIT - mean)) * _LEVELS
        a[j] = _whole(_smaller(_larger(y, _ZERO), _TOP))


@njit(nogil=True, cache=True, error_model="numpy")
def _saturate(a: Any, b: Any, doubts: Any, n: int, factor: Any) -> None:
    """Levels of `a` to `b`, computed a short way; pixels near a rounding edge again as `saturate_exactly` does it.

    The short way needs no hue: saturation moves each channel towards or away from the largest. Before the fraction is
    dropped, the two ways differ by at most 1.8e-4 for factors up to 3, and by 1.6e-5 times the factor for larger ones:
    found by trying all colours. `_CLOSE` is twice that.
    """
    limit: Any = _larger(factor, _ZERO)
    close = _CLOSE[0] + _CLOSE[1] * _smaller(limit, _TOP)
    run = np.uint64(n)
    twice = run + run
    for j in range(run):
        red, green, blue = a[j], a[run + j], a[twice + j]
        high = _larger(_larger(red, green), blue)
        low = _smaller(_smaller(red, green), blue)
        t = _smaller(high / _larger(high - low, _HALF), limit) * _LEVEL
        most = high * _LEVEL
        over, under = most + close, most - close
        r, g, u = (high - red) * t, (high - green) * t, (high - blue) * t
        above, below = _whole(over - r), _whole(under - r)
        doubt = above != below
        b[j] = below
        above, below = _whole(over - g), _whole(under - g)
        doubt |= above != below
        b[run + j] = below
        above, below = _whole(over - u), _whole(under - u)
        doubt |= above != below
        b[twice + j] = below
        doubts[j] = np.uint8(doubt)
    by_eight = doubts.view(np.uint64)
    for k in range((n + 7) // 8):
        if by_eight[k] != 0:
            for j in range(8 * k, min(8 * k + 8, n)):
                if doubts[j] != 0:
                    b[j], b[n + j], b[2 * n + j] = saturate_exactly(a[j], a[n + j], a[2 * n + j], factor)


@njit(nogil=True, cache=True, error_model="numpy")
def saturate_exactly(red: Any, green: Any, blue: Any, factor: Any) -> Any:
    """One pixel's levels, by way of hue, saturation and value, as tf.image.adjust_saturation does it."""
    r, g, b = red * _UNIT, green * _UNIT, blue * _UNIT
    value = max(r, max(g, b))
    span = value - min(r, min(g, b))
    saturation = span / value if value > _ZERO else _ZERO
    hue = _ZERO
    if span > _ZERO:
        norm = _ONE / (_SIX * span)
        if r == value:
            hue = norm * (g - b)
        elif g == value:
            hue = np.float32(np.float64(norm * (b - r)) + 2.0 / 6.0)
        else:
            hue = np.float32(np.float64(norm * (r - g)) + 4.0 / 6.0)
        if hue < _ZERO:
            hue = hue + _ONE
    saturation = min(_ONE, max(_ZERO, saturation * factor))
    c = saturation * value
    m = value - c
    h = hue * _SIX
    category = np.int32(h)
    while h <= _ZERO:
        h += _TWO
    while h >= _TWO:
        h -= _TWO
    x = c * (_ONE - abs(h - _ONE))
    r, g, b = _ZERO, _ZERO, _ZERO
    if category == 0 or category == 5:
        r = c
    elif category == 1 or category == 4:
        r = x
    if category == 1 or category == 2:
        g = c
    elif category == 0 or category == 3:
        g = x
    if category == 3 or category == 4:
        b = c
    elif category == 2 or category == 5:
        b = x
    return (
        np.float32(np.int32((r + m) * _LEVELS)),
        np.float32(np.int32((g + m) * _LEVELS)),
        np.float32(np.int32((b + m) * _LEVELS)),
    )


@njit(nogil=True, cache=True, error_model="numpy")
def _turn_hue(a: Any, n: int, turn: Any) -> None:
    """Turn the hue by `turn` sixths of the circle, at most a whole one: the largest and the smallest value stay."""
    edge: Any = _pick(turn < _ZERO, _ZERO, _SIX)  # turning back, h may fall below 0; turning on, reach 6
    below, beyond = edge * np.float32(-1) + _SIX, -edge
    run = np.uint64(n)
    twice = run + run
    for j in range(run):
        r, g, b = a[j] * _UNIT, a[run + j] * _UNIT, a[twice + j] * _UNIT
        most = _larger(r, g)
        blue_most, green_most = b > most, g > r
        low = _smaller(_smaller(r, g), b)
        span = _larger(most, b) - low
        d = _pick(blue_most, r - g, _pick(green_most, b - r, g - b))
        rising = _pick(blue_most, _FOUR, _pick(green_most, _TWO, _ZERO))
        falling = _pick(blue_most, _THREE, _pick(green_most, _ONE, _FIVE))
        ratio = abs(d) / _larger(span, _TINY)
        up = d > _ZERO
        h = _pick(up, rising, falling) + _pick(up, ratio, _ONE - ratio) + turn
        h = h + _pick(h < edge, below, beyond)
        # Each channel is full for two sixths of the circle, and rises and falls during one.
        x = _larger(_larger(_TWO - h, h - _FOUR), _ZERO)
        y = _larger(_smaller(h, _FOUR - h), _ZERO)
        w = _larger(_smaller(h - _TWO, _SIX - h), _ZERO)
        a[j] = _whole((low + _smaller(x * span, span)) * _LEVELS)
        a[run + j] = _whole((low + _smaller(y * span, span)) * _LEVELS)
        a[twice + j] = _whole((low + _smaller(w * span, span)) * _LEVELS)


@njit(nogil=True, cache=True, error_model="numpy")
def _colour(codes: Any, args: Any, first: int, last: int, means: Any, a: Any, b: Any, doubts: Any, n: int) -> bool:
    """Operations `first` to `last` on `n` pixels; whether the result is in `b`."""
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
            _turn_hue(a, n, args[k] * _SIX)
        else:
            for c in range(3):
                _contrast(a, c * n, n, args[k], means[c])
    return moved


@njit(nogil=True, cache=True, error_model="numpy")
def _mean_by_halves(read: Any, first: int, n: int, halves: Any) -> Any:
    """The mean of `n` levels as numbers up to 1, added up as TensorFlow does it: right half onto left."""
    left = n - n // 2
    values = halves[:left]
    for j in range(left):
        values[j] = np.float32(read[np.uint64(first + j)]) * _UNIT
    for j in range(n // 2):
        values[j] = values[j] + np.float32(read[np.uint64(first + left + j)]) * _UNIT
    while left > 1:
        right = left // 2
        left -= right
        for j in range(right):
            values[j] = values[j] + values[np.uint64(left + j)]
    return values[0] * (_ONE / np.float32(n))


@njit(nogil=True, cache=True, error_model="numpy")
def _settled(factor: Any, mean: Any, error: Any) -> bool:
    """Whether every mean that differs from `mean` by at most `error` gives each level the same."""
    doubts = 0
    for level in range(256):
        far = factor * (np.float32(level) * _UNIT - mean)
        y = mean + far
        margin = _LEVELS * (abs(_ONE - factor) * error + _TWO * _ROUNDING * (abs(far) + abs(y)))
        y = _smaller(_larger(y * _LEVELS, _HALF), _LEVELS)  # beyond, nothing changes
        doubts += abs(y - _whole(y) - _HALF) > _HALF - margin
    return doubts == 0


@njit(nogil=True, cache=True, error_model="numpy")
def _mean(
    total: int, factor: Any, read: Any, first: int, height: int, width: int, flip: int, spare: Any, halves: Any
) -> Any:
    """The mean for contrast of a channel whose levels add up to `total`; they lie in `read` from `first` on.

    TensorFlow's mean depends on the order of addition. Mostly that changes no level, so the exact sum will do.
    """
    n = height * width
    exact = np.float64(total) / np.float64(n) / 255.0
    mean = np.float32(exact)
    # 24 roundings at most: of 1 / 255, the products by it, 20 sums, 1 / n, the product by it; and our own.
    if _settled(factor, mean, np.float32(exact * 2e-6)):
        return mean
    if flip == 0:
        return _mean_by_halves(read, first, n, halves)
    step = -1 if flip & LEFT_RIGHT else 1
    for y in range(height):
        at = first + width * (height - 1 - y if flip & UP_DOWN else y) + (width - 1 if flip & LEFT_RIGHT else 0)
        for x in range(width):
            spare[np.uint64(y * width + x)] = read[np.uint64(at + x * step)]
    return _mean_by_halves(read, 3 * n, n, halves)


@njit(nogil=True, cache=True, error_model="numpy")
def _taps(n_in: int, n_out: int, mirrored: bool, low: Any, high: Any, weight: Any) -> None:
    """The numbers of `bilinear_taps`, but where both taps are the same pixel the weight is 0."""
    scale = np.float32(n_in) / np.float32(n_out)
    for i in range(n_out):
        at = (np.float32(i) + _HALF) * scale - _HALF
        floor = np.floor(at)
        low[i] = min(max(np.int64(floor), 0), n_in - 1)
        high[i] = min(max(np.int64(floor) + 1, 0), n_in - 1)
        weight[i] = at - floor
        if low[i] == high[i]:
            weight[i] = _ZERO
        if mirrored:
            low[i], high[i] = n_in - 1 - low[i], n_in - 1 - high[i]


@njit(nogil=True, cache=True, error_model="numpy")
def _columns_read(left: Any, right: Any, width: int, columns: Any) -> int:
    """How many columns are worth taking out of each row, or 0; `left` then points to places among these."""
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


@njit(nogil=True, cache=True, error_model="numpy")
def _along(levels: Any, n: int, at: Any, weight: Any, falling: bool, reverse: bool, row: Any) -> None:
    """Resize a row of `n` pixels, left to right: the value too many of a pixel is written over by the next one's."""
    count = at.size
    for j in range(count):
        k = np.uint64(count - 1 - j if reverse else j)
        if falling:
            _lerp_falling(levels, n, at[k] - 1, weight[k], row, 3 * j)
        else:
            _lerp_rising(levels, n, at[k], weight[k], row, 3 * j)


@njit(nogil=True, cache=True, error_model="numpy")
def _between(top: Any, bottom: Any, weight: Any, line: Any) -> None:
    for j in range(np.uint64(line.size)):
        a = top[j]
        line[j] = a + (bottom[j] - a) * weight


@njit(nogil=True, cache=True, error_model="numpy")
def _finish(codes: Any, values: Any, line: Any) -> None:
    for k in range(codes.size):
        code = codes[k]
        if code == MULTIPLY:
            for j in range(np.uint64(line.size)):
                line[j] = line[j] * values[k, j]
        elif code == DIVIDE:
            for j in range(np.uint64(line.size)):
                line[j] = line[j] / values[k, j]
        elif code == ADD:
            for j in range(np.uint64(line.size)):
                line[j] = line[j] + values[k, j]
        else:
            for j in range(np.uint64(line.size)):
                line[j] = line[j] - values[k, j]


@njit(nogil=True, cache=True, error_model="numpy")
def _passes(
    src: Any, height: int, width: int, codes: Any, args: Any, flips: Any, planes: Any, read: Any, halves: Any,
    means: Any,
) -> Any:  # fmt: skip
    """All passes over the whole image but the last; the operation that begins with, and whether it reads `planes`."""
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
                _load_planes(read, n, at, m, a)
            else:
                _load(src, 3 * at, m, a)
            moved = _colour(codes, args, first, last, means, a, b, doubts, m)
            _store_planes(b if moved else a, m, planes, n, at, sums)
        in_planes = True
        for c in range(3):
            means[c] = _mean(sums[c], args[last], read, c * n, height, width, flips[last], planes[3 * n :], halves)
        first = last
        ready = 1


@njit(nogil=True, cache=True, error_model="numpy")
def _one(
    src: Any,
    height: int,
    width: int,
    codes: Any,
    args: Any,
    flips: Any,
    before: int,
    after: int,
    factor: Any,
    divide: bool,
    last_codes: Any,
    last_values: Any,
    out_height: int,
    out_width: int,
    planes: Any,
    read: Any,
    halves: Any,
    floats_out: Any,
    bytes_out: Any,
) -> None:
    """One image, `src`, to its place; all sizes have been checked."""
    size, line_size = height * width, 3 * out_width
    means = np.zeros(3, np.float32)
    first, in_planes = _passes(src, height, width, codes, args, flips, planes, read, halves, means)
    last = codes.size

    top, bottom, y_weight = (
        np.empty(out_height, np.int64),
        np.empty(out_height, np.int64),
        np.empty(out_height, np.float32),
    )
    left, right, x_weight = (
        np.empty(out_width, np.int64),
        np.empty(out_width, np.int64),
        np.empty(out_width, np.float32),
    )
    mirrored, reverse = before & LEFT_RIGHT != 0, after & LEFT_RIGHT != 0
    _taps(height, out_height, before & UP_DOWN != 0, top, bottom, y_weight)
    _taps(width, out_width, mirrored, left, right, x_weight)
    columns = np.empty(width, np.int64)
    columns = columns[: _columns_read(left, right, width, columns)]
    n = columns.size if columns.size else width

    # Where both taps are the same pixel, at an edge, one beyond is read as well, with weight 0.
    a, b = np.zeros(3 * n + 2, np.float32)[1:], np.zeros(3 * n + 2, np.float32)[1:]
    doubts = np.zeros((n + 7) // 8 * 8, np.uint8)
    upper, lower = np.empty(line_size + 1, np.float32), np.empty(line_size + 1, np.float32)
    line = np.empty(line_size, np.float32)
    in_upper, in_lower = -1, -1  # the rows of the source that these are made of
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
                _load_columns(read, y * width, 1, size, columns, a)
            elif columns.size:
                _load_columns(src, 3 * y * width, 3, 1, columns, a)
            elif in_planes:
                _load_planes(read, size, y * width, n, a)
            else:
                _load(src, 3 * y * width, n, a)
            levels = b if _colour(codes, args, first, last, means, a, b, doubts, n) else a
            if divide:
                for j in range(3 * n):
                    levels[j] = levels[j] / factor
            elif factor != _ONE:
                for j in range(3 * n):
                    levels[j] = levels[j] * factor
            row = lower if side else upper
            _along(levels, n, left, x_weight, mirrored, reverse, row)
            if side:
                in_lower = y
            else:
                in_upper = y
        _between(upper, lower, y_weight[tap], line)
        _finish(last_codes, last_values, line)
        to = np.uint64(i * line_size)
        if floats_out.size:
            for j in range(np.uint64(line_size)):
                floats_out[to + j] = line[j]
        else:
            for j in range(np.uint64(line_size)):
                bytes_out[to + j] = np.uint8(np.int32(line[j]))


@njit(nogil=True, cache=True, error_model="numpy")
def chain(
    src: Any,
    starts: Any,
    heights: Any,
    widths: Any,
    codes: Any,
    args: Any,
    flips: Any,
    before: Any,
    after: Any,
    factor: Any,
    divide: bool,
    last_codes: Any,
    last_values: Any,
    out_height: int,
    out_width: int,
    planes: Any,
    read: Any,
    halves: Any,
    floats_out: Any,
    bytes_out: Any,
) -> int:
    """Images in flat `src`: coloured, times or divided by `factor`, resized and finished; 0 or BAD_ARGUMENT.

    Image i begins at `starts[i]`. Operation k on it is `codes[k]` by `args[i, k]`, with the image flipped by then as
    `flips[i, k]` says; at the resize it is flipped as `before[i]` says, and afterwards once more by `after[i]`.
    `last_values[k]` holds a number for each value of a row. `planes` (4 bytes for each pixel of the largest image;
    `read` is the same memory) and `halves` (half a number a pixel) are scratch. Results go to one of the flat
    `floats_out` and `bytes_out`, truncated; the other is empty.
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
        or room != count * out_size
        or (floats_out.size and bytes_out.size)
        or last_values.shape[0] != last_codes.size
        or (last_codes.size and last_values.shape[1] != line_size)
    ):
        return BAD_ARGUMENT
    for i in range(count):
        height, width = heights[i], widths[i]
        # Step by step, so that no product can overflow.
        if height <= 0 or width <= 0 or starts[i] < 0 or starts[i] > src.size:
            return BAD_ARGUMENT
        there = (src.size - starts[i]) // 3
        if width > there or height > there // width:
            return BAD_ARGUMENT
        size = height * width
        if planes.size // 4 < size or read.size // 4 < size or halves.size < size - size // 2:
            return BAD_ARGUMENT
    for i in range(count):
        _one(
            src[starts[i] : starts[i] + 3 * heights[i] * widths[i]],
            heights[i],
            widths[i],
            codes,
            args[i],
            flips[i],
            before[i],
            after[i],
            factor,
            divide,
            last_codes,
            last_values,
            out_height,
            out_width,
            planes,
            read,
            halves,
            floats_out[i * out_size : (i + 1) * out_size],
            bytes_out[i * out_size : (i + 1) * out_size],
        )
    return 0


def warm_up() -> None:
    """Compile for what most pipelines do: photographs to float32."""
    pixels, scratch = np.zeros(12, np.uint8), np.zeros(16, np.uint8)
    read = scratch.view()
    pixels.flags.writeable = read.flags.writeable = False
    one, none = np.ones(1, np.int64), np.zeros(0, np.int64)
    numbers, flips, nothing = np.zeros((1, 0), np.float32), np.zeros((1, 0), np.int64), np.zeros((0, 3), np.float32)
    halves, out = np.zeros(4, np.float32), np.zeros(3, np.float32)
    sizes = one - 1, one, one
    per_image = numbers, flips, one, one
    given: Any = pixels, *sizes, none, *per_image, np.float32(1), False, none, nothing
    room: Any = 1, 1, scratch, read, halves, out, scratch[:0]
    compiled: Any = chain
    compiled(*given, *room)
