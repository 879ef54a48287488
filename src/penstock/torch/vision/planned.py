"""PlannedImage: an image whose pixels are computed later, and the stages that compute them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.image.colour.pillow import IDENTITY, adjust, levels_of
from penstock.image.geometry.pillow import warp
from penstock.image.resizing.pillow import Part, copy_parts, reach, resize_part

Pixels = npt.NDArray[np.uint8]


class Refused(Exception):
    """A transform or data set runs as written. The text is the reason, or empty if it has no transforms."""


@dataclass(slots=True)
class KernelStage:
    """Operations that one kernel runs, in this order: grey, padding, crop, resize, crop, flips."""

    height: int  # of the window, or of the part after a resize
    width: int
    grey: int = 0  # channels of a grey image
    padding: tuple[int, int, int, int] | None = None  # left, top, right, bottom
    mode: str = "constant"
    fill: tuple[int, ...] = (0,)
    top: int = 0
    left: int = 0
    # height and width of the window, new height and width, the filter
    resized: tuple[int, int, int, int, int] | None = None
    y: int = 0
    x: int = 0
    mirrored: bool = False
    upside: bool = False

    @property
    def copies(self) -> bool:
        """Return True if `copy_parts` does all of it."""
        return not self.resized and not self.grey and self.mode == "constant"

    def place(self) -> tuple[int, int, bool, bool]:
        """Return the place of the part, for `copy_parts`."""
        left, top = self.padding[:2] if self.padding else (0, 0)
        return self.top - top, self.left - left, self.mirrored, self.upside

    def window(self) -> tuple[int, int, int, int] | None:
        """Return top, left, height and width of the pixels that it reads, or None if it reads all of them."""
        if self.padding:
            return None
        if not self.resized:
            return self.top, self.left, self.height, self.width
        height, width, rows, columns, kind = self.resized
        first, end = reach(height, rows, self.y, self.height, kind)
        begin, last = reach(width, columns, self.x, self.width, kind)
        return self.top + first, self.left + begin, end - first, last - begin

    def run(
        self, image: Pixels, table: npt.NDArray[Any], out: npt.NDArray[Any], *, planes: bool, vertical_first: bool
    ) -> None:
        """Write `table[channel, pixel]` of the result to `out`."""
        if self.grey:
            image = _grey(image, self.grey)
        fill, stage = _fill(self.fill, image.shape[2]), self
        if stage.padding and (stage.mode != "constant" or stage.resized):
            image = _padded(image, stage, fill)
            stage = replace(stage, padding=None)
        image = np.ascontiguousarray(image)
        if stage.resized:
            height, width, rows, columns, kind = stage.resized
            window, size = (stage.top, stage.left, height, width), (rows, columns)
            place = stage.y, stage.x, stage.height, stage.width
            part = Part(*window, *size, *place, stage.mirrored, stage.upside, kind)
            resize_part(image, part, table, out, planes=planes, vertical_first=vertical_first)
        else:
            places = np.array([stage.place()], np.int64)
            copy_parts(image[None], np.zeros(1, np.int64), places, fill, table, out[None], planes=planes)


@dataclass(slots=True)
class ColourStage:
    """Operations on colours, by name with a number, in this order."""

    height: int
    width: int
    operations: list[tuple[str, float]] = field(default_factory=list)
    grey = 0

    def run(
        self, image: Pixels, table: npt.NDArray[Any], out: npt.NDArray[Any], *, planes: bool, vertical_first: bool
    ) -> None:
        """Write `table[channel, pixel]` of the result to `out`."""
        adjust(image, self.operations, table, out, planes=planes)


@dataclass(slots=True)
class WarpStage:
    """An affine transform with 6 numbers, or a perspective transform with 8, by Pillow's filter `kind`."""

    height: int
    width: int
    matrix: tuple[float, ...]
    kind: int
    fill: tuple[int, ...]
    grey = 0

    def run(
        self, image: Pixels, table: npt.NDArray[Any], out: npt.NDArray[Any], *, planes: bool, vertical_first: bool
    ) -> None:
        """Write `table[channel, pixel]` of the result to `out`."""
        warp(image, self.matrix, self.kind, _fill(self.fill, image.shape[2]), table, out, planes=planes)


@dataclass(slots=True)
class CallStage:
    """A function of torchvision that draws nothing, on an image of Pillow. The result has the same size."""

    height: int
    width: int
    function: Callable[[Any], Any]
    grey = 0

    def run(
        self, image: Pixels, table: npt.NDArray[Any], out: npt.NDArray[Any], *, planes: bool, vertical_first: bool
    ) -> None:
        """Write `table[channel, pixel]` of the result to `out`."""
        found = np.asarray(self.function(pillow_image(np.ascontiguousarray(image)))).reshape(image.shape)
        KernelStage(self.height, self.width).run(found, table, out, planes=planes, vertical_first=vertical_first)


Stage = KernelStage | ColourStage | WarpStage | CallStage


@dataclass(slots=True)
class PlannedImage:
    """An image whose pixels are computed later: its size, its channels and the stages that lead to it."""

    height: int
    width: int
    channels: int
    stages: list[Stage] = field(default_factory=list)
    erased: list[tuple[tuple[int, int, int, int], Any]] = field(default_factory=list)
    crops: list[KernelStage] = field(default_factory=list)  # the result has a part for each

    def copied(self) -> KernelStage | None:
        """Return the only stage if `copy_parts` does all of it, or None."""
        stage = self.stages[0] if self.stages else KernelStage(self.height, self.width)
        alone = len(self.stages) < 2 and not self.erased and not self.crops
        return stage if alone and isinstance(stage, KernelStage) and stage.copies else None

    def _stage(self, *, new: bool) -> KernelStage:
        last = self.stages[-1] if self.stages else None
        if new or not isinstance(last, KernelStage):
            last = KernelStage(self.height, self.width)
            self.stages.append(last)
        return last

    def crop(self, top: int, left: int, height: int, width: int) -> None:
        """Keep a part that lies inside."""
        stage = self._stage(new=False)
        left = self.width - left - width if stage.mirrored else left
        top = self.height - top - height if stage.upside else top
        if stage.resized:
            stage.y, stage.x = stage.y + top, stage.x + left
        else:
            stage.top, stage.left = stage.top + top, stage.left + left
        stage.height = self.height = height
        stage.width = self.width = width

    def resize(self, height: int, width: int, kind: int) -> None:
        """Resize as Pillow does."""
        if (height, width) == (self.height, self.width):
            return
        if height < 1 or width < 1:
            message = "height and width must be > 0"  # Pillow's error
            raise ValueError(message)
        stage = self._stage(new=False)
        if stage.resized or stage.mirrored or stage.upside:
            stage = self._stage(new=True)
        stage.resized = (self.height, self.width, height, width, kind)
        stage.height = self.height = height
        stage.width = self.width = width

    def pad(self, sides: Sequence[int], mode: str, fill: tuple[int, ...]) -> None:
        """Add a border. `sides` are left, top, right and bottom."""
        left, top, right, bottom = sides
        stage = self._stage(new=True)
        stage.padding, stage.mode, stage.fill = (left, top, right, bottom), mode, fill
        stage.height = self.height = self.height + top + bottom
        stage.width = self.width = self.width + left + right

    def grey(self, channels: int) -> None:
        """Convert to grey, with equal channels."""
        self._stage(new=True).grey = channels
        self.channels = channels

    def flip(self, *, upside: bool) -> None:
        """Mirror left to right, or with `upside` top to bottom."""
        stage = self._stage(new=False)
        if upside:
            stage.upside = not stage.upside
        else:
            stage.mirrored = not stage.mirrored

    def colour(self, name: str, number: float = 0) -> None:
        """Apply an operation of `penstock.image.colour.pillow.adjust`."""
        last = self.stages[-1] if self.stages else None
        if not isinstance(last, ColourStage):
            last = ColourStage(self.height, self.width)
            self.stages.append(last)
        last.operations.append((name, number))

    def warp(self, height: int, width: int, matrix: Sequence[float], kind: int, fill: Sequence[int] = (0,)) -> None:
        """Transform as Pillow does, to an image of another size."""
        self.height, self.width = height, width
        self.stages.append(WarpStage(height, width, tuple(matrix), kind, tuple(fill)))

    def call(self, function: Callable[[Any], Any]) -> None:
        """Apply a function on images of Pillow that keeps the size."""
        self.stages.append(CallStage(self.height, self.width, function))

    def several(self, height: int, width: int, *, flipped: bool, upside: bool) -> None:
        """Give parts of one size: four corners and the centre, then those of the flipped image."""
        most = self.height - height, self.width - width
        if min(most) < 0:
            message = f"Requested crop size {height, width} is bigger than input size {self.height, self.width}"
            raise ValueError(message)  # torchvision's error
        middle = round(most[0] / 2.0), round(most[1] / 2.0)
        for flip in (False, True) if flipped else (False,):
            for top, left in ((0, 0), (0, most[1]), (most[0], 0), most, middle):
                part = PlannedImage(self.height, self.width, self.channels)
                if flip:
                    part.flip(upside=upside)
                part.crop(top, left, height, width)
                self.crops.append(part._stage(new=False))
        self._stage(new=False)
        self.height, self.width = height, width

    def erase(self, place: tuple[int, int, int, int], values: npt.NDArray[np.float32]) -> None:
        """Replace a part of the result, a tensor of floats. `place` is top, left, height and width."""
        self.erased.append((place, values))

    def paint(
        self, image: Any, table: npt.NDArray[Any], out: npt.NDArray[Any], *, planes: bool, vertical_first: bool
    ) -> None:
        """Compute the pixels from those of the original image, and write `table[channel, pixel]` to `out`.

        `image` has the pixels, or is a CodedImage, of which only a part is decoded.
        """
        stages = self.stages or [KernelStage(self.height, self.width)]
        if not isinstance(image, np.ndarray):
            first, window = stages[0], None
            if isinstance(first, KernelStage) and (window := first.window()):
                stages = [replace(first, top=first.top - window[0], left=first.left - window[1]), *stages[1:]]
            image = image.part(*window or (0, 0, *image.shape[:2]))
        runs = _with_levels(stages)
        for stage, levels in runs if self.crops else runs[:-1]:
            channels = stage.grey or image.shape[2]
            part = np.empty((stage.height, stage.width, channels), np.uint8)
            values = IDENTITY[channels] if levels is None else IDENTITY[channels].take(levels, 1)
            stage.run(image, values, part, planes=False, vertical_first=vertical_first)
            image = part
        for crop, place in zip(self.crops, out, strict=False):
            crop.run(image, table, place, planes=planes, vertical_first=vertical_first)
        if self.crops:
            return
        stage, levels = runs[-1]
        table = table if levels is None else table.take(levels, 1)
        stage.run(image, table, out, planes=planes, vertical_first=vertical_first)
        for (top, left, height, width), values in self.erased:
            out[:, top : top + height, left : left + width] = values


Step = Callable[[PlannedImage], None]  # gets the parameters of one image


def pillow_image(pixels: Pixels) -> Any:
    """Return an image of Pillow, RGB or L."""
    return import_module("PIL.Image").fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)


def _with_levels(stages: Sequence[Stage]) -> list[tuple[Stage, Pixels | None]]:
    """Return the stages to run, each with the levels that replace the values of its result, or None.

    A stage that changes single values does not run: its levels belong to the stage before it.
    """
    runs: list[tuple[Stage, Pixels | None]] = []
    for stage in stages:
        levels = levels_of(stage.operations) if runs and isinstance(stage, ColourStage) else None
        if levels is None:
            runs.append((stage, None))
        else:
            runs[-1] = runs[-1][0], levels
    return runs


def _fill(fill: tuple[int, ...], channels: int) -> Pixels:
    return np.array(fill if len(fill) == channels else fill * channels, np.uint8)


def _padded(image: Pixels, stage: KernelStage, fill: Pixels) -> Pixels:
    assert stage.padding is not None
    left, top, right, bottom = stage.padding
    around = (top, bottom), (left, right), (0, 0)
    if stage.mode != "constant":
        return np.pad(image, around, stage.mode)  # type: ignore[call-overload]
    height, width, channels = image.shape
    found = np.empty((height + top + bottom, width + left + right, channels), np.uint8)
    found[...] = fill
    found[top : top + height, left : left + width] = image
    return found


def _grey(image: Pixels, channels: int) -> Pixels:
    """Return Pillow's luma, in each of the channels."""
    if image.shape[2] == 3:
        weights = np.array([19595, 38470, 7471], np.int32)
        image = ((image @ weights + 0x8000) >> 16).astype(np.uint8)[..., None]
    return np.repeat(image, channels, axis=2)
