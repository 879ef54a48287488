"""Convert between grey, grey with alpha, RGB and RGBA the way libpng does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

RED, GREEN = 9797, 19234  # 0.299 and 0.587 in 15 bits, as libpng rounds them
BLUE = (1 << 15) - RED - GREEN


def with_channels(image: npt.NDArray[Any], channels: int) -> npt.NDArray[Any]:
    """`image` (H, W, C) with 1, 2, 3 or 4 channels in C order; 0 keeps its own. New alpha is opaque.

    >>> with_channels(np.array([[[10, 20, 30]]], np.uint8), 1).tolist()
    [[[18]]]
    """
    if channels in (0, image.shape[-1]):
        return np.ascontiguousarray(image)
    grey = image.shape[-1] < 3
    colour = image[..., :1] if grey else image[..., :3]
    if channels < 3 and not grey:
        colour = _grey(colour)
    elif channels > 2 and grey:
        colour = np.repeat(colour, 3, axis=-1)
    if channels % 2:
        return np.ascontiguousarray(colour)
    opaque = np.full((*image.shape[:-1], 1), np.iinfo(image.dtype).max, image.dtype)
    alpha = opaque if image.shape[-1] % 2 else image[..., -1:]
    return np.concatenate([colour, alpha], axis=-1)


def _grey(colour: npt.NDArray[Any]) -> npt.NDArray[Any]:
    wide = colour.astype(np.uint32)
    total = wide[..., :1] * RED + wide[..., 1:2] * GREEN + wide[..., 2:] * BLUE
    if colour.dtype == np.uint16:  # libpng rounds 16-bit values and truncates 8-bit ones
        total += 1 << 14
    return (total >> 15).astype(colour.dtype)
