"""Tiles of precomputed noise. An image gets its texture and sensor noise from parts of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

Plane = NDArray[np.int16]

# Tiles are larger than an image by this many pixels per axis. The number of possible parts is the square of it.
MARGIN = 256
# Brightness is stored in sixteenths of a grey level, so that integers can represent faint noise and gradients.
UNIT = 16


@dataclass(frozen=True)
class Tiles:
    """Textures of several kinds and strengths, and sensor noise. Read-only int16 in sixteenths of a grey level."""

    textures: tuple[Plane, ...]
    sensor: Plane

    def texture(self, rng: np.random.Generator, height: int, width: int) -> Plane:
        """Return a random part of a random texture, `height` by `width` pixels."""
        return cut(self.textures[int(rng.integers(len(self.textures)))], rng, height, width)


def cut(tile: Plane, rng: np.random.Generator, height: int, width: int) -> Plane:
    """Return a view of `height` by `width` pixels of `tile`, at a random place."""
    top = int(rng.integers(tile.shape[0] - height + 1))
    left = int(rng.integers(tile.shape[1] - width + 1))
    return tile[top : top + height, left : left + width]


@cache
def tiles(height: int, width: int) -> Tiles:
    """Return the tiles for images of `height` by `width`. They are made once per process and always the same.

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
    """Return noise of several grain sizes. Coarse grains are stronger, as on most natural surfaces."""
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
    """Return woven threads with a period of six pixels."""
    y, x = np.mgrid[: shape[0], : shape[1]]
    over = ((y // 3 + x // 3) % 2).astype(np.float32) - np.float32(0.5)
    threads = _smooth(over, 2)
    return threads + np.float32(0.15) * _octaves(rng, shape, sizes=(1, 5))


def _smooth(image: NDArray[np.float32], size: int) -> NDArray[np.float32]:
    return _box(_box(image, size, axis=0), size, axis=1)


def _box(image: NDArray[np.float32], size: int, axis: int) -> NDArray[np.float32]:
    """Return the mean of `size` neighbours along `axis`, as if the image repeated."""
    total = image.copy()
    for step in range(1, size):
        total += np.roll(image, step, axis)
    return total / np.float32(size)
