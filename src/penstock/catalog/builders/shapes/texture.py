"""Noise that tiles hold ready: rendering a picture cuts its texture and sensor noise out of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

Plane = NDArray[np.int16]

# Tiles are larger than a picture by this much on each side: the number of places to cut from is its square.
MARGIN = 256
# Brightness is held in sixteenths of a grey level, so that faint noise and smooth gradients survive integers.
UNIT = 16


@dataclass(frozen=True)
class Tiles:
    """Textures by name and strength, and the noise of a sensor; int16 in sixteenths of a grey level, read-only."""

    textures: tuple[Plane, ...]
    sensor: Plane

    def texture(self, rng: np.random.Generator, height: int, width: int) -> Plane:
        """Cut `height` by `width` of one of the textures, at a place that `rng` chooses."""
        return cut(self.textures[int(rng.integers(len(self.textures)))], rng, height, width)


def cut(tile: Plane, rng: np.random.Generator, height: int, width: int) -> Plane:
    """A view of `height` by `width` pixels of `tile`, at a place that `rng` chooses."""
    top = int(rng.integers(tile.shape[0] - height + 1))
    left = int(rng.integers(tile.shape[1] - width + 1))
    return tile[top : top + height, left : left + width]


@cache
def tiles(height: int, width: int) -> Tiles:
    """The tiles for pictures of `height` by `width`, made once per process, always the same.

    >>> made = tiles(375, 500)
    >>> made.sensor.dtype, made.sensor.shape
    (dtype('int16'), (631, 756))
    """
    rng = np.random.Generator(np.random.Philox(key=0x5EED))
    shape = (height + MARGIN, width + MARGIN)
    kinds = [
        _octaves(rng, shape, sizes=(2, 4, 8, 16, 32)),  # plaster
        _octaves(rng, shape, sizes=(3, 6)),  # gravel
        _streaks(rng, shape, length=48),  # wood along x
        np.ascontiguousarray(_streaks(rng, shape[::-1], length=48).T),  # wood along y
        _weave(rng, shape),  # cloth
    ]
    strengths = (4.0, 8.0, 13.0)  # grey levels, standard deviation
    textures = [_plane(kind, strength) for kind in kinds for strength in strengths]
    return Tiles(tuple(textures), _plane(_smooth(rng.standard_normal(shape, np.float32), 2), 3.6))


def _plane(noise: NDArray[np.float32], strength: float) -> Plane:
    scaled = (noise - noise.mean()) * np.float32(strength * UNIT / noise.std())
    plane: Plane = np.clip(np.rint(scaled), -100 * UNIT, 100 * UNIT).astype(np.int16)
    plane.flags.writeable = False
    return plane


def _octaves(rng: np.random.Generator, shape: tuple[int, int], sizes: tuple[int, ...]) -> NDArray[np.float32]:
    """Noise of several grain sizes, the coarser the stronger: the spectrum of most natural surfaces."""
    total = np.zeros(shape, np.float32)
    for size in sizes:
        coarse = rng.standard_normal((shape[0] // size + 2, shape[1] // size + 2), np.float32)
        fine = np.repeat(np.repeat(coarse, size, axis=0), size, axis=1)[: shape[0], : shape[1]]
        total += _smooth(fine, size) * np.float32(size**0.5)
    return total


def _streaks(rng: np.random.Generator, shape: tuple[int, int], length: int) -> NDArray[np.float32]:
    grain = _box(rng.standard_normal(shape, np.float32), length, axis=1)
    return grain + np.float32(0.6) * _box(_octaves(rng, shape, sizes=(8,)), length, axis=1)


def _weave(rng: np.random.Generator, shape: tuple[int, int]) -> NDArray[np.float32]:
    """Threads over and under one another, every six pixels."""
    y, x = np.mgrid[: shape[0], : shape[1]]
    over = ((y // 3 + x // 3) % 2).astype(np.float32) - np.float32(0.5)
    threads = _smooth(over, 2)
    return threads + np.float32(0.15) * _octaves(rng, shape, sizes=(1, 5))


def _smooth(image: NDArray[np.float32], size: int) -> NDArray[np.float32]:
    return _box(_box(image, size, axis=0), size, axis=1)


def _box(image: NDArray[np.float32], size: int, axis: int) -> NDArray[np.float32]:
    """Mean of `size` neighbours along `axis`, the image taken to repeat."""
    total = image.copy()
    for step in range(1, size):
        total += np.roll(image, step, axis)
    return total / np.float32(size)
