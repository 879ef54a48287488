"""Brightness, saturation and hue, compiled: the numbers of `pixels`, bit for bit, without the GIL.

Written without branches, so that LLVM makes vectors of it: a branch, or a division that may raise, costs a factor of
twenty here. No fast-math flag: these are the same operations in the same order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.core.extending import intrinsic, overload

INLINE: Any = {"nogil": True, "error_model": "numpy", "forceinline": True}
KERNEL: Any = {"nogil": True, "cache": True, "error_model": "numpy"}
PER_LEVEL = np.float32(1 / 255)
LEVELS = np.float32(255.5)
ZERO, HALF, ONE, TWO, THREE, FOUR, FIVE, SIX = (np.float32(value) for value in (0, 0.5, 1, 2, 3, 4, 5, 6))
TOP = np.float32(255)


@intrinsic
def _pick(typing: Any, condition: Any, yes: Any, no: Any) -> Any:
    """`yes if condition else no`, both computed."""
    return yes(types.boolean, yes, yes), lambda context, builder, signature, args: builder.select(*args)


pick: Any = _pick  # as those who call it see it, without numba's own first argument


@intrinsic
def _floor(typing: Any, value: Any) -> Any:
    """The largest whole number not above `value`, as one instruction."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.call(builder.module.declare_intrinsic("llvm.floor", [args[0].type]), args)

    return value(value), generate


floor: Any = _floor


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
def saturated(red: Any, green: Any, blue: Any, factor: Any) -> Any:
    """One pixel with its saturation times `factor`."""
    value = pick(red < green, green, red)
    value = pick(value < blue, blue, value)
    low = pick(green < red, green, red)
    low = pick(blue < low, blue, low)
    span = value - low
    share = pick(value > ZERO, span / value, ZERO)
    norm = ONE / (SIX * span)
    is_red = red == value
    is_green = green == value
    turn = norm * pick(is_red, green - blue, pick(is_green, blue - red, red - green))
    moved = np.float64(turn) + pick(is_green, 2.0 / 6.0, 4.0 / 6.0)
    turn = pick(is_red, turn, np.float32(moved))
    turn = pick(turn == turn, turn, ZERO)  # grey has none
    turn = pick(turn < ZERO, turn + ONE, turn)
    share = share * factor
    share = pick(share > ZERO, share, ZERO)
    share = pick(share < ONE, share, ONE)
    chroma = share * value
    rest = value - chroma
    turn = turn * SIX
    past = turn - TWO * floor(turn * HALF)
    second = chroma * (ONE - abs(past - ONE))
    red, green, blue = around(turn, chroma, second, ZERO)
    return red + rest, green + rest, blue + rest


@njit(**INLINE)
def turned(red: Any, green: Any, blue: Any, sixths: Any) -> Any:
    """One pixel with its hue turned by `sixths` of a sixth of the circle."""
    rising = red < green
    low = pick(green < red, green, red)
    high = pick(rising, green, red)
    below = blue < low
    above = high < blue
    middle = pick(below, low, pick(above, high, blue))
    low = pick(below, blue, low)
    high = pick(above, blue, high)
    span = high - low
    sector = pick(below, pick(rising, ONE, ZERO), pick(above, pick(rising, THREE, FOUR), pick(rising, TWO, FIVE)))
    odd = rising == (below | above)
    share = (middle - low) / span
    turn = sector + pick(odd, ONE - share, share)
    turn = pick(high == low, ZERO, turn)
    turn = turn + sixths
    turn = pick(turn < ZERO, turn + SIX, turn)
    turn = pick(turn >= SIX, turn - SIX, turn)
    turn = pick(turn >= SIX, turn - SIX, turn)
    past = turn - TWO * floor(turn * HALF)
    share = pick(past < ONE, past, TWO - past)
    return around(turn, high, low + share * span, low)


@njit(**INLINE)
def around(turn: Any, high: Any, middle: Any, low: Any) -> Any:
    """Red, green and blue of a turn of 0 to 6 sixths."""
    first, second, third, fourth, fifth = turn < ONE, turn < TWO, turn < THREE, turn < FOUR, turn < FIVE
    red = pick(first, high, pick(second, middle, pick(fourth, low, pick(fifth, middle, high))))
    green = pick(first, middle, pick(third, high, pick(fourth, middle, low)))
    blue = pick(second, low, pick(third, middle, pick(fifth, high, middle)))
    return red, green, blue


@njit(**KERNEL)
def brightness(src: Any, pixels: int, channels: int, deltas: Any, dst: Any) -> None:
    """Add its own of `deltas` to each flat image of `pixels` times `channels` values."""
    size = pixels * channels
    for image in range(fitting(src, size, deltas, dst)):
        delta = deltas[image]
        for i in range(image * size, (image + 1) * size):
            at = np.uint64(i)  # unsigned: numba would otherwise test each index for counting from the end
            dst[at] = stored(unit(src[at]) + delta, dst)


@njit(**KERNEL)
def saturation(src: Any, pixels: int, channels: int, factors: Any, dst: Any) -> None:
    """Multiply the saturation of each flat RGB image of `pixels` pixels by its own of `factors`."""
    for image in range(fitting(src, 3 * pixels, factors, dst)):
        factor = factors[image]
        for i in range(image * pixels, (image + 1) * pixels):
            at = np.uint64(3 * i)
            second, third = at + np.uint64(1), at + np.uint64(2)
            red, green, blue = saturated(unit(src[at]), unit(src[second]), unit(src[third]), factor)
            dst[at] = stored(red, dst)
            dst[second] = stored(green, dst)
            dst[third] = stored(blue, dst)


@njit(**KERNEL)
def hue(src: Any, pixels: int, channels: int, deltas: Any, dst: Any) -> None:
    """Turn the hue of each flat RGB image of `pixels` pixels by its own of `deltas`, shares of the circle."""
    for image in range(fitting(src, 3 * pixels, deltas, dst)):
        sixths = deltas[image] * SIX
        for i in range(image * pixels, (image + 1) * pixels):
            at = np.uint64(3 * i)
            second, third = at + np.uint64(1), at + np.uint64(2)
            red, green, blue = turned(unit(src[at]), unit(src[second]), unit(src[third]), sixths)
            dst[at] = stored(red, dst)
            dst[second] = stored(green, dst)
            dst[third] = stored(blue, dst)


@njit(**INLINE)
def fitting(src: Any, size: int, factors: Any, dst: Any) -> int:
    """How many images of `size` values there are room and a factor for."""
    return min(src.size, dst.size) // size if size > 0 and factors.size * size >= min(src.size, dst.size) else 0


def warm_up() -> None:
    """Compile for uint8 and for float32."""
    ones = np.ones(1, np.float32)
    ones.flags.writeable = False
    for dtype in (np.uint8, np.float32):
        src = np.zeros(3, dtype)
        src.flags.writeable = False
        for kernel in (brightness, saturation, hue):
            kernel(src, 1, 3, ones, np.zeros(3, dtype))
