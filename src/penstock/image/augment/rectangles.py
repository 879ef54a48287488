"""Rectangles of random area and form, as torchvision's RandomResizedCrop and RandomErasing draw them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from penstock.keys import draw, fold, uniform

if TYPE_CHECKING:
    from collections.abc import Iterator

ATTEMPTS = 10


def tried(key: int, area: int, scale: tuple[float, float], ratio: tuple[float, float]) -> Iterator[tuple[int, int]]:
    """Ten pairs of sides: the area uniform in `scale` times `area`, the first by the second log-uniform in `ratio`.

    >>> list(tried(1, 100, (1.0, 1.0), (4.0, 4.0)))[0]
    (20, 5)
    """
    low, high = math.log(ratio[0]), math.log(ratio[1])
    for attempt in range(ATTEMPTS):
        wanted = area * uniform(key, *scale, 2 * attempt)
        form = math.exp(uniform(key, low, high, 2 * attempt + 1))
        yield round(math.sqrt(wanted * form)), round(math.sqrt(wanted / form))


def placed(key: int, size: tuple[int, int], inside: tuple[int, int]) -> list[int]:
    """(top, left, height, width) of a rectangle of this size somewhere inside, every place as likely.

    >>> placed(1, (5, 7), (5, 7))
    [0, 0, 5, 7]
    """
    place = fold(key, 1)
    top, left = (draw(place, axis, inside[axis] - size[axis] + 1) for axis in (0, 1))
    return [top, left, *size]
