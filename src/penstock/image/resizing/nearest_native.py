"""The fast kernel of nearest-neighbour resizing: it copies pixels, without the GIL."""

from __future__ import annotations

import numpy as np

from penstock.image.kernels import BAD_ARGUMENT
from penstock.image.kernels.instructions import images_in
from penstock.native.kernel import kernel


@kernel(
    "src: T[:], height: i64, width: i64, parts: i64, y: i64[:], x: i64[:], dst: w T[:] -> i64",
    T="u8 u16 u32 u64",
)
def resize_nearest(src, height, width, parts, y, x, dst):
    """Copy the pixel at (y[i], x[j]), of `parts` values, of each image of the flat `src` to the flat `dst`."""
    count = images_in(src.size, height, width, parts)
    row_size, out_row = width * parts, x.size * parts
    fits = count >= 0 and y.size > 0 and x.size > 0 and dst.size == count * y.size * out_row
    for i in range(y.size):
        fits = fits and 0 <= y[i] < height
    for j in range(x.size):
        fits = fits and 0 <= x[j] < width
    if not fits:
        return BAD_ARGUMENT
    for i in range(count * y.size):
        start = (i // y.size * height + y[i % y.size]) * row_size
        # numba would test each signed index for a negative value.
        to = np.uint64(i * out_row)
        if parts == 1:
            for j in range(np.uint64(x.size)):
                dst[to + j] = src[np.uint64(start + x[j])]
        elif parts == 3:
            for j in range(np.uint64(x.size)):
                at = np.uint64(start + 3 * x[j])
                dst[to] = src[at]
                dst[to + np.uint64(1)] = src[at + np.uint64(1)]
                dst[to + np.uint64(2)] = src[at + np.uint64(2)]
                to += np.uint64(3)
        else:
            for j in range(np.uint64(x.size)):
                at = np.uint64(start + parts * x[j])
                for k in range(np.uint64(parts)):
                    dst[to] = src[at + k]
                    to += np.uint64(1)
    return 0
