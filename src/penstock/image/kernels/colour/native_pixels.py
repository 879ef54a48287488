"""Brightness, saturation and hue, compiled: the numbers of `pixels`, bit for bit, without the GIL.

Written without branches, so that LLVM makes vectors of it: a branch, or a division that may raise, costs a factor of
twenty here. No fast-math flag: these are the same operations in the same order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compiled.kernel import inlined, kernel
from penstock.image.kernels.colour.native_units import clipped, stored, unit
from penstock.image.kernels.floats import FIVE, FOUR, HALF, ONE, SIX, THREE, TWO, ZERO
from penstock.image.kernels.instructions import floor, pick


@inlined
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
    share = clipped(share * factor, ONE)
    chroma = share * value
    rest = value - chroma
    turn = turn * SIX
    past = turn - TWO * floor(turn * HALF)
    second = chroma * (ONE - abs(past - ONE))
    red, green, blue = around(turn, chroma, second, ZERO)
    return red + rest, green + rest, blue + rest


@inlined
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


@inlined
def around(turn: Any, high: Any, middle: Any, low: Any) -> Any:
    """Red, green and blue of a turn of 0 to 6 sixths."""
    first, second, third, fourth, fifth = turn < ONE, turn < TWO, turn < THREE, turn < FOUR, turn < FIVE
    red = pick(first, high, pick(second, middle, pick(fourth, low, pick(fifth, middle, high))))
    green = pick(first, middle, pick(third, high, pick(fourth, middle, low)))
    blue = pick(second, low, pick(third, middle, pick(fifth, high, middle)))
    return red, green, blue


@kernel
def brightness(src: Any, pixels: int, channels: int, deltas: Any, dst: Any) -> None:
    """Add its own of `deltas` to each flat image of `pixels` times `channels` values."""
    size = pixels * channels
    for image in range(fitting(src, size, deltas, dst)):
        delta = deltas[image]
        for i in range(image * size, (image + 1) * size):
            at = np.uint64(i)  # unsigned: numba would otherwise test each index for counting from the end
            dst[at] = stored(unit(src[at]) + delta, dst)


@kernel
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


@kernel
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


@inlined
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
        for change in (brightness, saturation, hue):
            change(src, 1, 3, ones, np.zeros(3, dtype))
