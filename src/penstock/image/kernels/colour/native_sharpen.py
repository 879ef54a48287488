"""Sharpening, compiled: the numbers of `sharpen`, bit for bit, without the GIL."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.core.extending import overload

from penstock.compiled.kernel import INLINED, inlined, kernel
from penstock.image.kernels.colour.native_units import clipped, level
from penstock.image.kernels.floats import FIVE, HALF, ONE, ZERO

THIRTEEN = np.float32(13)


def average(total: Any, like: Any) -> Any:
    """A thirteenth of `total`; of levels the nearest level, which the error of float32 is too small to change."""


@overload(average, jit_options=INLINED, strict=False)
def _average(total: Any, like: Any) -> Any:
    if like.dtype == types.uint8:
        return lambda total, like: np.float32(np.int32(total / THIRTEEN + HALF))
    return lambda total, like: total / THIRTEEN


def stored(value: Any, like: Any) -> Any:
    """A float32 as it is stored in an array like `like`: clipped to its range, a level truncated."""


@overload(stored, jit_options=INLINED, strict=False)
def _stored(value: Any, like: Any) -> Any:
    if like.dtype == types.uint8:
        return lambda value, like: level(value)
    return lambda value, like: clipped(value, ONE)


@inlined
def blend_plain(src: Any, begin: int, end: int, other: Any, dst: Any) -> None:
    """The border, whose smoothed self is itself."""
    for i in range(begin, end):
        value = np.float32(src[np.uint64(i)])
        dst[np.uint64(i)] = stored(value + other * (value - value), dst)


@kernel
def sharpen(src: Any, height: int, width: int, channels: int, other: Any, dst: Any) -> None:
    """Each flat image moved `other` times the way to its smoothed self; images are at least 3 x 3."""
    row = width * channels
    size = height * row
    if height < 3 or width < 3 or channels < 1:
        return
    for line in range(min(src.size, dst.size) // size * height):
        begin = line * row
        if line % height == 0 or line % height == height - 1:
            blend_plain(src, begin, begin + row, other, dst)
            continue
        blend_plain(src, begin, begin + channels, other, dst)
        for i in range(begin + channels, begin + row - channels):
            total = ZERO
            for up in range(-1, 2):
                at = i + up * row
                centre = np.float32(src[np.uint64(at)])
                total = total + np.float32(src[np.uint64(at - channels)])
                total = total + (centre * FIVE if up == 0 else centre)
                total = total + np.float32(src[np.uint64(at + channels)])
            value = np.float32(src[np.uint64(i)])
            dst[np.uint64(i)] = stored(value + other * (average(total, src) - value), dst)
        blend_plain(src, begin + row - channels, begin + row, other, dst)


def warm_up() -> None:
    """Compile for uint8 and for float32."""
    for dtype in (np.uint8, np.float32):
        src = np.zeros(9, dtype)
        src.flags.writeable = False
        sharpen(src, 3, 3, 1, ZERO, np.zeros(9, dtype))
