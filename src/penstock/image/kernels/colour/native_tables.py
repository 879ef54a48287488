"""Levels through tables, and levels counted: the numbers of `tables`, compiled, without the GIL."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compiled.kernel import inlined, kernel

WAYS = 4  # counts side by side: neighbouring pixels are alike, and adding twice to one place takes its time


@kernel
def look_up(src: Any, tables: Any, channels: int, pixels: int, dst: Any) -> None:
    """Replace each level of the flat `src`, images of `pixels` pixels each, by its entry in the flat `tables`.

    There is one table of 256 entries for each channel of each image, or one in all.
    """
    size = min(src.size, dst.size)
    if tables.size == 256:
        for k in range(size):
            dst[k] = tables[np.uint64(src[k])]
        return
    if pixels < 1 or channels < 1:
        return
    for plane in range(min(size // (pixels * channels), tables.size // (256 * channels)) * channels):
        begin = first(plane, channels, pixels)
        for pixel in range(pixels):
            i = np.uint64(begin + pixel * channels)
            dst[i] = tables[np.uint64(plane * 256 + src[i])]


@kernel
def count(src: Any, channels: int, pixels: int, counts: Any) -> None:
    """Add to the flat `counts` how often each level occurs in each channel of each image."""
    if pixels < 1 or channels < 1:
        return
    ways = np.empty(WAYS * 256, np.int64)
    for plane in range(min(src.size // (pixels * channels), counts.size // (256 * channels)) * channels):
        ways[:] = 0
        begin = first(plane, channels, pixels)
        for pixel in range(pixels):
            ways[np.uint64(pixel % WAYS * 256 + src[np.uint64(begin + pixel * channels)])] += 1
        for k in range(256):
            for way in range(WAYS):
                counts[plane * 256 + k] += ways[way * 256 + k]


@inlined
def first(plane: int, channels: int, pixels: int) -> int:
    """Where the values of the plane (image × channels + channel) begin."""
    return plane // channels * channels * pixels + plane % channels


def warm_up() -> None:
    """Compile for uint8, the only dtype there is."""
    src = np.zeros(1, np.uint8)
    tables = np.zeros(256, np.uint8)
    for array in (src, tables):
        array.flags.writeable = False
    look_up(src, tables, 1, 1, np.zeros(1, np.uint8))
    count(src, 1, 1, np.zeros(256, np.int64))
