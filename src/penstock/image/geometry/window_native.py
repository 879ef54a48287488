"""Compiled windows of images, with the results of `window_reference`, without the GIL."""

from __future__ import annotations

import numpy as np

from penstock.image.geometry.window_reference import CONSTANT, SYMMETRIC
from penstock.image.kernels import BAD_ARGUMENT
from penstock.image.kernels.instructions import fits
from penstock.native.kernel import helper, kernel


@helper
def _places(start, backwards, mode, size, found):
    """Fill in the row or column of each place, -1 for the constant. Return False if one is too far away."""
    edge = 1 if mode == SYMMETRIC else 0
    near = True
    for i in range(found.size):
        at = start + (found.size - 1 - i if backwards else i)
        if mode == CONSTANT:
            at = at if (at >= 0) & (at < size) else -1
        else:
            at = -at - edge if at < 0 else at
            at = 2 * size - 2 + edge - at if at >= size else at
            near = near & (at >= 0) & (at < size)
        found[i] = at
    return near


@helper
def _runs(columns, found):
    """Compute the number of consecutive source columns from each column on. It is negative for descending order."""
    for j in range(columns.size - 1, -1, -1):
        found[j] = 1
        if columns[j] >= 0 and j + 1 < columns.size and columns[j + 1] >= 0:
            if columns[j + 1] == columns[j] + 1:
                found[j] = max(found[j + 1], 1) + 1
            elif columns[j + 1] == columns[j] - 1:
                found[j] = min(found[j + 1], -1) - 1


@helper
def _windows(src, sizes, where, mode, fill, out_size, dst, made):
    """Run `window` with checked sizes. `made` has memory for the places of an image and for `_runs`."""
    count, height, width, values = sizes
    top, left, upside_down, mirrored = where
    out_height, out_width = out_size
    rows, columns, runs = made
    for n in range(count):
        if not _places(top[n], upside_down[n], mode, height, rows) or not _places(
            left[n], mirrored[n], mode, width, columns
        ):
            return BAD_ARGUMENT
        _runs(columns, runs)
        for i in range(out_height):
            to = (n * out_height + i) * out_width * values
            row = (n * height + rows[i]) * width
            j = 0
            while j < out_width:
                if rows[i] < 0 or columns[j] < 0:
                    for c in range(values):
                        dst[np.uint64(to + c)] = fill[np.uint64(c)]
                    j += 1
                    to += values
                    continue
                of = (row + columns[j]) * values
                run = abs(runs[j])
                if runs[j] > 0:
                    for c in range(run * values):
                        dst[np.uint64(to + c)] = src[np.uint64(of + c)]
                elif values == 3:  # a separate case, because LLVM vectorises it and reverses several pixels at once
                    for k in range(run):
                        dst[np.uint64(to + 3 * k)] = src[np.uint64(of - 3 * k)]
                        dst[np.uint64(to + 3 * k + 1)] = src[np.uint64(of - 3 * k + 1)]
                        dst[np.uint64(to + 3 * k + 2)] = src[np.uint64(of - 3 * k + 2)]
                elif values == 1:
                    for k in range(run):
                        dst[np.uint64(to + k)] = src[np.uint64(of - k)]
                elif values == 2:
                    for k in range(run):
                        dst[np.uint64(to + 2 * k)] = src[np.uint64(of - 2 * k)]
                        dst[np.uint64(to + 2 * k + 1)] = src[np.uint64(of - 2 * k + 1)]
                elif values == 4:
                    for k in range(run):
                        dst[np.uint64(to + 4 * k)] = src[np.uint64(of - 4 * k)]
                        dst[np.uint64(to + 4 * k + 1)] = src[np.uint64(of - 4 * k + 1)]
                        dst[np.uint64(to + 4 * k + 2)] = src[np.uint64(of - 4 * k + 2)]
                        dst[np.uint64(to + 4 * k + 3)] = src[np.uint64(of - 4 * k + 3)]
                else:
                    for k in range(run):
                        for c in range(values):
                            dst[np.uint64(to + k * values + c)] = src[np.uint64(of - k * values + c)]
                j += run
                to += run * values
    return 0


@kernel(
    "src: T[:], count: i64, height: i64, width: i64, values: i64, top: w i64[:], left: w i64[:], upside_down: w "
    "bool[:], mirrored: w bool[:], mode: i64, fill: T[:], out_height: i64, out_width: i64, dst: w T[:] -> i64",
    T="u8 u32",
    makes_arrays=True,
)
def window(src, count, height, width, values, top, left, upside_down, mirrored, mode, fill, out_height, out_width, dst):
    """Write the window of each image of the flat `src` into the flat `dst`; 0 or BAD_ARGUMENT.

    A pixel has `values` values, and so has `fill`.
    """
    if (
        not fits(src.size, count, height, width, values)
        or not fits(dst.size, count, out_height, out_width, values)
        or fill.size != values
        or min(top.size, left.size, upside_down.size, mirrored.size) < count
    ):
        return BAD_ARGUMENT
    rows = np.empty(out_height, np.int64)
    columns, runs = np.empty(out_width, np.int64), np.empty(out_width, np.int64)
    sizes, where = (count, height, width, values), (top, left, upside_down, mirrored)
    return _windows(src, sizes, where, mode, fill, (out_height, out_width), dst, (rows, columns, runs))
