"""Chains of colour operations, flips and a resize, with few passes over each image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from penstock.errors import InvalidArgumentError
from penstock.image.jpeg.libjpeg import ThreadScratch
from penstock.image.kernels import constants, line_of
from penstock.native.library import Kernels

_NATIVE = Kernels("penstock.image.fuse.chain_native")


@dataclass(frozen=True, slots=True)
class Recipe:
    """The operations that are equal for all images.

    `colours` are operations on uint8 values, each with rounding, in order. The resize to `size` follows. If there are
    `levels` (3, 256), it resizes these in place of the values. `last` are operations with a float32 number per channel.
    With `planes` the result is (3, *size).
    """

    size: tuple[int, int]
    colours: tuple[int, ...] = ()
    levels: npt.NDArray[np.float32] | None = None
    last: tuple[tuple[int, tuple[float, float, float]], ...] = ()
    planes: bool = False


class PerImage(NamedTuple):
    """The arguments of the colour operations, and the flips and windows, which differ between images.

    `flips` are the flips before each colour operation, `before` those before the resize, `after` those after it.
    `windows` are the parts of files to read, or None for all: top, left, height and width.
    """

    args: npt.NDArray[np.float32]  # (images, operations)
    flips: npt.NDArray[np.int64]  # (images, operations)
    before: npt.NDArray[np.int64]  # (images,)
    after: npt.NDArray[np.int64]  # (images,)
    windows: npt.NDArray[np.int64] | None = None  # (images, 4)

    def part(self, start: int, stop: int) -> PerImage:
        """Return the parameters of some images."""
        return PerImage(self.args[start:stop], self.flips[start:stop], self.before[start:stop], self.after[start:stop])


def ready() -> bool:
    """Return True if the kernel is loaded. Without it the single operations run."""
    return _NATIVE.loaded() is not None


class Images(NamedTuple):
    """uint8 RGB images, concatenated in one memory. Image i begins at `starts[i]`."""

    pixels: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]
    heights: npt.NDArray[np.int64]
    widths: npt.NDArray[np.int64]


def images_of(batch: npt.NDArray[np.uint8]) -> Images:
    """Return the images of an array (N, H, W, 3).

    >>> images_of(np.zeros((2, 4, 5, 3), np.uint8)).starts.tolist()
    [0, 60]
    """
    count, height, width, _ = batch.shape
    starts = np.arange(count) * (3 * height * width)
    return Images(np.ascontiguousarray(batch).reshape(-1), starts, np.full(count, height), np.full(count, width))


def chain_into(images: Images, out: npt.NDArray[Any], recipe: Recipe, per_image: PerImage) -> None:
    """Write images, coloured, flipped, resized and finished, into `out`, (N, *size, 3) of float32 or uint8 (truncated).

    With `planes`, `out` is (N, 3, *size). Each value equals, to the last bit, the result of the single operations. One
    call processes all images, without the GIL. `out` is C-contiguous.

    Raises:
        InvalidArgumentError: shapes that do not fit together.
    """
    native = _NATIVE.loaded()
    planes, read, halves = _scratch(int((images.heights * images.widths).max(initial=0)))
    status = native.chain(
        *images,
        np.array(recipe.colours, np.int64),
        *per_image[:4],
        np.empty(0, np.float32) if recipe.levels is None else line_of(recipe.levels),
        *constants(recipe.last, recipe.size[1], 3),
        *recipe.size,
        recipe.planes,
        planes,
        read,
        halves,
        *(out.reshape(-1) if out.dtype == kind else np.empty(0, kind) for kind in (np.float32, np.uint8)),
    )
    if status != 0:
        sizes = sorted(set(zip(images.heights.tolist(), images.widths.tolist(), strict=True)))
        raise InvalidArgumentError(f"A fused chain refused images of {sizes} pixels for a result of shape {out.shape}.")


_mine = ThreadScratch()


def _scratch(pixels: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
    """Return four bytes per pixel, twice (writable and read-only), and half a number per pixel."""
    split, end = 4 * pixels, 4 * (pixels + pixels // 2 + 1)
    memory = _mine.scratch.of(end)
    read = memory[:split]
    read.flags.writeable = False
    return memory[:split], read, memory[split:end].view(np.float32)
