"""Rows of pixels from the planes of a picture."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from penstock.image.kernels.jpeg.colour import PIXELS, colour_full, colour_half
from penstock.image.kernels.jpeg.headers import ACROSS, COMPONENTS, DOWN, HEIGHT, WIDTH
from penstock.image.kernels.jpeg.planes import MARGIN, layout


@njit(nogil=True, error_model="numpy")
def row_of_pixels(header: Any, samples: Any, y: int, rgbx: Any) -> None:
    """Row `y` as red, green, blue and a fourth byte of no meaning; `rgbx` has room for PIXELS more than the width."""
    _, _, stride, colour_stride, plane, colour_plane = layout(header)
    width = header[WIDTH]
    luma = y * stride + MARGIN
    if header[COMPONENTS] == 1:
        for x in range(width):
            value = samples[np.uint64(luma + x)]
            for c in range(3):
                rgbx[np.uint64(4 * x + c)] = value
        return
    near, far = y, y
    if header[DOWN] == 2:
        near = y >> 1
        far = min(max(near + 1 if y & 1 else near - 1, 0), (header[HEIGHT] + 1) // 2 - 1)
    cb_near, cb_far = plane + MARGIN + near * colour_stride, plane + MARGIN + far * colour_stride
    cr_near, cr_far = cb_near + colour_plane, cb_far + colour_plane
    if header[ACROSS] == 1:
        for x in range(0, width, PIXELS):
            colour_full(samples, luma + x, cb_near + x, cr_near + x, rgbx, 4 * x)
        return
    even, odd = (8, 7) if header[DOWN] == 2 else (4, 8)
    for x in range(0, width, PIXELS):
        h = x >> 1
        colour_half(samples, luma + x, cb_near + h, cb_far + h, cr_near + h, cr_far + h, even, odd, rgbx, 4 * x)
