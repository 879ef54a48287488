"""Draws an image: one shape of a class on a textured, unevenly lit, cluttered ground, with the noise of a sensor."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.catalog.builders.shapes.outline import LABELS, Outline, blob, outline, placed
from penstock.catalog.builders.shapes.texture import UNIT, Tiles, cut, tiles
from penstock.opencv import opencv

HEIGHT, WIDTH = 375, 500
# Smooth parts (ground, light, clutter out of focus) are drawn smaller by this factor, with 16 times fewer pixels.
COARSE = 4
# fillPoly takes corners as integers with this many fractional bits.
POINT_BITS = 4


def render(index: int, seed: int = 0) -> tuple[NDArray[np.uint8], int]:
    """Return image number `index` and its label: uint8 (375, 500, 3) RGB and an int below 4.

    The same `index` and `seed` give the same image, in any order and thread. Needs OpenCV.

    >>> image, label = render(2)
    >>> image.shape, image.dtype, LABELS[label]
    ((375, 500, 3), dtype('uint8'), 'triangle')
    """
    cv2 = opencv()
    rng = np.random.Generator(np.random.Philox(key=[seed, index]))
    label = index % len(LABELS)
    stock = tiles(HEIGHT, WIDTH)

    radius = rng.uniform(70, 120)
    centre = (rng.uniform(radius, WIDTH - radius), rng.uniform(radius, HEIGHT - radius))
    corners = placed(outline(label, rng), centre, radius, rng.uniform(0, 2 * np.pi))

    ground = _ground(cv2, rng)
    for _ in range(int(rng.integers(4, 9))):
        _clutter(cv2, rng, ground)
    _shadow(cv2, rng, ground, corners)
    fine = cv2.resize(ground * np.float32(UNIT), (WIDTH, HEIGHT), interpolation=cv2.INTER_LINEAR)
    planes = np.empty((3, HEIGHT, WIDTH), np.int16)
    np.copyto(planes, np.moveaxis(fine, 2, 0), casting="unsafe")
    planes += stock.texture(rng, HEIGHT, WIDTH)
    _shape(cv2, rng, stock, planes, corners)
    return _expose(cv2, rng, stock, planes), label


def _colour(rng: np.random.Generator, least: float, most: float, vivid: float) -> NDArray[np.float32]:
    """Return a random colour of brightness `least` to `most`. `vivid` limits the difference of its channels."""
    tint = rng.uniform(-vivid, vivid, 3)
    return np.clip(rng.uniform(least, most) + tint - tint.mean(), 8, 247).astype(np.float32)


def _paint(rng: np.random.Generator) -> NDArray[np.float32]:
    """Return a random vivid colour, unlike any ground: one channel is high, one low, one between."""
    low, high = rng.uniform(15, 75), rng.uniform(190, 245)
    return rng.permutation([low, rng.uniform(low, high), high]).astype(np.float32)


def _ground(cv2: Any, rng: np.random.Generator) -> NDArray[np.float32]:
    """Return two patchy surfaces that meet along a line, lit from one side, as small float32 RGB."""
    height, width = HEIGHT // COARSE + 1, WIDTH // COARSE
    y, x = np.mgrid[:height, :width].astype(np.float32)
    y, x = y / height - np.float32(0.5), x / width - np.float32(0.5)
    turn = rng.uniform(0, 2 * np.pi)
    along = np.float32(np.cos(turn)) * x + np.float32(np.sin(turn)) * y
    edge = np.clip((along - np.float32(rng.uniform(-0.3, 0.3))) * np.float32(rng.uniform(3, 60)) + 0.5, 0, 1)
    patches = cv2.resize(
        rng.standard_normal((int(rng.integers(3, 7)), int(rng.integers(4, 9)), 3), np.float32),
        (width, height),
        interpolation=cv2.INTER_CUBIC,
    )
    turn = rng.uniform(0, 2 * np.pi)
    light = 1 + np.float32(rng.uniform(0.15, 0.7)) * (np.float32(np.cos(turn)) * x + np.float32(np.sin(turn)) * y)
    light -= np.float32(rng.uniform(0.1, 0.6)) * (x * x + y * y)
    first, second = _colour(rng, 60, 190, 20), _colour(rng, 60, 190, 20)
    ground = first + edge[..., None] * (second - first)
    ground += patches * np.float32(rng.uniform(2, 10))
    ground *= light[..., None]
    return np.ascontiguousarray(ground, np.float32)


def _mask(cv2: Any, corners: Outline, shape: tuple[int, int], softness: float) -> NDArray[np.float32]:
    """Return the share of each pixel that the outline covers, with an edge blurred over about `softness` pixels."""
    mask = np.zeros(shape, np.uint8)
    points = np.rint(corners * (1 << POINT_BITS)).astype(np.int32)
    cv2.fillPoly(mask, [points], 255, lineType=cv2.LINE_AA, shift=POINT_BITS)
    blurred: NDArray[np.uint8] = cv2.GaussianBlur(mask, (0, 0), softness)
    return blurred.astype(np.float32) * np.float32(1 / 255)


def _clutter(cv2: Any, rng: np.random.Generator, ground: NDArray[np.float32]) -> None:
    """Draw an object out of focus onto the ground."""
    height, width = ground.shape[:2]
    centre = (rng.uniform(0, width), rng.uniform(0, height))
    corners = placed(blob(rng), centre, rng.uniform(4, 22), rng.uniform(0, 2 * np.pi))
    softness, strength, colour = rng.uniform(1.5, 4.0), rng.uniform(0.3, 0.9), _colour(rng, 40, 210, 28)
    left, top, right, bottom = _box(corners, (height, width), margin=3 * softness + 1)
    if left < right and top < bottom:
        box = ground[top:bottom, left:right]
        mask = _mask(cv2, corners - np.array([left, top], np.float32), box.shape[:2], softness)
        box += (mask * np.float32(strength))[..., None] * (colour - box)


def _box(corners: Outline, shape: tuple[int, int], margin: float) -> tuple[int, int, int, int]:
    """Return left, top, right and bottom of `corners` with a margin, within an image of `shape`."""
    left, top = np.maximum(np.floor(corners.min(axis=0) - margin), 0)
    right, bottom = np.minimum(np.ceil(corners.max(axis=0) + margin) + 1, (shape[1], shape[0]))
    return int(left), int(top), int(right), int(bottom)


def _shadow(cv2: Any, rng: np.random.Generator, ground: NDArray[np.float32], corners: Outline) -> None:
    """Darken the ground beside the shape."""
    offset = rng.uniform(-14, 14, 2).astype(np.float32)
    mask = _mask(cv2, (corners + offset) / np.float32(COARSE), ground.shape[:2], rng.uniform(1.0, 2.5))
    ground *= 1 - mask[..., None] * np.float32(rng.uniform(0.2, 0.5))


def _shape(cv2: Any, rng: np.random.Generator, stock: Tiles, planes: NDArray[np.int16], corners: Outline) -> None:
    """Draw the shape onto the planes, with its own colour, texture and shading and a soft edge."""
    left, top, right, bottom = _box(corners, (HEIGHT, WIDTH), margin=6)
    box = planes[:, top:bottom, left:right]
    height, width = box.shape[1:]
    mask = _mask(cv2, corners - np.array([left, top], np.float32), (height, width), rng.uniform(0.7, 1.8))
    colour = _paint(rng)
    slope_x, slope_y = rng.uniform(-0.28, 0.28, 2).astype(np.float32)
    shading = 1 + slope_x * np.linspace(-1, 1, width, dtype=np.float32)
    shading = shading + (slope_y * np.linspace(-1, 1, height, dtype=np.float32))[:, None]
    texture = stock.texture(rng, height, width)
    for channel in range(3):
        fill = shading * np.float32(colour[channel] * UNIT) + texture
        fill -= box[channel]
        fill *= mask
        box[channel] += fill.astype(np.int16)


def _expose(cv2: Any, rng: np.random.Generator, stock: Tiles, planes: NDArray[np.int16]) -> NDArray[np.uint8]:
    """Add the noise of the sensor and reduce to 8 bits. Each channel gets noise from another place."""
    gain = int(rng.integers(2, 6))
    bytes_ = []
    for plane in planes:
        noise = cut(stock.sensor, rng, HEIGHT, WIDTH)
        plane += (noise * np.int16(gain)) >> 2
        np.clip(plane, 0, 256 * UNIT - 1, out=plane)
        bytes_.append((plane >> 4).astype(np.uint8))
    return cv2.merge(bytes_)
