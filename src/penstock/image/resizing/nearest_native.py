"""The fast kernel of nearest-neighbour resizing: it copies pixels, without the GIL.

Imported inside functions only: numba takes a third of a second to load.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compiled.kernel import kernel, uncounted
from penstock.image.kernels.instructions import BAD_ARGUMENT, images_in


@uncounted
@kernel
def resize_nearest(src: Any, height: int, width: int, parts: int, y: Any, x: Any, dst: Any) -> int:
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
        # Unsigned indices: numba would otherwise test each for counting from the end.
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


def warm_up() -> None:
    """Compile for pixels moved in parts of 1, 2, 4 and 8 bytes."""
    taps = np.zeros(1, np.int64)
    taps.flags.writeable = False
    for size in (1, 2, 4, 8):
        pixels = np.zeros(3, f"u{size}")
        pixels.flags.writeable = False
        resize_nearest(pixels, 1, 1, 3, taps, taps, np.zeros(3, f"u{size}"))
