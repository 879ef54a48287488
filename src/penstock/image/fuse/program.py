"""Program: the effect of a chain of image operations, collected equation by equation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.block.column import Column, DenseColumn
from penstock.block.spec import LeafSpec, TensorSpec
from penstock.errors import PenstockError
from penstock.image.fuse.chain import PerImage
from penstock.image.kernels import (
    ADD,
    BRIGHTNESS,
    CONTRAST,
    DIVIDE,
    HUE,
    LEFT_RIGHT,
    MULTIPLY,
    SATURATION,
    SUBTRACT,
    UP_DOWN,
)
from penstock.trace.arithmetic import EXACT, TRANSPOSE
from penstock.trace.graph import Const, Equation, Keys, Ref
from penstock.trace.lift import RANDOM_OPS, RandomOp

COLOURS = {
    "image.adjust_brightness": (BRIGHTNESS, "delta"),
    "image.adjust_saturation": (SATURATION, "saturation_factor"),
    "image.adjust_hue": (HUE, "delta"),
    "image.adjust_contrast": (CONTRAST, "contrast_factor"),
}
RANDOM_COLOURS = {name.replace("adjust", "random"): found for name, found in COLOURS.items()}
FLIPS = {"image.flip_left_right": LEFT_RIGHT, "image.flip_up_down": UP_DOWN}
RANDOM_FLIPS = {name.replace("flip", "random_flip", 1): axis for name, axis in FLIPS.items()}
ARITHMETIC = {"multiply": MULTIPLY, "divide": DIVIDE, "add": ADD, "subtract": SUBTRACT}
PLAIN_JPEG = {"fancy_upscaling": True, "dct_method": ""}  # the options with which decode_image decodes JPEGs
CASTS = ("image.cast", "astype")
RETYPED = {"image.convert_image_dtype": float(np.float32(1 / 255)), **dict.fromkeys(CASTS, 1.0)}  # factor of the values
CROPS = ("image.crop_to_bounding_box", "image.central_crop", "image.random_crop", "image.random_resized_crop")


Calculation = tuple[int, tuple[float, ...]]  # an operation, and its number, or one for each channel
Last = tuple[Calculation, ...]


@dataclass(frozen=True, slots=True)
class Draw:
    """Return the random parameter `argument` of `op` for each element, from the element's key."""

    op: RandomOp
    keys: Keys
    params: Mapping[str, Any]
    argument: str


@dataclass(frozen=True, slots=True)
class PixelStep:
    """A flip or a colour operation: its code, and its amount or flag."""

    code: int
    amount: float | Draw
    flips: bool = False


@dataclass(frozen=True, slots=True)
class Crop:
    """A crop. Its rectangle is random if the operation is random."""

    equation: Equation
    amount: Draw | None = None


@dataclass(frozen=True, slots=True)
class Program:
    """A program for a uint8 image: steps, `before`, a resize to `size` as float32, flips, arithmetic, a cast.

    With `planes` the result has its channels first. A program of colours only, without `size`, returns a uint8 image.
    `decode` has the parameters of decode_jpeg, if the chain begins with it. With `any_file` it begins with
    decode_image, and the program applies to JPEGs. `before` are the equations on single values before the resize:
    `levels` computes them for the 256 values. `words` are the names of the operations. `rank` is 4 for batches of
    images, which have a random flip per image and one random colour for all.
    """

    decode: Mapping[str, Any] | None = None
    any_file: bool = False
    steps: tuple[PixelStep | Crop, ...] = ()
    before: tuple[Equation, ...] = ()
    size: tuple[int, int] | None = None
    flips_after: tuple[PixelStep, ...] = ()
    last: Last = ()
    to_uint8: bool = False
    planes: bool = False
    words: tuple[str, ...] = field(default=())
    rank: int = 3

    @property
    def colours(self) -> tuple[PixelStep, ...]:
        return tuple(step for step in self.steps if isinstance(step, PixelStep) and not step.flips)

    @property
    def crops(self) -> bool:
        """Return True if only a part of each image is read."""
        return any(isinstance(step, Crop) for step in self.steps)

    @property
    def calculated_before(self) -> Last | None:
        """Return `before` as arithmetic that can run after the resize, or None if it is more than arithmetic."""
        found, dtype = replace(self, last=()), np.dtype(np.uint8)
        for step in self.before:
            numbers = calculations(step, dtype)
            longer = None if numbers is None else found._with(*numbers)
            if longer is None:
                return None
            found, dtype = longer, step.specs[0].dtype
        return found.last

    @property
    def draws(self) -> tuple[Draw, ...]:
        """The random parameters, in the order of the operands with their keys."""
        return tuple(step.amount for step in (*self.steps, *self.flips_after) if isinstance(step.amount, Draw))

    def then(self, equation: Equation, spec: LeafSpec | None) -> Program | None:
        """Return the program with one more operation, on a value with `spec`, or None if it does not fit."""
        if not isinstance(spec, TensorSpec):
            return None
        if equation.primitive is TRANSPOSE:
            found = self._turned(equation)
        elif self.to_uint8:
            return None
        elif self.planes:
            found = self._after(equation, -3) if equation.specs[0] == spec else None
        elif equation.primitive.name in ("image.decode_jpeg", "image.decode_image"):
            found = None if self.words else self._begun(equation)
        # a grey image times three numbers
        elif not self._takes(spec) or spec.shape[-1] not in (None, *_channels(equation)):
            return None
        else:
            steps = (
                self._flipped,
                *(
                    (self._cropped, self._resized, self._coloured, self._levelled)
                    if self.size is None
                    else (self._after,)
                ),
            )
            found = next(filter(None, (step(equation) for step in steps)), None)
        if found is None:
            return None
        rank = self.rank if self.words else max(len(spec.shape), 3)
        return replace(found, words=(*self.words, _word(equation)), rank=rank)

    def _takes(self, spec: TensorSpec) -> bool:
        """Return True if a value is an image or batch like those before. The first value must have levels."""
        if self.words:
            return len(spec.shape) == self.rank
        return len(spec.shape) in (3, 4) and spec.dtype == np.uint8

    def _begun(self, equation: Equation) -> Program | None:
        params = equation.params
        if equation.primitive.name == "image.decode_image":
            plain = np.dtype(params["dtype"]) == np.uint8 and params["channels"] in (1, 3)
            return (
                replace(self, decode={**PLAIN_JPEG, "channels": params["channels"]}, any_file=True) if plain else None
            )
        plain = params["ratio"] == 1 and not params["try_recover_truncated"] and params["acceptable_fraction"] == 1
        return replace(self, decode=params) if plain and params["channels"] in (1, 3) else None

    def _flipped(self, equation: Equation) -> Program | None:
        name = equation.primitive.name
        step = None
        if name in FLIPS:
            step = PixelStep(FLIPS[name], 1.0, flips=True)
        elif name in RANDOM_FLIPS:
            step = PixelStep(RANDOM_FLIPS[name], _draw(equation, "flip"), flips=True)
        if step is None:
            return None
        if self.size is None:
            return replace(self, steps=(*self.steps, step))
        return replace(self, flips_after=(*self.flips_after, step))

    def _coloured(self, equation: Equation) -> Program | None:
        name = equation.primitive.name
        amount: float | Draw | None = None
        if self.before:
            return None
        if name in COLOURS:
            code, argument = COLOURS[name]
            amount = _number(equation.params[argument])
            if amount is None or (code == HUE and abs(amount) > 1):
                return None
        elif name in RANDOM_COLOURS:
            code, argument = RANDOM_COLOURS[name]
            amount = _draw(equation, argument)
        if amount is None or _channels(equation) not in ((None,), (3,)):
            return None
        return replace(self, steps=(*self.steps, PixelStep(code, amount)))

    def _cropped(self, equation: Equation) -> Program | None:
        """Add a crop, for files only. It must come before a contrast, whose mean covers all pixels."""
        name, params = equation.primitive.name, equation.params
        mixed = any(step.code == CONTRAST for step in self.colours)
        if name not in CROPS or self.decode is None or mixed or not _is_bilinear(params):
            return None
        drawn = None if name not in RANDOM_OPS else _draw(equation, "box" if "scale" in params else "offset")
        height, width = params["size"][:2] if "scale" in params else (0, 0)
        size = (int(height), int(width)) if "scale" in params else None
        return replace(self, steps=(*self.steps, Crop(equation, drawn)), size=size)

    def _levelled(self, equation: Equation) -> Program | None:
        """Add a change of each value by itself."""
        found = replace(self, before=(*self.before, equation))
        return found if _is_of_each_value(equation) and levels(found, _channels(equation)[0] or 3) is not None else None

    def _resized(self, equation: Equation) -> Program | None:
        params = equation.params
        if equation.primitive.name != "image.resize" or not _is_bilinear(params) or params["preserve_aspect_ratio"]:
            return None
        height, width = (int(extent) for extent in params["size"])
        return replace(self, size=(height, width))

    def _after(self, equation: Equation, axis: int = -1) -> Program | None:
        """Add arithmetic with a number, or one per channel, on the resized float32, or a cast."""
        if equation.primitive.name in CASTS and equation.specs[0].dtype == np.uint8:
            return None if self.last or self.before or self.planes else replace(self, to_uint8=True)
        found = calculations(equation, np.dtype(np.float32), axis)
        return None if found is None else self._with(*found)

    def _turned(self, equation: Equation) -> Program | None:
        """Add a transposition to channels first, after the resize."""
        fits = self.size is not None and not self.planes and self.rank == 3
        return replace(self, planes=True) if fits and equation.params["axes"] == (2, 0, 1) else None

    def _with(self, *last: Calculation) -> Program | None:
        if any(len(numbers) not in (1, 3) for _, numbers in last):
            return None
        three = [(code, numbers if len(numbers) == 3 else 3 * numbers) for code, numbers in last]
        return replace(self, last=(*self.last, *three))


def _is_bilinear(params: Mapping[str, Any]) -> bool:
    """Return True if the kernels support the resize, or if there is none."""
    return params.get("method", "bilinear") == "bilinear" and not params.get("antialias", False)


def _is_of_each_value(equation: Equation) -> bool:
    """Return True if each value of the result depends on one value and its channel only."""
    consts = [operand for operand in equation.operands if not isinstance(operand, Ref)]
    known = equation.primitive in EXACT or equation.primitive.name in (*RETYPED, "image.normalize")
    return known and all(isinstance(one, Const) and _numbers(one.value) is not None for one in consts)


def levels(program: Program, channels: int) -> npt.NDArray[np.float32] | None:
    """Return the values that replace 0 to 255 before the resize, (channels, 256), or None if one is not finite."""
    found: Column = DenseColumn(np.repeat(np.arange(256, dtype=np.uint8), channels).reshape(1, 1, 256, channels))
    try:
        with np.errstate(all="ignore"):
            for step in program.before:
                operands = [found if isinstance(operand, Ref) else operand for operand in step.operands]
                (found,) = step.primitive.run(operands, step.params, 1, None)
    except PenstockError:
        return None
    assert isinstance(found, DenseColumn)
    array = found.array
    if array.dtype.kind not in "biuf" or not np.isfinite(array).all():
        return None
    return np.ascontiguousarray(array.reshape(256, channels).T, np.float32)


def calculations(equation: Equation, dtype: Any, axis: int = -1) -> Sequence[Calculation] | None:
    """Return the calculations of an equation that turns uint8 or float32 into float32, or None for other equations.

    Numbers are one for all, or one for each channel. Channels are along `axis`.
    """
    name, params = equation.primitive.name, equation.params
    if equation.specs[0].dtype != np.float32 or dtype not in (np.uint8, np.float32):
        return None
    if name in RETYPED:
        return ((MULTIPLY, (RETYPED[name],)),) if dtype == np.uint8 and name not in CASTS else ()
    if name == "image.normalize" and axis == -1:
        mean, std = (_numbers(params[key]) for key in ("mean", "std"))
        return ((SUBTRACT, mean), (DIVIDE, std)) if mean and std and all(std) else None
    if name not in ARITHMETIC:
        return None
    left, right = equation.operands
    value = left if isinstance(left, Const) and name in ("multiply", "add") else right
    numbers = _numbers(value.value, axis) if isinstance(value, Const) else None
    return None if numbers is None else ((ARITHMETIC[name], numbers),)


def _channels(equation: Equation) -> tuple[int | None, ...]:
    """Return the last extent of the result's shape."""
    found = equation.specs[0]
    return found.shape[-1:] if isinstance(found, TensorSpec) else ()


def _draw(equation: Equation, argument: str) -> Draw:
    keys = equation.operands[1]
    assert isinstance(keys, Keys)
    return Draw(RANDOM_OPS[equation.primitive.name], keys, equation.params, argument)


def _word(equation: Equation) -> str:
    return equation.primitive.name.removeprefix("image.")


def _number(value: Any) -> float | None:
    """Return a finite float, or None."""
    array = np.asarray(value)
    if array.ndim or array.dtype.kind not in "biuf" or not np.isfinite(array):
        return None
    return float(array)


def _numbers(value: Any, axis: int = -1) -> tuple[float, ...] | None:
    """Return a finite float32, or one per channel, of a value that broadcasts along the channels, or None."""
    array = np.asarray(value)
    along = array.shape[axis] if array.ndim >= -axis else 1
    if array.dtype.kind not in "biuf" or array.ndim > 3 or array.size != along or not np.isfinite(array).all():
        return None
    return tuple(array.reshape(-1).astype(np.float32).tolist())


_ANY_IMAGE = (1, 1, 3)  # random colours and flips do not depend on the size

Places = npt.NDArray[np.int64]


def per_image(
    program: Program,
    keys: Sequence[npt.NDArray[np.uint64]],
    rows: int,
    batch: int | None = None,
    shapes: Places | None = None,
) -> PerImage:
    """The arguments, flips and windows of the images of `rows` elements, each an image or a batch of `batch`.

    `keys` are those of the program's draws, in order. `shapes` (rows, 3) are needed where there are crops.

    Raises:
        PenstockError: a crop that does not fit its image.
    """
    left = iter(keys)
    images = rows * (1 if batch is None else batch)
    count = len(program.colours)
    args = np.empty((images, count), np.float32)
    flips = np.empty((images, count), np.int64)
    flipped = np.zeros(images, np.int64)
    windows = None if shapes is None else np.hstack((np.zeros((images, 2), np.int64), shapes[:, :2]))
    column = 0
    for step in program.steps:
        if isinstance(step, Crop):
            assert windows is not None
            windows = _within(windows, _boxes(step, left, windows[:, 2:]), flipped)
        elif step.flips:
            flipped = flipped ^ _flip(step, left, rows, batch)
        else:
            args[:, column] = _amounts(step.amount, left, rows, batch)
            flips[:, column] = flipped
            column += 1
    after = np.zeros(images, np.int64)
    for step in program.flips_after:
        after = after ^ _flip(step, left, rows, batch)
    return PerImage(args, flips, flipped, after, windows)


def _boxes(crop: Crop, keys: Iterator[Any], sizes: Places) -> Places:
    """Return the random window of each image for its size: (top, left, height, width)."""
    drawn, equation = crop.amount, crop.equation
    own = next(keys) if drawn is not None else np.empty(0)
    boxes = np.empty((len(sizes), 4), np.int64)
    for size in np.unique(sizes, axis=0):
        alike, shape = (sizes == size).all(axis=1), (*size.tolist(), _channels(equation)[0] or 3)
        if drawn is not None:
            found = drawn.op.sample(own[alike], shape, **drawn.params)
            sides = np.broadcast_to(found["size"][:2], (alike.sum(), 2))
            boxes[alike] = found["box"] if drawn.argument == "box" else np.hstack((found["offset"][:, :2], sides))
        else:  # apply the crop to row numbers and column numbers
            places = (np.arange(size[0]).reshape(1, -1, 1, 1), np.arange(size[1]).reshape(1, 1, -1, 1))
            parts = [DenseColumn(np.broadcast_to(place, (1, *shape))) for place in places]
            rows, columns = (equation.primitive.run([part], equation.params, 1, None)[0].values()[0] for part in parts)
            boxes[alike] = rows[0, 0, 0], columns[0, 0, 0], *rows.shape[:2]
    return boxes


def _within(windows: Places, boxes: Places, flipped: npt.NDArray[np.int64]) -> Places:
    """Return the parts of `windows` that remain after crops in flipped images."""
    found = np.hstack((windows[:, :2] + boxes[:, :2], boxes[:, 2:]))
    for axis, bit in ((0, UP_DOWN), (1, LEFT_RIGHT)):
        rest = windows[:, 2 + axis] - boxes[:, 2 + axis] - boxes[:, axis]
        found[:, axis] = windows[:, axis] + np.where(flipped & bit, rest, boxes[:, axis])
    return found


def _flip(step: PixelStep, keys: Iterator[Any], rows: int, batch: int | None) -> npt.NDArray[np.int64]:
    return np.where(_amounts(step.amount, keys, rows, batch) != 0, step.code, 0)


def _amounts(amount: float | Draw, keys: Iterator[Any], rows: int, batch: int | None) -> npt.NDArray[Any]:
    """Return one number for each image.

    `sample` takes the keys of all elements. A batch may have one number for all.
    """
    if not isinstance(amount, Draw):
        return np.full(rows * (batch or 1), amount, np.float64)
    shape = _ANY_IMAGE if batch is None else (batch, *_ANY_IMAGE)
    sampled = amount.op.sample(next(keys), shape, **amount.params)
    found = np.asarray(sampled[amount.argument]).reshape(rows, -1)
    return np.broadcast_to(found, (rows, batch or 1)).reshape(-1)
