"""Definition of what concerns pixels: brightness, saturation, hue, HSV and grey, and sharpness.

`pixels` are uint8 or float32 with the channels last; the result has their dtype. The order of float32 operations is
TensorFlow's, of sharpness PIL's ImageEnhance.Sharpness.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.image.colour.units import as_levels, from_unit, to_unit

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float32]


ZERO, HALF, ONE, TWO, THREE, FOUR, FIVE, SIX = (np.float32(value) for value in (0, 0.5, 1, 2, 3, 4, 5, 6))


def brightness(pixels: npt.NDArray[Any], delta: float) -> npt.NDArray[Any]:
    """Add `delta` to every value.

    >>> brightness(np.array([0, 100, 255], np.uint8), 0.1).tolist()
    [25, 125, 255]
    """
    return from_unit(to_unit(pixels) + np.float32(delta), pixels.dtype)


def saturation(pixels: npt.NDArray[Any], factor: float) -> npt.NDArray[Any]:
    """Multiply the saturation of RGB pixels by `factor`, clipped to 0 to 1, by way of HSV.

    >>> saturation(np.array([[200, 100, 50]], np.uint8), 0.5).tolist()
    [[200, 150, 125]]
    """
    red, green, blue = np.ascontiguousarray(np.moveaxis(to_unit(pixels), -1, 0))
    value = larger(larger(red, green), blue)
    span = value - smaller(smaller(red, green), blue)
    with np.errstate(all="ignore"):
        share = np.where(value > 0, span / value, ZERO)
        norm = ONE / (SIX * span)
        is_red, is_green = red == value, green == value
        turn = norm * np.where(is_red, green - blue, np.where(is_green, blue - red, red - green))
        # In C++, 2.0 / 6.0 is a double, and so is the sum before it is stored.
        moved = turn.astype(np.float64) + np.where(is_green, 2.0 / 6.0, 4.0 / 6.0)
        turn = np.where(is_red, turn, moved.astype(np.float32))
        turn = np.where(np.isnan(turn), ZERO, turn)  # grey
        turn = np.where(turn < 0, turn + ONE, turn)
        share = share * np.float32(factor)
        share = np.where(share > 0, share, ZERO)
        share = np.where(share < 1, share, ONE)
        chroma = share * value
        rest = value - chroma
        turn = turn * SIX
        past = turn - TWO * np.floor(turn * HALF)
        second = chroma * (ONE - np.abs(past - ONE))
        mixed = [part + rest for part in _around(turn, chroma, second, np.zeros_like(chroma))]
    return from_unit(np.stack(mixed, axis=-1), pixels.dtype)


def hue(pixels: npt.NDArray[Any], delta: float) -> npt.NDArray[Any]:
    """Turn the hue of RGB pixels by `delta` of a full circle, between -1 and 1.

    >>> hue(np.array([[200, 100, 50]], np.uint8), 1 / 3).tolist()
    [[50, 200, 100]]
    """
    red, green, blue = np.ascontiguousarray(np.moveaxis(to_unit(pixels), -1, 0))
    rising = red < green
    low, high = smaller(red, green), larger(red, green)
    below, above = blue < low, high < blue
    middle = np.where(below, low, np.where(above, high, blue))
    low, high = np.where(below, blue, low), np.where(above, blue, high)
    span = high - low
    # The sector of 6: 0 or 1 where blue is least, 4 or 3 where it is most, else 5 or 2.
    step = rising.astype(np.float32)
    sector = np.where(below, step, np.where(above, FOUR - step, FIVE - THREE * step))
    odd = rising == (below | above)
    with np.errstate(all="ignore"):
        share = (middle - low) / span
        turn = sector + np.where(odd, ONE - share, share)
        turn = np.where(high == low, ZERO, turn)
        turn = turn + np.float32(delta) * SIX
        turn = np.where(turn < 0, turn + SIX, turn)
        turn = np.where(turn >= 6, turn - SIX, turn)
        turn = np.where(turn >= 6, turn - SIX, turn)  # 6 itself, turned by a full circle
        past = turn - TWO * np.floor(turn * HALF)
        share = np.where(past < 1, past, TWO - past)
        middle = low + share * span
    return from_unit(np.stack(_around(turn, high, middle, low), axis=-1), pixels.dtype)


def _around(turn: Floats, high: Floats, middle: Floats, low: Floats) -> list[Floats]:
    """Red, green and blue of a turn of 0 to 6 sixths: which of them is highest, which lies between."""
    past_1, before_5 = turn >= 1, turn < 5
    return [
        np.where(past_1 & before_5, np.where((turn >= 2) & (turn < 4), low, middle), high),
        np.where(past_1 & (turn < 3), high, np.where(turn < 4, middle, low)),
        np.where(turn < 2, low, np.where((turn >= 3) & before_5, high, middle)),
    ]


def larger(a: Floats, b: Floats) -> Floats:
    """C++'s std::max."""
    return np.where(a < b, b, a)


def smaller(a: Floats, b: Floats) -> Floats:
    """C++'s std::min."""
    return np.where(b < a, b, a)


RED, GREEN, BLUE = (np.float32(weight) for weight in (0.2989, 0.5870, 0.1140))


def hsv_of(rgb: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Hue, saturation and value of float pixels, in their own precision.

    >>> hsv_of(np.array([[0.5, 0.25, 0.25], [0.25, 0.25, 0.25]], np.float32)).tolist()
    [[0.0, 0.5, 0.5], [0.0, 0.0, 0.25]]
    """
    one, two, four, six, zero = rgb.dtype.type([1, 2, 4, 6, 0])
    red, green, blue = np.moveaxis(rgb, -1, 0)
    value = larger(larger(red, green), blue)
    span = value - smaller(smaller(red, green), blue)
    with np.errstate(all="ignore"):
        share = np.where(value > zero, span / value, zero)
        norm = (one / span) * (one / six)
        hue = np.where(
            red == value,
            norm * (green - blue),
            np.where(green == value, norm * (blue - red) + two / six, norm * (red - green) + four / six),
        )
    hue = np.where(span > zero, hue, zero)
    hue = np.where(hue < zero, hue + one, hue)
    return np.stack([hue, share, value], axis=-1)


def rgb_of(hsv: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Red, green and blue of float pixels in HSV, in their own precision.

    >>> rgb_of(np.array([[0.0, 0.5, 0.5]], np.float32)).tolist()
    [[0.5, 0.25, 0.25]]
    """
    zero, one, two, three, four, six = hsv.dtype.type([0, 1, 2, 3, 4, 6])
    hue, share, value = np.moveaxis(hsv, -1, 0)
    turn = hue * six
    rest = one - share
    shares = np.abs(turn - three) - one, two - np.abs(turn - two), two - np.abs(turn - four)

    def clipped(part: npt.NDArray[Any]) -> npt.NDArray[Any]:
        above = np.where(part > zero, part, zero)
        return np.where(above < one, above, one)

    return np.stack([(rest + share * clipped(part)) * value for part in shares], axis=-1)


def grey_of(pixels: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The luma of uint8 or float32 RGB pixels, their last axis one long.

    >>> grey_of(np.array([[255, 255, 255], [255, 0, 0]], np.uint8)).ravel().tolist()
    [255, 76]
    """
    red, green, blue = np.moveaxis(to_unit(pixels), -1, 0)
    return from_unit((red * RED + green * GREEN + blue * BLUE)[..., None], pixels.dtype)


def smoothed(images: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Each inner pixel of (N, H, W, C) as (its eight neighbours + 5 times itself) / 13; the border stays.

    uint8 is rounded to the nearest level. float32 is added up row by row, the nine terms in order.

    >>> smoothed(np.array([0, 0, 0, 0, 13, 0, 0, 0, 0], np.uint8).reshape(1, 3, 3, 1)).ravel()[4]
    np.uint8(5)
    """
    result = images.copy()
    height, width = images.shape[1:3]
    if height < 3 or width < 3:
        return result
    whole = images.dtype == np.uint8
    wide: npt.NDArray[Any] = images.astype(np.int64 if whole else np.float32)
    total = np.zeros_like(wide[:, 1:-1, 1:-1])
    for i in range(3):
        for j in range(3):
            part = wide[:, i : height - 2 + i, j : width - 2 + j]
            total = total + (part * wide.dtype.type(5) if i == j == 1 else part)
    result[:, 1:-1, 1:-1] = (2 * total + 13) // 26 if whole else total / np.float32(13)
    return result


def sharpened(images: npt.NDArray[Any], factor: float) -> npt.NDArray[Any]:
    """The image moved `1 - factor` times the way to its smoothed self, clipped to 255 or 1: what is flat stays.

    >>> sharpened(np.array([0, 0, 0, 0, 13, 0, 0, 0, 0], np.uint8).reshape(1, 3, 3, 1), 2.0).ravel()[4]
    np.uint8(21)
    """
    if min(images.shape[1:3]) < 3:
        return images.copy()
    own = images.astype(np.float32)
    mixed = own + np.float32(1 - factor) * (smoothed(images).astype(np.float32) - own)
    if images.dtype == np.uint8:
        return as_levels(mixed)
    above = np.where(mixed > 0, mixed, np.float32(0))
    return np.where(above < 1, above, np.float32(1))
