"""Whether images are as large as a caller says: what kernels check before they read and write by index.

Imported by modules of kernels only, as numba itself.
"""

from __future__ import annotations

from penstock.compiled.kernel import helper

BAD_ARGUMENT = 1  # status: sizes that do not fit, or a place outside the source; nothing useful was written


@helper
def images_in(size: int, height: int, width: int, channels: int) -> int:
    """How many images `size` values are, or -1 if it is no whole number of them; no product can overflow."""
    if height <= 0 or width <= 0 or channels <= 0:
        return -1
    if channels > size or width > size // channels or height > size // (width * channels):
        return -1
    count = size // (height * width * channels)
    return count if count * height * width * channels == size else -1


@helper
def fits(size: int, count: int, height: int, width: int, channels: int) -> bool:
    """Whether `size` values are just `count` images, one at least."""
    return count > 0 and images_in(size, height, width, channels) == count
