"""RGB, HSV and grey from one another, compiled: the numbers of `spaces`, bit for bit, without the GIL."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.core.extending import intrinsic, overload

INLINE: Any = {"nogil": True, "error_model": "numpy", "forceinline": True}
KERNEL: Any = {"nogil": True, "cache": True, "error_model": "numpy"}
PER_LEVEL = np.float32(1 / 255)
LEVELS = np.float32(255.5)
ZERO, ONE, TWO, THREE, FOUR, SIX = (np.float32(value) for value in (0, 1, 2, 3, 4, 6))
TOP = np.float32(255)
SIXTH, THIRD, TWO_THIRDS = ONE / SIX, TWO / SIX, FOUR / SIX
RED, GREEN, BLUE = (np.float32(weight) for weight in (0.2989, 0.5870, 0.1140))


@intrinsic
def _pick(typing: Any, condition: Any, yes: Any, no: Any) -> Any:
    """`yes if condition else no`, both computed."""
    return yes(types.boolean, yes, yes), lambda context, builder, signature, args: builder.select(*args)


pick: Any = _pick  # as those who call it see it, without numba's own first argument


def unit(pixel: Any) -> Any:
    """A stored value as float32: a level as its share of 255."""


@overload(unit, jit_options=INLINE, strict=False)
def _unit(pixel: Any) -> Any:
    if pixel == types.uint8:
        return lambda pixel: np.float32(pixel) * PER_LEVEL
    return lambda pixel: pixel


def stored(value: Any, like: Any) -> Any:
    """A float32 as it is stored in an array like `like`: saturated and truncated to a level, or as it is."""


@overload(stored, jit_options=INLINE, strict=False)
def _stored(value: Any, like: Any) -> Any:
    if like.dtype == types.uint8:
        return lambda value, like: level(value * LEVELS)
    return lambda value, like: value


@njit(**INLINE)
def level(value: Any) -> Any:
    value = pick(value > ZERO, value, ZERO)
    return np.uint8(np.int32(pick(value < TOP, value, TOP)))


@njit(**INLINE)
def clipped(value: Any) -> Any:
    value = pick(value > ZERO, value, ZERO)
    return pick(value < ONE, value, ONE)


@njit(**KERNEL)
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


@njit(**KERNEL)
def to_rgb(src: Any, dst: Any) -> None:
    """Red, green and blue of the flat HSV pixels of `src`."""
    for i in range(min(src.size, dst.size) // 3):
        at = np.uint64(3 * i)
        second, third = at + np.uint64(1), at + np.uint64(2)
        turn, share, value = src[at] * SIX, src[second], src[third]
        rest = ONE - share
        dst[at] = (rest + share * clipped(abs(turn - THREE) - ONE)) * value
        dst[second] = (rest + share * clipped(TWO - abs(turn - TWO))) * value
        dst[third] = (rest + share * clipped(TWO - abs(turn - FOUR))) * value


@njit(**KERNEL)
def to_grey(src: Any, dst: Any) -> None:
    """The luma of the flat RGB pixels of `src`."""
    for i in range(min(src.size // 3, dst.size)):
        at = np.uint64(3 * i)
        second, third = at + np.uint64(1), at + np.uint64(2)
        dst[i] = stored(unit(src[at]) * RED + unit(src[second]) * GREEN + unit(src[third]) * BLUE, dst)


@njit(**KERNEL)
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
