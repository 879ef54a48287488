"""Compiled windows of images, with the results of `window.cut`, without the GIL."""

from __future__ import annotations

import numpy as np

from penstock.image.kernels import BAD_ARGUMENT
from penstock.image.kernels.instructions import fits
from penstock.native.kernel import kernel, specialised


@specialised
def _mirrored(src, of, dst, to, pixels, values):
    """Copy pixels of `values` values in reverse order. LLVM vectorises the loop if `values` is a constant."""
    for k in range(pixels):
        for c in range(values):
            dst[np.uint64(to + k * values + c)] = src[np.uint64(of - k * values + c)]


@kernel(
    "src: T[:], count: i64, height: i64, width: i64, values: i64, top: i64[:], left: i64[:], upside_down: bool[:], "
    "mirrored: bool[:], out_height: i64, out_width: i64, dst: w T[:] -> i64",
    T="u8 u32",
)
def window(src, count, height, width, values, top, left, upside_down, mirrored, out_height, out_width, dst):
    """Write the window of each image of the flat `src` into the flat `dst`; 0 or BAD_ARGUMENT.

    A pixel has `values` values.
    """
    if (
        not fits(src.size, count, height, width, values)
        or not fits(dst.size, count, out_height, out_width, values)
        or min(top.size, left.size, upside_down.size, mirrored.size) < count
    ):
        return BAD_ARGUMENT
    for n in range(count):
        if not (0 <= top[n] <= height - out_height and 0 <= left[n] <= width - out_width):
            return BAD_ARGUMENT
        for i in range(out_height):
            to = (n * out_height + i) * out_width * values
            row = top[n] + (out_height - 1 - i if upside_down[n] else i)
            of = ((n * height + row) * width + left[n]) * values
            if not mirrored[n]:
                for k in range(out_width * values):
                    dst[np.uint64(to + k)] = src[np.uint64(of + k)]
                continue
            of += (out_width - 1) * values
            if values == 1:
                _mirrored(src, of, dst, to, out_width, 1)
            elif values == 2:
                _mirrored(src, of, dst, to, out_width, 2)
            elif values == 3:
                _mirrored(src, of, dst, to, out_width, 3)
            elif values == 4:
                _mirrored(src, of, dst, to, out_width, 4)
            else:
                _mirrored(src, of, dst, to, out_width, values)
    return 0
