"""The operations of RandAugment and TrivialAugment, and the amount of each at a magnitude."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.image.colour.adjust import adjust_sharpness
from penstock.image.colour.levels import autocontrast, equalize, posterize, solarize
from penstock.image.colour.run import look_up
from penstock.image.geometry.affine import rotate, translate
from penstock.image.geometry.projective import transform

# A factor of 1 returns the image, 0 returns black or grey, and a factor above 1 strengthens the image. The arithmetic
# is float32: `poorer + factor * (image - poorer)`, truncated. Equal values of both stay unchanged. Grey levels and
# their mean are torchvision's. `tf.image` has other definitions: `adjust_brightness`, `adjust_saturation`,
# `adjust_contrast`.


Levels = npt.NDArray[np.uint8]

_LEVELS = np.arange(256, dtype=np.float32)


def brightness(image: Levels, factor: float) -> Levels:
    """Return an image (H, W, C) blended with black.

    >>> brightness(np.array([100, 200], np.uint8).reshape(1, 2, 1), 1.5).ravel().tolist()
    [150, 255]
    """
    return _through(_LEVELS * np.float32(factor), image)


def contrast(image: Levels, factor: float) -> Levels:
    """Return an image (H, W, 1 or 3) blended with the mean of its grey levels.

    >>> contrast(np.array([100, 200], np.uint8).reshape(1, 2, 1), 0.5).ravel().tolist()
    [125, 175]
    """
    levels = grey(image) if image.shape[-1] == 3 else image
    mean = np.float32(levels.sum(dtype=np.int64) / levels.size) if levels.size else np.float32(0)
    return _through(mean + (_LEVELS - mean) * np.float32(factor), image)


def color(image: Levels, factor: float) -> Levels:
    """Return an image (H, W, 3) blended with its grey levels. An image of grey levels stays unchanged.

    >>> color(np.array([100, 100, 200], np.uint8).reshape(1, 1, 3), 0.0).ravel().tolist()
    [111, 111, 111]
    """
    if image.shape[-1] == 1:
        return image
    levels = grey(image).astype(np.float32)[..., None]
    blended = image - levels
    blended *= np.float32(factor)
    blended += levels
    return _cut(blended)


def grey(image: Levels) -> Levels:
    """Return the grey levels (H, W) of an image (H, W, 3): 0.2989 R + 0.587 G + 0.114 B.

    >>> grey(np.array([100, 100, 200], np.uint8).reshape(1, 1, 3)).tolist()
    [[111]]
    """
    red, green, blue = (image[..., channel].astype(np.float32) for channel in range(3))
    return (red * np.float32(0.2989) + green * np.float32(0.587) + blue * np.float32(0.114)).astype(np.uint8)


def _through(table: npt.NDArray[np.float32], image: Levels) -> Levels:
    """Replace each level by its entry in the table, truncated to whole levels."""
    return look_up(image[None], _cut(table))[0]


def _cut(values: npt.NDArray[np.float32]) -> Levels:
    return np.clip(values, 0, 255, out=values).astype(np.uint8)


Amount = Callable[[float, int, int], float]  # maps (share of the range from 0 to 1, height, width) to an amount


@dataclass(frozen=True, slots=True)
class Look:
    """The interpolation between pixels, and the value outside of the image."""

    interpolation: str
    fill_value: int | tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation: `apply(image, amount, look)`. An operation without an amount gets 0."""

    apply: Callable[[npt.NDArray[np.uint8], float, Look], npt.NDArray[np.uint8]]
    signed: bool = False


def _shear_x(image: Any, amount: float, look: Look) -> Any:
    return _slanted(image, [1, amount, amount / 2, 0, 1, 0, 0, 0], look)


def _shear_y(image: Any, amount: float, look: Look) -> Any:
    return _slanted(image, [1, 0, 0, amount, 1, amount / 2, 0, 0], look)


def _slanted(image: Any, numbers: list[float], look: Look) -> Any:
    """Transform about the corner of the image, which is half a pixel away from the centre of its first pixel."""
    return transform(image, numbers, look.interpolation, fill_value=look.fill_value)


def _translate_x(image: Any, amount: float, look: Look) -> Any:
    return translate(image, [int(amount), 0], look.interpolation, fill_value=look.fill_value)


def _translate_y(image: Any, amount: float, look: Look) -> Any:
    return translate(image, [0, int(amount)], look.interpolation, fill_value=look.fill_value)


def _rotate(image: Any, amount: float, look: Look) -> Any:
    return rotate(image, math.radians(amount), look.interpolation, fill_value=look.fill_value)


OPERATIONS = {
    "identity": Operation(lambda image, amount, look: image),
    "shear_x": Operation(_shear_x, signed=True),
    "shear_y": Operation(_shear_y, signed=True),
    "translate_x": Operation(_translate_x, signed=True),
    "translate_y": Operation(_translate_y, signed=True),
    "rotate": Operation(_rotate, signed=True),
    "brightness": Operation(lambda image, amount, look: brightness(image, 1 + amount), signed=True),
    "color": Operation(lambda image, amount, look: color(image, 1 + amount), signed=True),
    "contrast": Operation(lambda image, amount, look: contrast(image, 1 + amount), signed=True),
    "sharpness": Operation(lambda image, amount, look: adjust_sharpness(image, 1 + amount), signed=True),
    "posterize": Operation(lambda image, amount, look: posterize(image, int(amount))),
    "solarize": Operation(lambda image, amount, look: solarize(image, amount)),
    "autocontrast": Operation(lambda image, amount, look: autocontrast(image)),
    "equalize": Operation(lambda image, amount, look: equalize(image)),
}


def _up_to(most: float) -> Amount:
    return lambda share, height, width: most * share


def _bits(fewest: int) -> Amount:
    return lambda share, height, width: round(8 - (8 - fewest) * share)


def _nothing(share: float, height: int, width: int) -> float:
    return 0.0


def _threshold(share: float, height: int, width: int) -> float:
    return 255 * (1 - share)


_EITHER: dict[str, Amount] = {
    "identity": _nothing,
    "solarize": _threshold,
    "autocontrast": _nothing,
    "equalize": _nothing,
}
_BLENDS = ("brightness", "color", "contrast", "sharpness")

RAND: dict[str, Amount] = {
    **_EITHER,
    "shear_x": _up_to(0.3),
    "shear_y": _up_to(0.3),
    "translate_x": lambda share, height, width: 150 / 331 * width * share,
    "translate_y": lambda share, height, width: 150 / 331 * height * share,
    "rotate": _up_to(30),
    **dict.fromkeys(_BLENDS, _up_to(0.9)),
    "posterize": _bits(4),
}
TRIVIAL_WIDE: dict[str, Amount] = {
    **_EITHER,
    "shear_x": _up_to(0.99),
    "shear_y": _up_to(0.99),
    "translate_x": _up_to(32),
    "translate_y": _up_to(32),
    "rotate": _up_to(135),
    **dict.fromkeys(_BLENDS, _up_to(0.99)),
    "posterize": _bits(2),
}
