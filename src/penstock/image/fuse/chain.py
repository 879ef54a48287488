"""Chains of colour operations, flips and a resize, as few passes over each image: what they give, exactly.

Approximately, with the colours on the resized images.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from penstock.compiled import Compiled
from penstock.errors import InvalidArgumentError
from penstock.image.colour.means import folded_sum
from penstock.image.kernels import (
    ADD,
    BRIGHTNESS,
    CONTRAST,
    DIVIDE,
    FIVE,
    FOUR,
    HALF,
    HUE,
    LEVEL,
    MULTIPLY,
    ONE,
    SATURATION,
    SIX,
    SUBTRACT,
    THREE,
    TOP,
    TWO,
    line_of,
)

if TYPE_CHECKING:
    import numpy.typing as npt

_NATIVE = Compiled("penstock.image.fuse.chain_native")


@dataclass(frozen=True, slots=True)
class Recipe:
    """What is done to every image alike.

    `colours` are operations on uint8 values, each with rounding, in order. Then come the resize to `size`, of what
    `levels` (3, 256) has for the values if there are any, and `last`: operations with a float32 number per channel.
    With `planes` the result is (3, *size).
    """

    size: tuple[int, int]
    colours: tuple[int, ...] = ()
    levels: npt.NDArray[np.float32] | None = None
    last: tuple[tuple[int, tuple[float, float, float]], ...] = ()
    planes: bool = False


class PerImage(NamedTuple):
    """What differs: the arguments of the colour operations, and how the image is flipped.

    `flips` are those made so far at each colour operation, `before` those at the resize, `after` those behind it.
    `windows` are the parts that are read of files, if not all of each: top, left, height and width.
    """

    args: npt.NDArray[np.float32]  # (images, operations)
    flips: npt.NDArray[np.int64]  # (images, operations)
    before: npt.NDArray[np.int64]  # (images,)
    after: npt.NDArray[np.int64]  # (images,)
    windows: npt.NDArray[np.int64] | None = None  # (images, 4)

    def part(self, start: int, stop: int) -> PerImage:
        """The parameters of some images."""
        return PerImage(self.args[start:stop], self.flips[start:stop], self.before[start:stop], self.after[start:stop])


def ready() -> bool:
    """Whether the kernel is there: it may have to be compiled first, and until then the single operations serve."""
    return _NATIVE.ready() is not None


class Images(NamedTuple):
    """uint8 RGB images, one behind the other in one memory: image i begins at `starts[i]`."""

    pixels: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]
    heights: npt.NDArray[np.int64]
    widths: npt.NDArray[np.int64]


def images_of(batch: npt.NDArray[np.uint8]) -> Images:
    """The images of an array (N, H, W, 3).

    >>> images_of(np.zeros((2, 4, 5, 3), np.uint8)).starts.tolist()
    [0, 60]
    """
    count, height, width, _ = batch.shape
    starts = np.arange(count) * (3 * height * width)
    return Images(np.ascontiguousarray(batch).reshape(-1), starts, np.full(count, height), np.full(count, width))


def chain_into(images: Images, out: npt.NDArray[Any], recipe: Recipe, per_image: PerImage) -> None:
    """Write images, coloured, flipped, resized and finished, into `out`, (N, *size, 3) of float32 or uint8 (truncated).

    (N, 3, *size) with `planes`.

    Each value equals, to the last bit, what the single operations give one after the other. Runs without the GIL, once
    for all. `out` is C-contiguous.

    Raises:
        InvalidArgumentError: shapes that do not fit together.
    """
    native = _NATIVE.get()
    codes, last_codes, last_values = _constants(recipe)
    planes, read, halves = _mine.scratch(int((images.heights * images.widths).max(initial=0)))
    pixels = images.pixels.view()
    pixels.flags.writeable = False  # so that the kernel compiles once for arrays of both kinds
    status = native.chain(
        pixels,
        *images[1:],
        codes,
        *per_image[:4],
        np.empty(0, np.float32) if recipe.levels is None else line_of(recipe.levels),
        last_codes,
        last_values,
        *recipe.size,
        recipe.planes,
        planes,
        read,
        halves,
        *(out.reshape(-1) if out.dtype == kind else np.empty(0, kind) for kind in (np.float32, np.uint8)),
    )
    if status != 0:
        sizes = sorted(set(zip(images.heights.tolist(), images.widths.tolist(), strict=True)))
        message = f"A fused chain refused images of {sizes} pixels for a result of shape {out.shape}."
        raise InvalidArgumentError(message)


def _constants(recipe: Recipe) -> Sequence[npt.NDArray[Any]]:
    """The recipe as the kernel takes it: numbers per channel are repeated along a row."""
    codes = np.array(recipe.colours, np.int64)
    last_codes = np.array([code for code, _ in recipe.last], np.int64)
    numbers = np.array([values for _, values in recipe.last], np.float32).reshape(-1, 3)
    return codes, last_codes, np.tile(numbers, recipe.size[1])


class _PerThread(threading.local):
    """Memory for one image at a time, which grows and is used again: a fresh page costs 2 µs at its first touch."""

    def __init__(self) -> None:
        self._pixels = 0
        self._arrays: Any = ()

    def scratch(self, pixels: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
        """Four bytes and half a number for each pixel, the bytes twice: once to be read only."""
        if not self._pixels or self._pixels < pixels:
            planes = np.empty(4 * pixels, np.uint8)
            read = planes.view()
            read.flags.writeable = False
            self._arrays = planes, read, np.empty(pixels // 2 + 1, np.float32)
            self._pixels = pixels
        found: tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]] = self._arrays
        return found


_mine = _PerThread()


# The definition is on float levels, without the rounding that uint8 would bring. All its arithmetic is float32 in the
# order written here.

if TYPE_CHECKING:
    import numpy.typing as npt

    Levels = npt.NDArray[np.float32]


CHUNK = 512
_ARITHMETIC = {MULTIPLY: np.multiply, DIVIDE: np.divide, ADD: np.add, SUBTRACT: np.subtract}


def recolour(
    image: Levels, codes: Sequence[int], args: Levels, last: Sequence[tuple[int, tuple[float, float, float]]]
) -> Levels:
    """An image (H, W, 3) of levels from 0 to 255 after colour operations and arithmetic with numbers per channel.

    >>> recolour(np.full((1, 1, 3), 100, np.float32), [BRIGHTNESS], np.float32([0.2]), [(DIVIDE, (2, 2, 2))]).tolist()
    [[[75.39804077148438, 75.39804077148438, 75.39804077148438]]]
    """
    channels = [image[..., c].reshape(-1) for c in range(3)]
    for code, argument in zip(codes, args, strict=True):
        if code == BRIGHTNESS:
            channels = [settled(channel + argument * TOP) for channel in channels]
        elif code == SATURATION:
            channels = saturated(channels, argument)
        elif code == HUE:
            channels = turned(channels, argument * SIX)
        else:
            assert code == CONTRAST
            channels = [settled(m + argument * (channel - m)) for channel, m in ((c, mean(c)) for c in channels)]
    for code, numbers in last:
        channels = [
            _ARITHMETIC[code](channel, np.float32(number)) for channel, number in zip(channels, numbers, strict=True)
        ]
    return np.stack(channels, axis=-1).reshape(image.shape)


def settled(values: Levels) -> Levels:
    """Clipped, and what truncation to uint8 leaves of a level on average: a little more, less a half.

    >>> settled(np.array([-3, 100, 300], np.float32)).tolist()
    [0.0, 99.69607543945312, 255.0]
    """
    found: Levels = np.maximum(np.minimum(np.maximum(values, np.float32(0)), TOP) * LEVEL - HALF, np.float32(0))
    return found


def mean(channel: Levels) -> Any:
    """In lanes: value i is part of sum i modulo CHUNK; those are folded.

    >>> mean(np.arange(1000, dtype=np.float32))
    np.float32(499.5)
    """
    padded = np.zeros(-(-channel.size // CHUNK) * CHUNK, np.float32)
    padded[: channel.size] = channel
    lanes = np.zeros(CHUNK, np.float32)
    for row in padded.reshape(-1, CHUNK):
        lanes += row
    return folded_sum(lanes) / np.float32(channel.size)


def saturated(channels: Sequence[Levels], factor: Any) -> list[Levels]:
    """Each channel moved towards the largest or away from it.

    >>> [c.tolist() for c in saturated([np.float32([200]), np.float32([100]), np.float32([0])], np.float32(0.5))]
    [[199.89215087890625], [149.7941131591797], [99.69607543945312]]
    """
    high, low = np.maximum(np.maximum(*channels[:2]), channels[2]), np.minimum(np.minimum(*channels[:2]), channels[2])
    t = np.minimum(high / np.maximum(high - low, HALF), np.maximum(factor, np.float32(0)))
    return [settled(high - (high - channel) * t) for channel in channels]


def turned(channels: Sequence[Levels], sixths: Any) -> list[Levels]:
    """Hue turned by so many sixths of the circle.

    >>> [c.tolist() for c in turned([np.float32([255]), np.float32([0]), np.float32([0])], np.float32(2))]
    [[0.0], [255.0], [0.0]]
    """
    red, green, blue = channels
    most, low = np.maximum(red, green), np.minimum(np.minimum(red, green), blue)
    blue_most, green_most = blue > most, green > red
    span = np.maximum(most, blue) - low
    d = np.where(blue_most, red - green, np.where(green_most, blue - red, green - blue))
    rising = np.where(blue_most, FOUR, np.where(green_most, TWO, np.float32(0)))
    falling = np.where(blue_most, THREE, np.where(green_most, ONE, FIVE))
    ratio = np.abs(d) / np.maximum(span, np.float32(1e-9))
    h = np.where(d > 0, rising, falling) + np.where(d > 0, ratio, ONE - ratio) + sixths
    h = np.where(h < 0, h + SIX, np.where(h >= SIX, h - SIX, h))
    parts = np.maximum(TWO - h, h - FOUR), np.minimum(h, FOUR - h), np.minimum(h - TWO, SIX - h)
    return [settled(low + np.minimum(np.maximum(part, np.float32(0)) * span, span)) for part in parts]


_RECOLOURED_NATIVE = Compiled("penstock.image.fuse.recolour_native")


def recolour_in_place(
    images: npt.NDArray[np.float32],
    codes: Sequence[int],
    args: npt.NDArray[np.float32],
    last: Sequence[tuple[int, tuple[float, float, float]]],
) -> None:
    """Change C-contiguous images (N, H, W, 3) of levels from 0 to 255; `args` are (N, operations).

    Runs without the GIL. The bits are those of the reference, whether the kernel is compiled or not.

    >>> images = np.full((1, 1, 1, 3), 100, np.float32)
    >>> recolour_in_place(images, [], np.zeros((1, 0), np.float32), [(1, (2, 4, 5))])
    >>> images.ravel().tolist()
    [50.0, 25.0, 20.0]
    """
    if images.size == 0:
        return
    native = _RECOLOURED_NATIVE.ready()
    if native is None:
        for image, own in zip(images, args, strict=True):
            image[...] = recolour(image, codes, own, last)
        return
    numbers = np.array([values for _, values in last], np.float32).reshape(-1, 3)
    last_codes: Any = np.array([code for code, _ in last], np.int64)
    flat = images.reshape(-1)
    status = native.recolour(flat, images[0].size, np.array(codes, np.int64), args, last_codes, numbers)
    assert status == 0, "sizes that do not fit"
