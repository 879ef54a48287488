"""Pillow's affine and perspective transforms of images with 8 bits, bit for bit, with results by a table.

Pillow steps through affine transforms without interpolation in numbers of 16.16 bits, if all of them fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import InvalidArgumentError
from penstock.native.library import Kernels

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Doubles = npt.NDArray[np.float64]

NEAREST, BILINEAR, BICUBIC = 0, 2, 3  # Pillow's numbers
FIXED, STEPPED, EXACT = range(3)  # ways to compute the points
_NATIVE = Kernels("penstock.image.geometry.pillow_native")


def warp(
    image: npt.NDArray[np.uint8],
    matrix: Sequence[float],
    kind: int,
    fill: npt.NDArray[np.uint8],
    table: npt.NDArray[Any],
    out: npt.NDArray[Any],
    *,
    planes: bool,
) -> None:
    """Write `table[channel, value]` for the transformed image to `out`.

    >>> out = np.empty((1, 2, 1), np.uint8)
    >>> identity = np.arange(256, dtype=np.uint8)[None]
    >>> image, fill = np.array([[[5], [6]]], np.uint8), np.zeros(1, np.uint8)
    >>> warp(image, (1, 0, 1, 0, 1, 0), NEAREST, fill, identity, out, planes=False)
    >>> out.ravel().tolist()
    [6, 0]

    Args:
        image: (height, width, channels) uint8.
        matrix: 6 numbers of an affine, or 8 of a perspective transform: from places of `out` to places of `image`.
        kind: NEAREST, BILINEAR or BICUBIC.
        fill: (channels,) pixel outside of the image.
        table: (channels, 256) uint8 or float32.
        out: (height, width, channels), or (channels, height, width) with `planes`, of the table's dtype.
        planes: The order of the axes of `out`.

    Raises:
        InvalidArgumentError: If the arrays do not fit.
    """
    rows, columns = out.shape[1:] if planes else out.shape[:2]
    a = np.array([*matrix, 0.0, 0.0][:8], np.float64)
    way = EXACT if kind != NEAREST or len(matrix) == 8 else _way(a, rows, columns)
    native = _NATIVE.loaded()
    if native is None:
        x, y = _points(a, way, rows, columns)
        found = table[np.arange(image.shape[2]), _warped(image, x, y, kind, fill)]
        out[...] = found.transpose(2, 0, 1) if planes else found
        return
    flat, shape = np.ascontiguousarray(image).reshape(-1), np.array(image.shape, np.int64)
    if native.warp(flat, shape, a, way, kind, fill, table, planes, out):
        message = f"Image {image.shape}, fill {fill.shape}, table {table.shape} and result {out.shape} do not fit."
        raise InvalidArgumentError(message)


def _way(a: Doubles, rows: int, columns: int) -> int:
    corners = [(0, 0), (columns, rows), (0, rows), (columns, 0)]
    places = [place for x, y in corners for place in (x * a[0] + y * a[1] + a[2], x * a[3] + y * a[4] + a[5])]
    return FIXED if a[[1, 3]].any() and all(abs(place) < 32768 for place in places) else STEPPED


def _warped(
    image: npt.NDArray[np.uint8], x: Doubles, y: Doubles, kind: int, fill: npt.NDArray[np.uint8]
) -> npt.NDArray[np.uint8]:
    height, width, _ = image.shape
    with np.errstate(invalid="ignore"):
        inside = (x >= 0) & (x < width) & (y >= 0) & (y < height)
    x, y = np.where(inside, x, 0.0), np.where(inside, y, 0.0)
    if kind == NEAREST:
        found = image[y.astype(np.int64), x.astype(np.int64)]
    else:
        found = _between(image, x - 0.5, y - 0.5, kind)
    return np.where(inside[..., None], found, fill)


def _points(a: Doubles, way: int, rows: int, columns: int) -> tuple[Doubles, Doubles]:
    if way == FIXED:
        exact = np.array([*a[:2], a[2] + a[0] * 0.5 + a[1] * 0.5, *a[3:5], a[5] + a[3] * 0.5 + a[4] * 0.5])
        b = np.floor(exact * 65536.0 + 0.5).astype(np.int64)
        i, j = np.arange(rows)[:, None], np.arange(columns)
        x, y = b[2] + i * b[1] + j * b[0] >> 16, b[5] + i * b[4] + j * b[3] >> 16
        return x.astype(np.float64), y.astype(np.float64)
    if way == STEPPED:
        starts = a[2] + a[1] * 0.5 + a[0] * 0.5, a[5] + a[4] * 0.5 + a[3] * 0.5
        lines = [_steps(start, a[1 + 3 * k], rows) for k, start in enumerate(starts)]
        x, y = (np.array([_steps(start, a[3 * k], columns) for start in lines[k]]) for k in range(2))
        return x, y
    x, y = np.arange(columns) + 0.5, np.arange(rows)[:, None] + 0.5
    with np.errstate(all="ignore"):
        below = a[6] * x + a[7] * y + 1
        return (a[0] * x + a[1] * y + a[2]) / below, (a[3] * x + a[4] * y + a[5]) / below


def _steps(start: float, step: float, count: int) -> Doubles:
    return np.add.accumulate(np.array([start] + [step] * (count - 1)))


def _between(image: npt.NDArray[np.uint8], x: Doubles, y: Doubles, kind: int) -> npt.NDArray[np.uint8]:
    """Return interpolated values at points that lie inside."""
    size, before, count = image.shape, (0 if kind == BILINEAR else 1), (2 if kind == BILINEAR else 4)
    left, top = np.floor(x).astype(np.int64), np.floor(y).astype(np.int64)
    across, down = (x - left)[..., None], (y - top)[..., None]
    columns = [np.clip(left - before + k, 0, size[1] - 1) for k in range(count)]
    mixed = _linear if kind == BILINEAR else _cubic
    rows = [np.clip(top - before + k, 0, size[0] - 1) for k in range(count)]
    lines = [mixed([image[row, each].astype(np.float64) for each in columns], across) for row in rows]
    return np.clip(mixed(lines, down), 0, 255).astype(np.uint8)


def _linear(values: list[Doubles], at: Doubles) -> Doubles:
    return values[0] + (values[1] - values[0]) * at


def _cubic(values: list[Doubles], at: Doubles) -> Doubles:
    one, two, three, four = values
    p2, p3, p4 = -one + three, 2 * (one - two) + three - four, -one + two - three + four
    return two + at * (p2 + at * (p3 + at * p4))
