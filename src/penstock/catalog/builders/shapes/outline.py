"""Outlines: the shapes of the classes before their position, size and rotation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Outline = NDArray[np.float32]

LABELS = ("circle", "square", "triangle", "star")


def outline(label: int, rng: np.random.Generator) -> Outline:
    """Return the corners of a shape of class `label` around the origin, radius about 1; shape (corners, 2), float32.

    Circles are squeezed and squares have rounded corners, so that the two resemble each other. A count of bright pixels
    cannot distinguish them.
    """
    return _MAKERS[label](rng)


def _superellipse(power: float, squeeze: float) -> Outline:
    """Return |x|^power + |y/squeeze|^power = 1: a circle for power 2, closer to a square for larger powers."""
    angle = np.linspace(0, 2 * np.pi, 96, endpoint=False)
    x, y = np.cos(angle), np.sin(angle)
    points = np.stack([np.sign(x) * np.abs(x) ** (2 / power), squeeze * np.sign(y) * np.abs(y) ** (2 / power)], axis=1)
    return points.astype(np.float32)


def _circle(rng: np.random.Generator) -> Outline:
    return _superellipse(rng.uniform(1.9, 2.2), rng.uniform(0.82, 1.0))


def _square(rng: np.random.Generator) -> Outline:
    return _superellipse(rng.uniform(4.5, 12.0), rng.uniform(0.82, 1.0)) * np.float32(0.88)


def _triangle(rng: np.random.Generator) -> Outline:
    angle = np.deg2rad([90.0, 210.0, 330.0]) + rng.uniform(-0.16, 0.16, 3)
    return np.float32(1.15) * np.stack([np.cos(angle), np.sin(angle)], axis=1).astype(np.float32)


def _star(rng: np.random.Generator) -> Outline:
    points = int(rng.integers(5, 7))
    angle = np.arange(2 * points) * (np.pi / points)
    radius = np.where(np.arange(2 * points) % 2, rng.uniform(0.42, 0.58), 1.15)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).astype(np.float32)


def blob(rng: np.random.Generator) -> Outline:
    """Return a rounded shape of no class, a lump or a rod, around the origin, radius about 1."""
    angle = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    if rng.random() < 0.3:
        return np.stack([np.cos(angle), rng.uniform(0.1, 0.25) * np.sin(angle)], axis=1).astype(np.float32)
    radius = np.ones(40)
    for waves in (2, 3, 4):
        radius += rng.uniform(0, 0.5 / waves) * np.cos(waves * angle + rng.uniform(0, 2 * np.pi))
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).astype(np.float32)


def placed(points: Outline, centre: tuple[float, float], radius: float, turn: float) -> Outline:
    """Return `points` rotated by `turn` radians, scaled to `radius` and moved to `centre` (x, y), in pixels."""
    c, s = np.cos(turn), np.sin(turn)
    x, y = points[:, 0], points[:, 1]
    return np.stack([centre[0] + radius * (c * x - s * y), centre[1] + radius * (s * x + c * y)], 1).astype(np.float32)


_MAKERS: tuple[Callable[[np.random.Generator], Outline], ...] = (_circle, _square, _triangle, _star)
