"""Pillow's resize of images with 8 bits, bit for bit, and copies of parts of images: with results by a table.

Pillow computes weights of 22 bits, and rounds to bytes after each of its two passes. Pillow 13 runs the vertical pass
first if that costs less, earlier versions never do: `vertical_first`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from penstock.errors import InvalidArgumentError
from penstock.native.library import Kernels

if TYPE_CHECKING:
    import numpy.typing as npt

BOX, BILINEAR, BICUBIC = range(3)  # filters
BITS = 22  # of a weight
_SUPPORT = {BOX: 0.5, BILINEAR: 1.0, BICUBIC: 2.0}
_NATIVE = Kernels("penstock.image.resizing.pillow_native")


class Part(NamedTuple):
    """A window of an image, its new size, the part of the result that is needed, and flips of this part."""

    top: int
    left: int
    height: int
    width: int
    new_height: int
    new_width: int
    y: int
    x: int
    rows: int
    columns: int
    mirrored: bool = False
    upside: bool = False
    kind: int = BILINEAR


def compiled() -> bool:
    """Return True if the compiled kernels run, and not the plain versions."""
    return _NATIVE.loaded() is not None


def reach(size: int, new: int, first: int, count: int, kind: int) -> tuple[int, int]:
    """Return the first place, and the end of the places, that `count` results of a resize from `size` to `new` read.

    >>> reach(100, 10, 2, 1, BILINEAR)
    (15, 35)
    """
    if size == new:
        return first, first + count
    support = _SUPPORT[kind] * max(size / new, 1.0)
    begin, end = ((each + 0.5) * (size / new) for each in (first, first + count - 1))
    return max(int(begin - support + 0.5), 0), min(int(end + support + 0.5), size)


def resize_part(
    src: npt.NDArray[np.uint8],
    part: Part,
    table: npt.NDArray[Any],
    out: npt.NDArray[Any],
    *,
    planes: bool,
    vertical_first: bool,
) -> None:
    """Write `table[channel, value]` for a part of the resized window of `src` to `out`.

    >>> out = np.empty((1, 1, 1), np.uint8)
    >>> square = np.array([[[0], [10]], [[20], [30]]], np.uint8)
    >>> identity = np.arange(256, dtype=np.uint8)[None]
    >>> resize_part(square, Part(0, 0, 2, 2, 1, 1, 0, 0, 1, 1), identity, out, planes=True, vertical_first=True)
    >>> out.item()
    15

    Args:
        src: (height, width, channels) uint8: an image, or what the part reads of it.
        part: The places, in `src`. Pixels outside of the window have no influence.
        table: (channels, 256) uint8 or float32.
        out: (rows, columns, channels), or (channels, rows, columns) with `planes`, of the table's dtype.
        planes: The order of the axes of `out`.
        vertical_first: The order of the passes: True for Pillow 13 and later.

    Raises:
        InvalidArgumentError: If places and arrays do not fit.
    """
    native = _NATIVE.loaded()
    if native is None:
        _resize_plainly(src, part, table, out, planes=planes, vertical_first=vertical_first)
        return
    channels = src.shape[2]
    words = np.empty(
        part.width * channels * (part.height // 8 + 1) + (part.height + 8) * (part.columns // 8 + 1), np.uint64
    )
    places, size = np.array(part, np.int64), src.shape[:2]
    scratch = words, words.view(np.uint8)
    if native.resize_part(src.reshape(-1), *size, channels, places, vertical_first, table, *scratch, planes, out):
        raise InvalidArgumentError(_misfit(src, part, table, out))


def copy_parts(
    src: npt.NDArray[np.uint8],
    which: npt.NDArray[np.int64],
    places: npt.NDArray[np.int64],
    fill: npt.NDArray[np.uint8],
    table: npt.NDArray[Any],
    out: npt.NDArray[Any],
    *,
    planes: bool,
) -> None:
    """Write `table[channel, value]` for parts of images to `out`.

    Args:
        src: (images, height, width, channels) uint8.
        which: (N,) numbers of images.
        places: (N, 4) top and left of each part, flags of a flip left to right and of a flip top to bottom.
        fill: (channels,) pixel outside of an image.
        table: (channels, 256) uint8 or float32.
        out: (N, rows, columns, channels), or (N, channels, rows, columns) with `planes`.
        planes: The order of the axes of `out`.

    Raises:
        InvalidArgumentError: If places and arrays do not fit.
    """
    native = _NATIVE.loaded()
    if native is None:
        _copy_plainly(src, which, places, fill, table, out, planes=planes)
    elif native.copy_parts(src, which, places, fill, table, planes, out):
        raise InvalidArgumentError(_misfit(src, places, table, out))


def _misfit(src: Any, places: Any, table: Any, out: Any) -> str:
    arrays = f"image {src.shape}, table {table.shape}, result {out.shape}"
    return f"A part of an image must lie inside it and have the size of its result: {places}, {arrays}."


def _resize_plainly(
    src: npt.NDArray[np.uint8],
    part: Part,
    table: npt.NDArray[Any],
    out: npt.NDArray[Any],
    *,
    planes: bool,
    vertical_first: bool,
) -> None:
    image = np.zeros((part.height, part.width, src.shape[2]), np.uint8)
    y, x = max(part.top, 0), max(part.left, 0)
    found = src[y : max(part.top + part.height, 0), x : max(part.left + part.width, 0)]
    y, x = y - part.top, x - part.left
    image[y : y + found.shape[0], x : x + found.shape[1]] = found
    down = part.height - part.new_height > 2 * (part.width - part.new_width)
    down = down and vertical_first and part.height > part.new_height and part.width != part.new_width
    new = part.new_height, part.new_width
    for axis in (0, 1) if down else (1, 0):
        image = _along(image, axis, new[axis], part.kind)
    image = image[part.y : part.y + part.rows, part.x : part.x + part.columns]
    _look_up(image[:: -1 if part.upside else 1, :: -1 if part.mirrored else 1], table, out, planes=planes)


def _along(image: npt.NDArray[np.uint8], axis: int, new: int, kind: int) -> npt.NDArray[np.uint8]:
    size = image.shape[axis]
    if size == new:
        return image
    weights = np.zeros((new, size), np.int64)
    scale = size / new
    wide = max(scale, 1.0)
    support = _SUPPORT[kind] * wide
    for i in range(new):
        centre = (i + 0.5) * scale
        taps = np.arange(max(int(centre - support + 0.5), 0), min(int(centre + support + 0.5), size))
        exact = _heights(kind, (taps - centre + 0.5) * (1.0 / wide))
        total = sum(exact.tolist())
        share = (exact / total if total else exact) * (1 << BITS)
        weights[i, taps] = np.trunc(np.where(share < 0, share - 0.5, share + 0.5))
    sums = np.tensordot(weights, image.astype(np.int64), (1, axis)) + (1 << (BITS - 1))
    return np.moveaxis(np.clip(sums >> BITS, 0, 255).astype(np.uint8), 0, axis)


def _heights(kind: int, x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    if kind == BOX:
        return ((x > -0.5) & (x <= 0.5)).astype(np.float64)
    x = np.abs(x)
    if kind == BILINEAR:
        return np.maximum(1.0 - x, 0.0)
    near, far = ((-0.5 + 2.0) * x - (-0.5 + 3.0)) * x * x + 1, (((x - 5) * x + 8) * x - 4) * -0.5
    return np.where(x < 1.0, near, np.where(x < 2.0, far, 0.0))


def _copy_plainly(
    src: npt.NDArray[np.uint8],
    which: npt.NDArray[np.int64],
    places: npt.NDArray[np.int64],
    fill: npt.NDArray[np.uint8],
    table: npt.NDArray[Any],
    out: npt.NDArray[Any],
    *,
    planes: bool,
) -> None:
    rows, columns = out.shape[2:] if planes else out.shape[1:3]
    for place, number, (top, left, mirrored, upside) in zip(out, which, places.tolist(), strict=True):
        y, x = top + np.arange(rows), left + np.arange(columns)
        y, x = y[:: -1 if upside else 1, None], x[None, :: -1 if mirrored else 1]
        inside = (y >= 0) & (y < src.shape[1]) & (x >= 0) & (x < src.shape[2])
        image = src[number][y.clip(0, src.shape[1] - 1), x.clip(0, src.shape[2] - 1)]
        _look_up(np.where(inside[..., None], image, fill), table, place, planes=planes)


def _look_up(image: npt.NDArray[np.uint8], table: npt.NDArray[Any], out: npt.NDArray[Any], *, planes: bool) -> None:
    found = table[np.arange(image.shape[2]), image]
    out[...] = found.transpose(2, 0, 1) if planes else found
