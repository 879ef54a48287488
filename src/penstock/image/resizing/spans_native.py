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
        lanes, weights, out = 0, 3, 6
        at, stride, first, taps, to = (code.args[position] for position in (1, 2, 4, 5, 7))
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
        for c, total in enumerate(sums):
            code.store(total, code.at(out, code.offset(to, c * LANES)))

    return write


sum_one, sum_three, sum_four = (vector_step(_sum(together), "aiiaiiai") for together in (1, 3, 4))
"""sum_three(lanes, at, stride, weights, first, taps, out, to): sum up `taps` pixels of LANES rows.

The first of three channels is at `lanes[at]`, and the next pixel `stride` further. The weights begin at
`weights[first]`. The sums are written to `out` from `to` on. `sum_one` sums one channel, and `sum_four` sums four.
"""


TILE = 512  # values of a row that are summed before they are transposed: eight such rows stay in the L1 cache


@helper
def _sum_columns(lanes, starts, weights, channels, out):
    """Sum the pixels of LANES rows."""
    taps = weights.shape[1]
    stride = channels * LANES
    for j in range(starts.size):
        at = starts[j] * stride
        if channels == 3:
            sum_three(lanes, at, stride, weights, j * taps, taps, out, j * stride)
        elif channels == 4:
            sum_four(lanes, at, stride, weights, j * taps, taps, out, j * stride)
        else:
            for c in range(0, stride, LANES):
                sum_one(lanes, at + c, stride, weights, j * taps, taps, out, j * stride + c)


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
def _turn_back(out, rows, size, dst, to):
    """Write `size` values of `rows` rows to `dst`, one row after the other."""
    whole = size // LANES * LANES if rows == LANES else 0
    for at in range(0, whole, LANES):
        turn(out, at * LANES, LANES, dst, to + at, size)
    for r in range(rows):
        for at in range(whole, size):
            dst[np.uint64(to + r * size + at)] = out[np.uint64(at * LANES + r)]


@helper
def _fit(starts, weights, size):
    fit = starts.size > 0 and weights.shape[0] == starts.size and 0 < weights.shape[1] <= size
    for i in range(starts.size):
        fit &= 0 <= starts[i] <= size - weights.shape[1]
    return fit


@kernel(
    "src: T[:], height: i64, width: i64, channels: i64, y_starts: i64[:], y_weights: f32[:, :], x_starts: i64[:], "
    "x_weights: f32[:, :], dst: w f32[:] -> i64",
    T="u8 f32",
    makes_arrays=True,
)
def resize_spans(src, height, width, channels, y_starts, y_weights, x_starts, x_weights, dst):
    """Sum rows, then columns, of each image of the flat `src` into the flat `dst`. Return 0 or BAD_ARGUMENT."""
    count = images_in(src.size, height, width, channels)
    row_size = width * channels
    out_row = x_starts.size * channels
    if (
        count < 0
        or dst.size != count * y_starts.size * out_row
        or not _fit(y_starts, y_weights, height)
        or not _fit(x_starts, x_weights, width)
    ):
        return BAD_ARGUMENT
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
                _sum_rows(src, start, row_size, size, y_weights, y, tile, r * TILE)
            for at in range(0, size, LANES):
                turn(tile, at, TILE, lanes, (column + at) * LANES, LANES)
        _sum_columns(lanes, x_starts, x_weights, channels, out)
        _turn_back(out, rows, out_row, dst, first * out_row)
    return 0
