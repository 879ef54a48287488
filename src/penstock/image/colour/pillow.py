"""Pillow's colour operations on images with 8 bits, bit for bit, with results by a table.

The operations are those of ImageEnhance and ImageOps, and the rotation of the hue of torchvision, through Pillow's HSV.
Consecutive operations on single values become one table.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from penstock.errors import InvalidArgumentError
from penstock.image.colour import pixels, run
from penstock.native.library import Kernels

if TYPE_CHECKING:
    import numpy.typing as npt

    Bytes = npt.NDArray[np.uint8]

SATURATION, HUE = range(2)  # operations that mix channels
_MIXING = {"saturation": SATURATION, "hue": HUE}
_LEVELS = np.arange(256, dtype=np.uint8)
IDENTITY = {channels: np.tile(_LEVELS, (channels, 1)) for channels in (1, 3)}  # tables of unchanged values
_LUMA = np.array([19595, 38470, 7471], np.int64)  # weights of 16 bits
_NATIVE = Kernels("penstock.image.colour.pillow_native")


class ChannelStep(NamedTuple):
    """Tables (channels, 256) for the values, then an operation that mixes the channels of each pixel."""

    tables: Bytes
    code: int
    number: float


def adjust(
    image: Bytes,
    operations: Iterable[tuple[str, float]],
    table: npt.NDArray[Any],
    out: npt.NDArray[Any],
    *,
    planes: bool,
) -> None:
    """Write `table[channel, value]` for the image after some operations to `out`.

    >>> out = np.empty((1, 1, 3), np.uint8)
    >>> identity = np.tile(np.arange(256, dtype=np.uint8), (3, 1))
    >>> adjust(np.array([[[10, 20, 30]]], np.uint8), [("invert", 0), ("brightness", 0.5)], identity, out, planes=False)
    >>> out.ravel().tolist()
    [122, 117, 112]

    Args:
        image: (height, width, channels) uint8 with 1 or 3 channels.
        operations: Names and numbers: "brightness", "contrast", "saturation" and "sharpness" with a factor, "hue" with
            a number from 0 to 255, "posterize" with bits, "solarize" with a threshold; "invert", "autocontrast" and
            "equalize" ignore their number.
        table: (channels, 256) uint8 or float32.
        out: (height, width, channels), or (channels, height, width) with `planes`, of the table's dtype.
        planes: The order of the axes of `out`.

    Raises:
        InvalidArgumentError: If the arrays do not fit.
    """
    channels = np.arange(image.shape[2])[:, None]
    same = IDENTITY[image.shape[2]]
    steps: list[ChannelStep] = []
    tables = same  # of the values after `steps`
    for name, number in operations:
        if name in _MIXING:
            if image.shape[2] == 3:
                steps.append(ChannelStep(tables, _MIXING[name], number))
                tables = same
            continue
        if name in _BY_VALUE:
            tables = _BY_VALUE[name](number)[tables]
            continue
        if steps or (name == "sharpness" and tables is not same):
            mixed = np.empty(image.shape, np.uint8)
            _mix(image, steps, tables, mixed, planes=False)
            image, steps, tables = mixed, [], same
        if name == "sharpness":
            image = sharpen(image, number)
        elif name == "contrast":
            tables = blended(_mean(image, tables), _LEVELS, number)[tables]
        else:
            counts = run.count(image[None])[0]
            if tables is not same:
                moved = [np.bincount(each, count, 256) for each, count in zip(tables, counts, strict=True)]
                counts = np.array(moved, np.int64)
            tables = _BY_COUNTS[name](counts)[channels, tables]
    _mix(image, steps, table[channels, tables], out, planes=planes)


def levels_of(operations: Iterable[tuple[str, float]]) -> Bytes | None:
    """Return the results of each value, or None if an operation reads more than one value.

    >>> levels_of([("invert", 0), ("posterize", 1)])[[0, 255]].tolist()
    [128, 0]
    """
    levels = _LEVELS
    for name, number in operations:
        if name not in _BY_VALUE:
            return None
        levels = _BY_VALUE[name](number)[levels]
    return levels


def blended(one: Any, other: Any, factor: float) -> Bytes:
    """Return Pillow's blend of two images, in float32: clipped, if the factor is outside of 0 to 1.

    >>> blended(np.uint8(100), np.array([0, 50, 200], np.uint8), 0.5).tolist()
    [50, 75, 150]
    """
    begin = np.asarray(one, np.float32)
    values = begin + np.float32(factor) * (np.asarray(other, np.float32) - begin)
    return np.minimum(np.maximum(values, 0), 255).astype(np.uint8)


def sharpen(image: Bytes, factor: float) -> Bytes:
    """Return Pillow's blend of the image and the same image smoothed."""
    native = _NATIVE.loaded()
    if native is None or min(image.shape[:2]) < 3:
        return blended(pixels.smoothed(image[None])[0], image, factor)
    found = np.empty(image.shape, np.uint8)
    native.sharpen(run.flat(image), *image.shape, factor, found.reshape(-1))
    return found


def _mean(image: Bytes, tables: Bytes) -> int:
    """Return the rounded mean of the luma of the values in `tables`."""
    native = _NATIVE.loaded()
    if image.shape[2] == 1:
        total = int(run.count(image[None])[0, 0] @ tables[0].astype(np.int64))
    elif native is None:
        total = int(luma(tables[np.arange(3), image]).sum())
    else:
        total = native.luma_sum(run.flat(image), image.shape[1], tables)
    return int(total / (image.shape[0] * image.shape[1]) + 0.5)


def luma(image: Bytes) -> npt.NDArray[np.int64]:
    """Return the luma of an RGB image, as Pillow converts to grey.

    >>> luma(np.array([[[255, 0, 0], [10, 20, 30]]], np.uint8)).tolist()
    [[76, 18]]
    """
    found: npt.NDArray[np.int64] = (image.astype(np.int64) @ _LUMA + 0x8000) >> 16
    return found


def _mix(
    image: Bytes, steps: list[ChannelStep], table: npt.NDArray[Any], out: npt.NDArray[Any], *, planes: bool
) -> None:
    native = _NATIVE.loaded()
    if native is not None:
        tables = np.array([each.tables for each in steps], np.uint8).reshape(-1, image.shape[2], 256)
        codes = np.array([each.code for each in steps], np.int64)
        numbers = np.array([each.number for each in steps], np.float32)
        flat, shape = run.flat(image), np.array(image.shape, np.int64)
        if native.mix(flat, shape, tables, codes, numbers, hue_tables(), table, planes, out):
            message = f"Image {image.shape}, table {table.shape} and result {out.shape} do not fit."
            raise InvalidArgumentError(message)
        return
    for tables, code, number in steps:
        image = tables[np.arange(3), image]
        if code == SATURATION:
            image = blended(luma(image)[..., None], image, number)
        else:
            image = turned(image, int(number))
    found = table[np.arange(image.shape[2]), image]
    out[...] = found.transpose(2, 0, 1) if planes else found


def turned(image: Bytes, shift: int) -> Bytes:
    """Return an RGB image with `shift` added to the hue of Pillow's HSV, which is a byte.

    >>> turned(np.array([[[200, 100, 50]]], np.uint8), 85).tolist()
    [[[50, 200, 100]]]
    """
    red, green, blue = np.moveaxis(image, -1, 0).astype(np.int64)
    high, low = np.maximum(np.maximum(red, green), blue), np.minimum(np.minimum(red, green), blue)
    tables = hue_tables()
    sector = np.where(
        red == high, green < blue, np.where(green == high, 2 + (red < blue), 4 + (green < red)).astype(np.int64)
    )
    span, middle = high - low, red + green + blue - high - low
    hue = (tables[(sector << 16) + (span << 8) + high - middle].astype(np.int64) + shift) & 255
    part = (tables[(6 << 16) + (span << 8) + high] / 255.0).astype(np.float32)
    place = hue * 6 // 255
    rest = (hue * 6 / 255.0 - place).astype(np.float32)
    falling = 1.0 - (part * rest).astype(np.float64)
    rising = 1.0 - part.astype(np.float64) * (1.0 - rest.astype(np.float64))
    bottom = _rounded(high * (1.0 - part.astype(np.float64)))
    mixed = _rounded(high * np.where(place % 2, falling, rising))
    orders = np.array([[0, 2, 1], [2, 0, 1], [1, 0, 2], [1, 2, 0], [2, 1, 0], [0, 1, 2]])[place % 6]
    found = np.take_along_axis(np.stack([high, bottom, mixed], -1), orders, -1)
    return found.astype(np.uint8)


def _rounded(values: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    whole = values.astype(np.int64)
    return whole + (values - whole >= 0.5)


@cache
def hue_tables() -> Bytes:
    """Return Pillow's hue and saturation as bytes.

    For each of the six orders of the channels, 65,536 entries have the hue at `span << 8 | highest - middle`: the span
    is the highest value of a pixel minus the lowest. The last 65,536 entries have the saturation at
    `span << 8 | highest`.
    """
    at = np.arange(256)
    span, below = np.meshgrid(at, at, indexing="ij")
    with np.errstate(all="ignore"):
        part = below.astype(np.float32) / span.astype(np.float32)
        wide = part.astype(np.float64)
        one = np.float32(1)
        turns = [one - part, part - one, 2.0 + wide - 1.0, 2.0 + 1.0 - wide, 4.0 + wide - 1.0, 4.0 + 1.0 - wide]
        turn = np.array([each.astype(np.float32) for each in turns])
        turn = np.fmod(turn.astype(np.float64) / 6.0 + 1.0, 1.0).astype(np.float32)
        share = span.astype(np.float32) / below.astype(np.float32)
        hues = np.where((span == 0) | (below > span), 0, turn.astype(np.float64) * 255.0)
        shares = np.where((span == 0) | (below < span), 0, share.astype(np.float64) * 255.0)
    return np.concatenate([hues.astype(np.uint8), shares[None].astype(np.uint8)]).reshape(-1)


def _stretching(counts: npt.NDArray[np.int64]) -> Bytes:
    """Return the tables of ImageOps.autocontrast, from the counts of each level."""
    present = counts > 0
    low, high = present.argmax(axis=1)[:, None], 255 - present[:, ::-1].argmax(axis=1)[:, None]
    scale = 255.0 / np.maximum(high - low, 1)
    values = np.clip((_LEVELS * scale + -low * scale).astype(np.int64), 0, 255)
    return np.where(high <= low, _LEVELS, values).astype(np.uint8)


_BY_VALUE: dict[str, Any] = {
    "brightness": lambda factor: blended(0, _LEVELS, factor),
    "invert": lambda _: 255 - _LEVELS,
    "posterize": lambda bits: _LEVELS & np.uint8(256 - (1 << (8 - int(bits)))),
    "solarize": lambda threshold: np.where(_LEVELS.astype(np.float64) < threshold, _LEVELS, 255 - _LEVELS),
}
_BY_COUNTS = {"autocontrast": _stretching, "equalize": pixels.equalising}
