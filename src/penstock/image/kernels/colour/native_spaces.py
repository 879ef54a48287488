"""RGB, HSV and grey from one another, compiled: the numbers of `spaces`, bit for bit, without the GIL."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compiled.kernel import kernel
from penstock.image.kernels.colour.native_units import clipped, stored, unit
from penstock.image.kernels.floats import FOUR, ONE, SIX, THREE, TWO, ZERO
from penstock.image.kernels.instructions import pick

SIXTH, THIRD, TWO_THIRDS = ONE / SIX, TWO / SIX, FOUR / SIX
RED, GREEN, BLUE = (np.float32(weight) for weight in (0.2989, 0.5870, 0.1140))


@kernel
def to_hsv(src: Any, dst: Any) -> None:
    """Hue, saturation and value of the flat RGB pixels of `src`."""
    for i in range(min(src.size, dst.size) // 3):
        at = np.uint64(3 * i)  # unsigned: numba would otherwise test each index for counting from the end
        second, third = at + np.uint64(1), at + np.uint64(2)
        red, green, blue = src[at], src[second], src[third]
        value = pick(red < green, green, red)
        value = pick(value < blue, blue, value)
        low = pick(green < red, green, red)
        span = value - pick(blue < low, blue, low)
        norm = (ONE / span) * SIXTH
        warm = pick(green == value, norm * (blue - red) + THIRD, norm * (red - green) + TWO_THIRDS)
        hue = pick(red == value, norm * (green - blue), warm)
        hue = pick(span > ZERO, hue, ZERO)
        dst[at] = pick(hue < ZERO, hue + ONE, hue)
        dst[second] = pick(value > ZERO, span / value, ZERO)
        dst[third] = value


@kernel
def to_rgb(src: Any, dst: Any) -> None:
    """Red, green and blue of the flat HSV pixels of `src`."""
    for i in range(min(src.size, dst.size) // 3):
        at = np.uint64(3 * i)
        second, third = at + np.uint64(1), at + np.uint64(2)
        turn, share, value = src[at] * SIX, src[second], src[third]
        rest = ONE - share
        dst[at] = (rest + share * clipped(abs(turn - THREE) - ONE, ONE)) * value
        dst[second] = (rest + share * clipped(TWO - abs(turn - TWO), ONE)) * value
        dst[third] = (rest + share * clipped(TWO - abs(turn - FOUR), ONE)) * value


@kernel
def to_grey(src: Any, dst: Any) -> None:
    """The luma of the flat RGB pixels of `src`."""
    for i in range(min(src.size // 3, dst.size)):
        at = np.uint64(3 * i)
        second, third = at + np.uint64(1), at + np.uint64(2)
        dst[i] = stored(unit(src[at]) * RED + unit(src[second]) * GREEN + unit(src[third]) * BLUE, dst)


@kernel
def spread(src: Any, dst: Any) -> None:
    """Each value of `src` three times."""
    for i in range(min(src.size, dst.size // 3)):
        at = np.uint64(3 * i)
        value = src[i]
        dst[at] = value
        dst[at + np.uint64(1)] = value
        dst[at + np.uint64(2)] = value


def warm_up() -> None:
    """Compile for uint8 and for float32."""
    for dtype in (np.uint8, np.float32):
        src = np.zeros(3, dtype)
        src.flags.writeable = False
        to_grey(src, np.zeros(1, dtype))
        spread(src, np.zeros(9, dtype))
        if dtype == np.float32:
            to_hsv(src, np.zeros(3, dtype))
            to_rgb(src, np.zeros(3, dtype))
