"""Conversions between grey, grey with alpha, RGB and RGBA, as in libpng.

A PNG that states its gamma becomes grey in linear light, with libpng's tables.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

RED, GREEN = 9797, 19234  # 0.299 and 0.587 in 15 bits, as libpng rounds them
BLUE = (1 << 15) - RED - GREEN


def with_channels(image: npt.NDArray[Any], channels: int) -> npt.NDArray[Any]:
    """Return `image` (H, W, C) with 1, 2, 3 or 4 channels in C order; 0 keeps its channels. New alpha is opaque.

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


UNIT = 100_000
LOWEST, HIGHEST = 16, 625_000_000  # limits of the gamma that libpng accepts
INSIGNIFICANT = 5_000  # a gamma this close to 1 is ignored


def grey_in_linear_light(colour: npt.NDArray[Any], gamma: int, shift: int = 0, *, narrow: bool = True) -> Any:
    """Return grey (..., 1) of `colour` (..., 3), uint8 or uint16.

    The lowest `shift` of 16 bits are ignored. `narrow` is True if the result is later cut to 8 bits.

    >>> grey_in_linear_light(np.array([[[0, 255, 0]]], np.uint8), 45455).tolist()
    [[[200]]]
    """
    wide = colour.dtype == np.uint16
    to_linear, from_linear = _tables(gamma, shift, wide=wide)
    red, green, blue = (to_linear[colour[..., c : c + 1] >> shift].astype(np.uint32) for c in range(3))
    mixed = from_linear[(red * RED + green * GREEN + blue * BLUE + (1 << 14)) >> 15 >> shift]
    same = (colour[..., :1] == colour[..., 1:2]) & (colour[..., :1] == colour[..., 2:])
    kept = _rounded(colour[..., :1], gamma, shift, narrow=narrow) if wide else colour[..., :1]
    return np.where(same, kept, mixed).astype(colour.dtype)


def _rounded(grey: npt.NDArray[np.uint16], gamma: int, shift: int, *, narrow: bool) -> npt.NDArray[Any]:
    """Return the high bits of grey values, rounded to the nearest 8 bits if no more are needed."""
    top = (1 << (16 - shift)) - 1
    found = (grey >> shift).astype(np.uint32)
    if not narrow:
        return (found * 65535 + (1 << (15 - shift))) // top if shift else found
    exponent = int(gamma * reciprocal(gamma) * 1e-5 + 0.5) * 1e-5
    middles = np.floor(65535 * ((np.arange(255) * 257 + 128) / 65535) ** exponent + 0.5).astype(np.uint32)
    return np.searchsorted((middles * top + 32768) // 65535 + 1, found, side="right") * 257


@lru_cache(8)
def _tables(gamma: int, shift: int, *, wide: bool) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    top = 65535 if wide else 255
    entries = np.arange(1 << (16 - shift if wide else 8)) / ((1 << (16 - shift if wide else 8)) - 1)

    def table(exponent: int) -> npt.NDArray[Any]:
        return np.floor(top * entries ** (exponent * 1e-5) + 0.5).astype(np.uint16)

    inverse = reciprocal(gamma)
    return table(inverse), table(reciprocal(inverse))


def reciprocal(gamma: int) -> int:
    """Return 1 / gamma in units of 1/100000, rounded.

    >>> reciprocal(45455)
    219998
    """
    return int(1e10 / gamma + 0.5)


def is_significant(gamma: int) -> bool:
    """Return True if libpng respects this gamma; 0 means no gamma.

    >>> is_significant(45455), is_significant(97_000), is_significant(0)
    (True, False, False)
    """
    return LOWEST <= gamma <= HIGHEST and abs(gamma - UNIT) > INSIGNIFICANT
