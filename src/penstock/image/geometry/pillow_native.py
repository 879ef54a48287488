"""The fast kernel of `pillow`: affine and perspective transforms as Pillow computes them, without the GIL."""

from __future__ import annotations

import numpy as np

from penstock.image.geometry.pillow import BILINEAR, EXACT, FIXED, NEAREST, STEPPED
from penstock.image.kernels import BAD_ARGUMENT
from penstock.image.kernels.instructions import Code, pick, vector_step
from penstock.image.kernels.tables import fits_result, look_up
from penstock.native.kernel import helper, inlined, kernel

_u = np.uint64


@helper
def _fixed_places(a, y, height, width, at):
    """Write the number of the pixel for each pixel of row `y`, or -1 outside, in numbers of 16.16 bits."""
    x_step, y_step = int(np.floor(a[0] * 65536.0 + 0.5)), int(np.floor(a[3] * 65536.0 + 0.5))
    x = int(np.floor((a[2] + a[0] * 0.5 + a[1] * 0.5) * 65536.0 + 0.5)) + y * int(np.floor(a[1] * 65536.0 + 0.5))
    v = int(np.floor((a[5] + a[3] * 0.5 + a[4] * 0.5) * 65536.0 + 0.5)) + y * int(np.floor(a[4] * 65536.0 + 0.5))
    for j in range(at.size):
        column, row = (x + j * x_step) >> 16, (v + j * y_step) >> 16
        inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
        at[_u(j)] = pick(inside, row * width + column, -1)


def _four(code: Code) -> None:
    _, first, _, to = code.args
    code.store(code.load(code.at(0, first), 4), code.at(2, to))


_copy_four = vector_step(_four, "aiai")  # (src, first, out, to): four bytes


@helper
def _copied(src, at, fill, out, y):
    """Write the pixels at `at`, of three bytes. Those inside follow one another."""
    begin, end, most = _u(0), _u(at.size), -1
    for j in range(_u(at.size)):
        most = max(most, at[j])
    while begin < end and at[begin] < 0:
        begin += _u(1)
    while begin < end and at[end - _u(1)] < 0:
        end -= _u(1)
    done = begin
    if 3 * most + 4 <= src.size and begin < end:  # from left to right: the next pixel overwrites the fourth byte
        done = end - _u(1)
        row = y * _u(3 * at.size)
        for j in range(begin, done):
            _copy_four(src, 3 * at[j], out, np.int64(row + _u(3) * j))
    for j in range(done, end):
        for c in range(_u(3)):
            out[y, j, c] = src[_u(3 * at[j]) + c]
    for j in range(begin):
        for c in range(_u(3)):
            out[y, j, c] = fill[c]
    for j in range(end, _u(at.size)):
        for c in range(_u(3)):
            out[y, j, c] = fill[c]


@helper
def _nearest(src, at, fill, table, out, y, planes):
    """Write the table's values for the pixels at `at`. Three channels have loops of their own, which are faster."""
    channels = fill.size
    for j in range(_u(at.size)):
        outside, first = at[j] < 0, _u(max(at[j], 0) * channels)
        if channels == 3:
            red, green = pick(outside, fill[0], src[first]), pick(outside, fill[1], src[first + _u(1)])
            blue = pick(outside, fill[2], src[first + _u(2)])
            if planes:
                out[0, y, j], out[1, y, j], out[2, y, j] = table[0, red], table[1, green], table[2, blue]
            else:
                out[y, j, 0], out[y, j, 1], out[y, j, 2] = table[0, red], table[1, green], table[2, blue]
        else:
            for c in range(_u(channels)):
                value = table[c, pick(outside, fill[c], src[first + c])]
                if planes:
                    out[c, y, j] = value
                else:
                    out[y, j, c] = value


@helper
def _points(a, way, state, y, xs, ys):
    """Write the points of row `y` of the result. `state` has the point of its first pixel, for steps of float64."""
    count = _u(xs.size)
    if way == EXACT:
        v = y + 0.5
        for j in range(count):
            x = np.float64(np.int64(j)) + 0.5
            below = a[6] * x + a[7] * v + 1.0
            xs[j] = (a[0] * x + a[1] * v + a[2]) / below
            ys[j] = (a[3] * x + a[4] * v + a[5]) / below
        return
    x, v = state[0], state[1]
    for j in range(count):
        xs[j], ys[j] = x, v
        x += a[0]
        v += a[3]
    state[0] += a[1]
    state[1] += a[4]


@inlined
def _linear(src, at, right, part):
    one = np.float64(src[at])
    return one + (np.float64(src[at + right]) - one) * part


@inlined
def _cubic(one, two, three, four, at):
    p3, p4 = 2.0 * (one - two) + three - four, -one + two - three + four
    return two + at * ((-one + three) + at * (p3 + at * p4))


@inlined
def _cubic_line(src, at, xs, step, part):
    one, two = np.float64(src[at + xs[0] * step]), np.float64(src[at + xs[1] * step])
    return _cubic(one, two, np.float64(src[at + xs[2] * step]), np.float64(src[at + xs[3] * step]), part)


@inlined
def _inside(place, size):
    return _u(min(max(place, 0), size - 1))


@helper
def _bilinear(src, height, width, x, y, channels, rows, j):
    left, top = int(np.floor(x - 0.5)), int(np.floor(y - 0.5))
    across, down = x - 0.5 - left, y - 0.5 - top
    step = _u(channels)
    begin = _inside(left, width) * step
    right = _inside(left + 1, width) * step - begin
    upper = _inside(top, height) * _u(width) * step + begin
    lower = _inside(top + 1, height) * _u(width) * step + begin
    for c in range(step):
        one = _linear(src, upper + c, right, across)
        rows[c, j] = np.uint8(int(one + (_linear(src, lower + c, right, across) - one) * down))


@helper
def _bicubic(src, height, width, x, y, channels, rows, j):
    left, top = int(np.floor(x - 0.5)), int(np.floor(y - 0.5))
    across, down = x - 0.5 - left, y - 0.5 - top
    step = _u(channels)
    line = _u(width) * step
    xs = _inside(left - 1, width), _inside(left, width), _inside(left + 1, width), _inside(left + 2, width)
    first, second = _inside(top - 1, height) * line, _inside(top, height) * line
    third, fourth = _inside(top + 1, height) * line, _inside(top + 2, height) * line
    for c in range(step):
        one, two = _cubic_line(src, first + c, xs, step, across), _cubic_line(src, second + c, xs, step, across)
        three, four = _cubic_line(src, third + c, xs, step, across), _cubic_line(src, fourth + c, xs, step, across)
        rows[c, j] = np.uint8(int(min(max(_cubic(one, two, three, four, down), 0.0), 255.0)))


@kernel(
    "src: u8[:], shape: i64[:], a: f64[:], way: i64, kind: i64, fill: u8[:], table: T[:, :], planes: i64,"
    " out: w T[:, :, :] -> i64",
    makes_arrays=True,
    T="u8 f32",
)
def warp(src, shape, a, way, kind, fill, table, planes, out):
    """Write `table`'s values for the transformed flat image `src` to `out`: (channels, rows, columns) with `planes`.

    `shape` is height, width and channels.
    """
    height, width, channels = shape[0], shape[1], shape[2]
    rows, columns = (out.shape[1], out.shape[2]) if planes else (out.shape[0], out.shape[1])
    fits = a.size == 8 and fill.size == channels and min(height, width, channels) > 0
    fits = fits and src.size == height * width * channels
    if not fits or not fits_result(table, out, planes, rows, columns, channels):
        return BAD_ARGUMENT
    copies = kind == NEAREST and way != EXACT and channels == 3 and planes == 0 and out.itemsize == 1
    for c in range(channels):
        for value in range(256):
            copies = copies and table[c, value] == value
    apart = way == STEPPED and a[1] == 0.0 and a[3] == 0.0  # all rows have the same columns
    xs, ys, state, at = np.empty(columns), np.empty(columns), np.empty(2), np.empty(columns, np.int64)
    flat = np.empty((channels, columns), np.uint8)
    state[0], state[1] = a[2] + a[1] * 0.5 + a[0] * 0.5, a[5] + a[4] * 0.5 + a[3] * 0.5
    for i in range(rows):
        if way == FIXED:
            _fixed_places(a, i, height, width, at)
        else:
            if apart and i:
                for j in range(_u(columns)):
                    ys[j] = state[1]
                state[1] += a[4]
            else:
                _points(a, way, state, i, xs, ys)
            for j in range(_u(columns)):
                inside = (xs[j] >= 0.0) & (xs[j] < width) & (ys[j] >= 0.0) & (ys[j] < height)
                place = np.int64(pick(inside, ys[j], 0.0)) * width + np.int64(pick(inside, xs[j], 0.0))
                at[j] = pick(inside, place, -1)
        if copies:
            _copied(src, at, fill, out, _u(i))
            continue
        if kind == NEAREST:
            _nearest(src, at, fill, table, out, _u(i), planes)
            continue
        for j in range(_u(columns)):
            if at[j] < 0:
                for c in range(_u(channels)):
                    flat[c, j] = fill[c]
            elif kind == BILINEAR:
                _bilinear(src, height, width, xs[j], ys[j], channels, flat, j)
            else:
                _bicubic(src, height, width, xs[j], ys[j], channels, flat, j)
        for c in range(channels):
            look_up(flat[c], 0, columns, table, c, out, i, planes)
    return 0
