"""The fast kernels of resizing by weighted sums. Their bits equal those of `reference`; they run without the GIL.

A vector has one value of each of eight rows, so that all lanes are used for any number of channels. Sums are added in
order of position. Blocks of 8 x 8 values are transposed on the way in and out.

No fast-math flag is used: the order of the float32 operations is the one written here.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from llvmlite import ir

from penstock.image.kernels import BAD_ARGUMENT
from penstock.image.kernels.instructions import F32, Code, images_in, vector_step
from penstock.native.kernel import helper, kernel

LANES = 8  # rows at a time: an AVX2 register of float32

_LONG, _FLOATS = ir.IntType(64), ir.VectorType(F32, LANES)


def _turn(code: Code) -> None:
    at, stride, to, to_stride = (code.args[position] for position in (1, 2, 4, 5))
    b = code.builder
    numbers = [ir.Constant(_LONG, r) for r in range(LANES)]
    rows = [code.load(code.at(0, b.add(at, b.mul(stride, r))), LANES) for r in numbers]
    for width in (4, 2, 1):  # swap the off-diagonal halves, then those of the halves, then single values
        low = [lane if not lane & width else lane - width + LANES for lane in range(LANES)]
        high = [lane + width if not lane & width else lane + LANES for lane in range(LANES)]
        for r in range(LANES):
            if not r & width:
                pair = rows[r], rows[r + width]
                rows[r], rows[r + width] = (code.shuffled(*pair, lanes) for lanes in (low, high))
    for r, row in zip(numbers, rows, strict=True):
        code.store(row, code.at(3, b.add(to, b.mul(to_stride, r))))


turn = vector_step(_turn, "aiiaii")
"""turn(src, at, stride, dst, to, to_stride): transpose LANES x LANES floats.

Row r of `src` begins at `at + r * stride`, of `dst` at `to + r * to_stride`.
"""


def _sum(together: int) -> Callable[[Code], None]:
    def write(code: Code) -> None:
        lanes, weights, out = 0, 3, 7
        at, stride, first, taps, factor, to = (code.args[position] for position in (1, 2, 4, 5, 6, 8))
        b = code.builder
        before = b.block
        loop, after = (b.append_basic_block(name) for name in ("taps", "summed"))
        b.branch(loop)  # there is at least one
        b.position_at_end(loop)
        tap, place = b.phi(_LONG), b.phi(_LONG)
        totals = [b.phi(_FLOATS) for _ in range(together)]
        weight = code.splat(b.load(code.at(weights, b.add(first, tap))), LANES)
        sums = []
        for c, total in enumerate(totals):
            value = code.load(code.at(lanes, code.offset(place, c * LANES)), LANES)
            sums.append(b.fadd(total, b.fmul(weight, value)))
        next_tap, next_place = code.offset(tap, 1), b.add(place, stride)
        b.cbranch(b.icmp_signed("<", next_tap, taps), loop, after)
        starts = [(tap, ir.Constant(_LONG, 0), next_tap), (place, at, next_place)]
        starts += [(total, ir.Constant(_FLOATS, [0.0] * LANES), sums[c]) for c, total in enumerate(totals)]
        for variable, start, following in starts:
            variable.add_incoming(start, before)
            variable.add_incoming(following, loop)
        b.position_at_end(after)
        scale = code.splat(factor, LANES)
        for c, total in enumerate(sums):
            code.store(b.fmul(total, scale), code.at(out, code.offset(to, c * LANES)))

    return write


sum_one, sum_three, sum_four = (vector_step(_sum(together), "aiiaiifai") for together in (1, 3, 4))
"""sum_three(lanes, at, stride, weights, first, taps, factor, out, to): sum up `taps` pixels of LANES rows.

The first of three channels is at `lanes[at]`, and the next pixel `stride` further. The weights begin at
`weights[first]`. The sums, times `factor`, are written to `out` from `to` on. `sum_one` sums one channel, and
`sum_four` sums four.
"""


TILE = 512  # values of a row that are summed before they are transposed: eight such rows stay in the L1 cache


@helper
def _sum_columns(lanes, starts, weights, channels, factor, out):
    """Sum the pixels of LANES rows, times `factor`."""
    taps = weights.shape[1]
    stride = channels * LANES
    for j in range(starts.size):
        at = starts[j] * stride
        if channels == 3:
            sum_three(lanes, at, stride, weights, j * taps, taps, factor, out, j * stride)
        elif channels == 4:
            sum_four(lanes, at, stride, weights, j * taps, taps, factor, out, j * stride)
        else:
            for c in range(0, stride, LANES):
                sum_one(lanes, at + c, stride, weights, j * taps, taps, factor, out, j * stride + c)


@helper
def _sum_rows(src, start, row_size, size, weights, y, out, to):
    """Sum `size` values of rows, the first from `start` on, with the weights of result `y`, four rows at a time."""
    # numba would test each signed index for a negative value.
    count, at = np.uint64(size), np.uint64(to)
    for i in range(count):
        out[at + i] = 0
    taps = weights.shape[1]
    k = 0
    while k + 4 <= taps:
        w0, w1, w2, w3 = weights[y, k], weights[y, k + 1], weights[y, k + 2], weights[y, k + 3]
        a = np.uint64(start + k * row_size)
        b, c, d = a + np.uint64(row_size), a + np.uint64(2 * row_size), a + np.uint64(3 * row_size)
        for i in range(count):
            total = out[at + i] + w0 * np.float32(src[a + i])
            total = total + w1 * np.float32(src[b + i])
            total = total + w2 * np.float32(src[c + i])
            out[at + i] = total + w3 * np.float32(src[d + i])
        k += 4
    while k < taps:
        weight = weights[y, k]
        a = np.uint64(start + k * row_size)
        for i in range(count):
            out[at + i] += weight * np.float32(src[a + i])
        k += 1


@helper
def _turn_tile(tile, size, lanes, to):
    for at in range(0, size, LANES):
        turn(tile, at, TILE, lanes, (to + at) * LANES, LANES)


@helper
def _turn_back(out, rows, size, dst, to):
    """Write `size` values of `rows` rows to `dst`, one row after the other."""
    whole = size // LANES * LANES if rows == LANES else 0
    for at in range(0, whole, LANES):
        turn(out, at * LANES, LANES, dst, to + at, size)
    for r in range(rows):
        for at in range(whole, size):
            dst[np.uint64(to + r * size + at)] = out[np.uint64(at * LANES + r)]


@helper
def _sum_rows_of(bytes_in, floats_in, start, row_size, size, weights, y, out, to):
    if bytes_in.size:
        _sum_rows(bytes_in, start, row_size, size, weights, y, out, to)
    else:
        _sum_rows(floats_in, start, row_size, size, weights, y, out, to)


@helper
def _as_floats(src, start, size, out, to):
    at, begin = np.uint64(start), np.uint64(to)
    for c in range(np.uint64(size)):
        out[begin + c] = np.float32(src[at + c])


@helper
def _count(values, height, width, channels, y_starts, y_weights, x_starts, x_weights, dst, beyond):
    """Return the number of images, or -1 if the arguments do not fit. Spans may reach `beyond` the input."""
    count = images_in(values, height, width, channels)
    fits = (
        count >= 0
        and min(y_starts.size, x_starts.size) > 0
        and dst.size == count * y_starts.size * x_starts.size * channels
        and y_weights.shape[0] == y_starts.size
        and x_weights.shape[0] == x_starts.size
        and 0 < y_weights.shape[1] <= height + beyond
        and 0 < x_weights.shape[1] <= width + beyond
    )
    for i in range(y_starts.size):
        fits &= 0 <= y_starts[i] <= height + beyond - y_weights.shape[1]
    for i in range(x_starts.size):
        fits &= 0 <= x_starts[i] <= width + beyond - x_weights.shape[1]
    return count if fits else -1


@kernel(
    "bytes_in: u8[:], floats_in: f32[:], height: i64, width: i64, channels: i64, y_starts: i64[:], y_weights: "
    "f32[:, :], x_starts: i64[:], x_weights: f32[:, :], factor: f32, dst: w f32[:] -> i64",
    makes_arrays=True,
)
def resize_spans(bytes_in, floats_in, height, width, channels, y_starts, y_weights, x_starts, x_weights, factor, dst):
    """Sum rows, then columns, of each image into the flat `dst`, times `factor`. Return 0 or BAD_ARGUMENT.

    The images are flat in one of `bytes_in` and `floats_in`; the other is empty.
    """
    count = _count(
        max(bytes_in.size, floats_in.size), height, width, channels, y_starts, y_weights, x_starts, x_weights, dst, 0
    )
    if count < 0:
        return BAD_ARGUMENT
    row_size = width * channels
    out_row = x_starts.size * channels
    tile = np.zeros(LANES * TILE, np.float32)
    lanes = np.empty((row_size + LANES) * LANES, np.float32)
    out = np.empty(out_row * LANES, np.float32)
    total = count * y_starts.size
    for first in range(0, total, LANES):
        rows = min(LANES, total - first)
        for column in range(0, row_size, TILE):
            size = min(TILE, row_size - column)
            for r in range(rows):
                image, y = (first + r) // y_starts.size, (first + r) % y_starts.size
                start = (image * height + y_starts[y]) * row_size + column
                _sum_rows_of(bytes_in, floats_in, start, row_size, size, y_weights, y, tile, r * TILE)
            _turn_tile(tile, size, lanes, column)
        _sum_columns(lanes, x_starts, x_weights, channels, factor, out)
        _turn_back(out, rows, out_row, dst, first * out_row)
    return 0


@kernel(
    "bytes_in: u8[:], floats_in: f32[:], height: i64, width: i64, channels: i64, y_starts: i64[:], y_weights: "
    "f32[:, :], x_starts: i64[:], x_weights: f32[:, :], factor: f32, dst: w f32[:] -> i64",
    makes_arrays=True,
)
def resize_area(bytes_in, floats_in, height, width, channels, y_starts, y_weights, x_starts, x_weights, factor, dst):
    """Run `resize_spans` with columns before rows. A position one beyond the input repeats its edge."""
    count = _count(
        max(bytes_in.size, floats_in.size), height, width, channels, y_starts, y_weights, x_starts, x_weights, dst, 1
    )
    if count < 0:
        return BAD_ARGUMENT
    row_size = width * channels
    out_row = x_starts.size * channels
    tile = np.zeros(LANES * TILE, np.float32)
    lanes = np.empty((row_size + channels + LANES) * LANES, np.float32)
    out = np.empty(out_row * LANES, np.float32)
    summed = np.empty(LANES * out_row, np.float32)
    total = np.empty(out_row, np.float32)
    held = np.int64(-1)  # the first of the source rows in `summed`
    for i in range(count * y_starts.size):
        image, y = i // y_starts.size, i % y_starts.size
        for c in range(np.uint64(out_row)):
            total[c] = 0
        for k in range(y_weights.shape[1]):
            source = min(y_starts[y] + k, height - 1)
            first = image * height + source // LANES * LANES
            if first != held:
                rows = min(LANES, (image + 1) * height - first)
                for column in range(0, row_size, TILE):
                    size = min(TILE, row_size - column)
                    for r in range(rows):
                        start = (first + r) * row_size + column
                        if bytes_in.size:
                            _as_floats(bytes_in, start, size, tile, r * TILE)
                        else:
                            _as_floats(floats_in, start, size, tile, r * TILE)
                    _turn_tile(tile, size, lanes, column)
                for c in range(row_size * LANES, (row_size + channels) * LANES):
                    lanes[c] = lanes[c - channels * LANES]
                _sum_columns(lanes, x_starts, x_weights, channels, np.float32(1), out)
                _turn_back(out, rows, out_row, summed, 0)
                held = first
            weight = y_weights[y, k]
            at = np.uint64((image * height + source - first) * out_row)
            for c in range(np.uint64(out_row)):
                total[c] += weight * summed[at + c]
        for c in range(np.uint64(out_row)):
            dst[np.uint64(i * out_row) + c] = total[c] * factor
    return 0
