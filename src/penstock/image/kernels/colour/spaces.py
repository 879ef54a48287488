"""Reference of the conversions between RGB, HSV and grey, in TensorFlow's order of float operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.image.kernels.colour.pixels import larger, smaller
from penstock.image.kernels.colour.units import from_unit, to_unit

if TYPE_CHECKING:
    import numpy.typing as npt

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
