"""Brightness, colour and contrast of uint8 images as blends with a poorer image: PIL's ImageEnhance.

A factor of 1 gives the image, 0 black or grey alone, and more than 1 leads away from it. The arithmetic is float32:
`poorer + factor * (image - poorer)`, which leaves alone what both have; fractions are cut off. Grey levels and their
mean are torchvision's. `tf.image` has other definitions: `adjust_brightness`, `adjust_saturation`, `adjust_contrast`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.image.colour.run import look_up

if TYPE_CHECKING:
    import numpy.typing as npt

    Levels = npt.NDArray[np.uint8]

_LEVELS = np.arange(256, dtype=np.float32)


def brightness(image: Levels, factor: float) -> Levels:
    """An image (H, W, C) blended with black.

    >>> brightness(np.array([100, 200], np.uint8).reshape(1, 2, 1), 1.5).ravel().tolist()
    [150, 255]
    """
    return _through(_LEVELS * np.float32(factor), image)


def contrast(image: Levels, factor: float) -> Levels:
    """An image (H, W, 1 or 3) blended with the mean of its grey levels.

    >>> contrast(np.array([100, 200], np.uint8).reshape(1, 2, 1), 0.5).ravel().tolist()
    [125, 175]
    """
    levels = grey(image) if image.shape[-1] == 3 else image
    mean = np.float32(levels.sum(dtype=np.int64) / levels.size) if levels.size else np.float32(0)
    return _through(mean + (_LEVELS - mean) * np.float32(factor), image)


def color(image: Levels, factor: float) -> Levels:
    """An image (H, W, 3) blended with its grey levels; one of grey levels stays.

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
    """The grey levels of an image (H, W, 3), (H, W): 0.2989 R + 0.587 G + 0.114 B.

    >>> grey(np.array([100, 100, 200], np.uint8).reshape(1, 1, 3)).tolist()
    [[111]]
    """
    red, green, blue = (image[..., channel].astype(np.float32) for channel in range(3))
    found: Levels = (red * np.float32(0.2989) + green * np.float32(0.587) + blue * np.float32(0.114)).astype(np.uint8)
    return found


def _through(table: npt.NDArray[np.float32], image: Levels) -> Levels:
    """Each level replaced by its entry, cut to whole levels."""
    found: Levels = look_up(image[None], _cut(table))[0]
    return found


def _cut(values: npt.NDArray[np.float32]) -> Levels:
    return np.clip(values, 0, 255, out=values).astype(np.uint8)
