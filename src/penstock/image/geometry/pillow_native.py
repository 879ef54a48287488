"""The fast kernel of `pillow`: affine and perspective transforms as Pillow computes them, without the GIL."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.image.geometry.pillow import BILINEAR, EXACT, FIXED, NEAREST
from penstock.image.kernels import BAD_ARGUMENT
from penstock.native.kernel import helper, inlined, kernel

_u = np.uint64


@helper
def _points(a: Any, way: int, rows: int, state: Any, y: int, xs: Any, ys: Any) -> None:
    """Write the points of row `y` of the result. `state` has the point of its first pixel, for steps of float64."""
    count = _u(xs.size)
    if way == FIXED:
        x_step, y_step = np.floor(a[0] * 65536.0 + 0.5), np.floor(a[3] * 65536.0 + 0.5)
        x = np.floor((a[2] + a[0] * 0.5 + a[1] * 0.5) * 65536.0 + 0.5) + y * np.floor(a[1] * 65536.0 + 0.5)
        v = np.floor((a[5] + a[3] * 0.5 + a[4] * 0.5) * 65536.0 + 0.5) + y * np.floor(a[4] * 65536.0 + 0.5)
        for j in range(count):
            xs[j] = np.floor((x + np.float64(np.int64(j)) * x_step) / 65536.0)
            ys[j] = np.floor((v + np.float64(np.int64(j)) * y_step) / 65536.0)
    elif way == EXACT:
        v = y + 0.5
        for j in range(count):
            x = np.float64(np.int64(j)) + 0.5
            xs[j] = a[0] * x + a[1] * v + a[2]
            ys[j] = a[3] * x + a[4] * v + a[5]
        if a[6] != 0.0 or a[7] != 0.0:
            for j in range(count):
                below = a[6] * (np.float64(np.int64(j)) + 0.5) + a[7] * v + 1.0
                xs[j] = xs[j] / below
                ys[j] = ys[j] / below
    else:
        x, v = state[0], state[1]
        for j in range(count):
            xs[j], ys[j] = x, v
            x += a[0]
            v += a[3]
        state[0] += a[1]
        state[1] += a[4]


@inlined
def _linear(one: float, two: float, at: float) -> float:
    return one + (two - one) * at


@inlined
def _cubic(one: float, two: float, three: float, four: float, at: float) -> float:
    p3, p4 = 2.0 * (one - two) + three - four, -one + two - three + four
    return two + at * ((-one + three) + at * (p3 + at * p4))


@helper
def _mixed_line(src: Any, row: int, left: int, at: float, c: int, kind: int) -> float:
    """Return the interpolated value of a row, from the pixel `left` on."""
    last, y, channel = src.shape[1] - 1, _u(row), _u(c)
    one = np.float64(src[y, _u(min(max(left, 0), last)), channel])
    two = np.float64(src[y, _u(min(max(left + 1, 0), last)), channel])
    if kind == BILINEAR:
        return _linear(one, two, at)
    three = np.float64(src[y, _u(min(left + 2, last)), channel])
    four = np.float64(src[y, _u(min(left + 3, last)), channel])
    return _cubic(one, two, three, four, at)


@helper
def _mixed(src: Any, x: float, y: float, c: int, kind: int) -> int:
    """Return the interpolated value at a point that lies inside."""
    left, top = int(np.floor(x - 0.5)), int(np.floor(y - 0.5))
    across, down = x - 0.5 - left, y - 0.5 - top
    height = src.shape[0]
    if kind == BILINEAR:
        one = _mixed_line(src, max(top, 0), left, across, c, kind)
        two = _mixed_line(src, top + 1, left, across, c, kind) if top + 1 < height else one
        return int(_linear(one, two, down))
    left, top = left - 1, top - 1
    one = _mixed_line(src, max(top, 0), left, across, c, kind)
    two = _mixed_line(src, top + 1, left, across, c, kind) if top + 1 >= 0 else one
    three = _mixed_line(src, top + 2, left, across, c, kind) if top + 2 < height else two
    four = _mixed_line(src, top + 3, left, across, c, kind) if top + 3 < height else three
    return int(min(max(_cubic(one, two, three, four, down), 0.0), 255.0))


@kernel(
    "src: u8[:, :, :], a: f64[:], way: i64, kind: i64, fill: u8[:], table: T[:, :], planes: i64, out: w T[:, :, :]"
    " -> i64",
    makes_arrays=True,
    T="u8 f32",
)
def warp(src: Any, a: Any, way: int, kind: int, fill: Any, table: Any, planes: int, out: Any) -> int:
    """Write `table`'s values for the transformed image to `out`, which is (channels, height, width) with `planes`."""
    height, width, channels = src.shape
    rows, columns = (out.shape[1], out.shape[2]) if planes else (out.shape[0], out.shape[1])
    fits = a.size == 8 and fill.size == channels and table.shape[0] == channels and table.shape[1] == 256
    fits = fits and (out.shape[0] if planes else out.shape[2]) == channels and min(height, width, channels) > 0
    if not fits:
        return BAD_ARGUMENT
    xs, ys, state, inside = np.empty(columns), np.empty(columns), np.empty(2), np.empty(columns, np.uint8)
    state[0], state[1] = a[2] + a[1] * 0.5 + a[0] * 0.5, a[5] + a[4] * 0.5 + a[3] * 0.5
    for i in range(rows):
        _points(a, way, rows, state, i, xs, ys)
        for j in range(_u(columns)):
            inside[j] = (xs[j] >= 0.0) & (xs[j] < width) & (ys[j] >= 0.0) & (ys[j] < height)
        for j in range(_u(columns)):
            for c in range(_u(channels)):
                if not inside[j]:
                    value = table[c, fill[c]]
                elif kind == NEAREST:
                    value = table[c, src[_u(np.int64(ys[j])), _u(np.int64(xs[j])), c]]
                else:
                    value = table[c, _u(_mixed(src, xs[j], ys[j], c, kind))]
                if planes:
                    out[c, _u(i), j] = value
                else:
                    out[_u(i), j, c] = value
    return 0
