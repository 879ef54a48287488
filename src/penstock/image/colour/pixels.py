"""Reference of functions on pixels: brightness, saturation, hue, HSV and grey, sharpness.

The module also has tables of 256 levels, and conversions between stored values and the float32 range from 0 to 1 of
tf.image.

`pixels` are uint8 or float32 with the channels last. The result has their dtype. The order of float32 operations is
TensorFlow's; for sharpness it is that of PIL's ImageEnhance.Sharpness.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Array = npt.NDArray[Any]
Levels = npt.NDArray[np.uint8]


PER_LEVEL = np.float32(1 / 255)  # tf.image multiplies; x / 255 would return other bits
LEVELS = np.float32(255.5)


def to_unit(pixels: npt.NDArray[Any]) -> Floats:
    """Convert uint8 to float32 from 0 to 1, like convert_image_dtype. Return float32 unchanged.

    >>> to_unit(np.array([0, 51, 255], np.uint8)).tolist()
    [0.0, 0.20000001788139343, 1.0]
    """
    return pixels.astype(np.float32) * PER_LEVEL if pixels.dtype == np.uint8 else pixels


def from_unit(values: Floats, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Convert back from 0 to 1, saturating and truncating, like convert_image_dtype. NaN becomes 0.

    >>> from_unit(np.array([-1, 0.5, 0.999, 2], np.float32), np.dtype(np.uint8)).tolist()
    [0, 127, 255, 255]
    """
    return as_levels(values * LEVELS) if dtype == np.uint8 else values


def as_levels(values: Floats) -> npt.NDArray[np.uint8]:
    """Convert floats to uint8, clipped and truncated. NaN becomes 0.

    >>> as_levels(np.array([-1, 1.9, 300], np.float32)).tolist()
    [0, 1, 255]
    """
    return np.fmin(np.fmax(values, np.float32(0)), np.float32(255)).astype(np.uint8)


STRIP = 4096  # pixels; intermediate results of a strip stay in the processor's cache


def in_strips(operation: Callable[[Array, float], Array]) -> Callable[[Array, float], Array]:
    """Wrap `operation` to run strip by strip, which takes half the time.

    Its result has the shape and type of its image.

    >>> in_strips(lambda pixels, factor: pixels * np.float32(factor))(np.ones((2, 1), np.float32), 3).tolist()
    [[3.0], [3.0]]
    """

    def whole(image: Array, factor: float) -> Array:
        pixels = image.reshape(-1, image.shape[-1])
        made = np.empty(pixels.shape, pixels.dtype)
        for at in range(0, len(pixels), STRIP):
            made[at : at + STRIP] = operation(pixels[at : at + STRIP], factor)
        return made.reshape(image.shape)

    return whole


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
        # 2.0 / 6.0 is a double in C++, and so is the sum before it is stored.
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
    """Rotate the hue of RGB pixels by `delta` of a full circle, between -1 and 1.

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
    # The sector of 6: 0 or 1 if blue is least, 4 or 3 if it is greatest, else 5 or 2.
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
        turn = np.where(turn >= 6, turn - SIX, turn)  # handles 6 itself, rotated by a full circle
        past = turn - TWO * np.floor(turn * HALF)
        share = np.where(past < 1, past, TWO - past)
        middle = low + share * span
    return from_unit(np.stack(_around(turn, high, middle, low), axis=-1), pixels.dtype)


def _around(turn: Floats, high: Floats, middle: Floats, low: Floats) -> list[Floats]:
    """Return red, green and blue for a hue of 0 to 6 sixths, from the highest, middle and lowest value."""
    past_1, before_5 = turn >= 1, turn < 5
    return [
        np.where(past_1 & before_5, np.where((turn >= 2) & (turn < 4), low, middle), high),
        np.where(past_1 & (turn < 3), high, np.where(turn < 4, middle, low)),
        np.where(turn < 2, low, np.where((turn >= 3) & before_5, high, middle)),
    ]


def larger(a: Floats, b: Floats) -> Floats:
    """Return the result of C++'s std::max."""
    return np.where(a < b, b, a)


def smaller(a: Floats, b: Floats) -> Floats:
    """Return the result of C++'s std::min."""
    return np.where(b < a, b, a)


RED, GREEN, BLUE = (np.float32(weight) for weight in (0.2989, 0.5870, 0.1140))


def hsv_of(rgb: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return hue, saturation and value of float pixels, in their own precision.

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
    """Return red, green and blue of float pixels in HSV, in their own precision.

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
    """Return the luma of uint8 or float32 RGB pixels. The last axis has length 1.

    >>> grey_of(np.array([[255, 255, 255], [255, 0, 0]], np.uint8)).ravel().tolist()
    [255, 76]
    """
    red, green, blue = np.moveaxis(to_unit(pixels), -1, 0)
    return from_unit((red * RED + green * GREEN + blue * BLUE)[..., None], pixels.dtype)


def smoothed(images: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return each inner pixel of (N, H, W, C) as (its eight neighbours + 5 times itself) / 13. The border is unchanged.

    uint8 is rounded to the nearest level. float32 adds the nine terms in order, row by row.

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
    """Blend the image with its smoothed copy by `1 - factor`, clipped to 255 or 1. Flat areas are unchanged.

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


def looked_up(images: Levels, tables: Levels) -> Levels:
    """Replace each value by its table entry. `tables` is (256,), or (N, C, 256) for images (N, H, W, C).

    >>> looked_up(np.array([0, 3], np.uint8).reshape(1, 1, 2, 1), np.arange(255, -1, -1, np.uint8)).ravel().tolist()
    [255, 252]
    """
    if tables.ndim == 1:
        return tables[images]
    count, _, _, channels = images.shape
    rows = np.arange(count)[:, None, None, None]
    return tables[rows, np.arange(channels), images]


def counted(images: Levels) -> npt.NDArray[np.int64]:
    """Return the count of each level in each channel of (N, H, W, C), as (N, C, 256).

    >>> counted(np.array([3, 3, 1], np.uint8).reshape(1, 3, 1, 1))[0, 0, :4].tolist()
    [0, 1, 0, 2]
    """
    count, _, _, channels = images.shape
    found = np.zeros((count, channels, 256), np.int64)
    for n in range(count):
        for c in range(channels):
            found[n, c] = np.bincount(images[n, :, :, c].reshape(-1), minlength=256)
    return found


def stretching(counts: npt.NDArray[np.int64]) -> Levels:
    """Return tables, from counts (..., 256), that stretch the present levels to 0 to 255, rounded as in torchvision.

    >>> stretching(np.bincount([10, 20, 30], minlength=256))[[10, 20, 30]].tolist()
    [0, 127, 255]
    """
    present = counts > 0
    low = present.argmax(axis=-1)[..., None].astype(np.float32)
    high = (255 - present[..., ::-1].argmax(axis=-1))[..., None].astype(np.float32)
    flat = high <= low
    scale = np.float32(1) / np.where(flat, np.float32(1), high - low) * np.where(flat, np.float32(1), np.float32(255))
    levels = np.arange(256, dtype=np.float32)
    values = (levels - np.where(flat, np.float32(0), low)) * scale
    return np.clip(values, 0, 255).astype(np.uint8)


def equalising(counts: npt.NDArray[np.int64]) -> Levels:
    """Return tables, from counts (..., 256), that make all levels about equally frequent, as PIL's ImageOps.equalize.

    >>> equalising(np.full(256, 7))[[0, 100, 255]].tolist()
    [0, 100, 255]
    """
    before = counts.cumsum(axis=-1) - counts
    step = (before * (counts > 0)).max(axis=-1, keepdims=True) // 255  # without the count of the highest level
    spread = (before + step // 2) // np.maximum(step, 1)
    return np.where(step == 0, np.arange(256), np.minimum(spread, 255)).astype(np.uint8)


def power_table(gamma: float, gain: float) -> Levels:
    """Return the table of `gain * x ** gamma` for x from 0 to 1.

    >>> power_table(2.0, 1.0)[[0, 128, 255]].tolist()
    [0, 64, 255]
    """
    values: npt.NDArray[Any] = to_unit(np.arange(256, dtype=np.uint8))
    return from_unit(powers(values, gamma, gain), np.dtype(np.uint8))


def powers(values: npt.NDArray[np.float32], gamma: float, gain: float) -> npt.NDArray[np.float32]:
    """Return `gain * values ** gamma`. The power is float64, so that it does not depend on the machine's math library.

    >>> powers(np.array([0.25], np.float32), 0.5, 2.0).tolist()
    [1.0]
    """
    with np.errstate(all="ignore"):
        return np.float32(gain) * np.power(values.astype(np.float64), np.float64(np.float32(gamma))).astype(np.float32)
