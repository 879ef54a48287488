"""Program: what a chain of image operations does, read off its equations one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.block.spec import LeafSpec, TensorSpec
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
from penstock.trace.arithmetic import TRANSPOSE
from penstock.trace.graph import Const, Equation, Keys
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
PLAIN_JPEG = {"fancy_upscaling": True, "dct_method": ""}  # how decode_image decodes them
RETYPED = {"image.convert_image_dtype": float(np.float32(1 / 255)), "image.cast": 1.0, "astype": 1.0}  # times what


@dataclass(frozen=True, slots=True)
class Draw:
    """A number that each element draws from its key: `argument` of what `op` samples."""

    op: RandomOp
    keys: Keys
    params: Mapping[str, Any]
    argument: str


@dataclass(frozen=True, slots=True)
class Step:
    """A flip or a colour operation: its code and how far, or whether, it goes."""

    code: int
    amount: float | Draw
    flips: bool = False


@dataclass(frozen=True, slots=True)
class Program:
    """A program for an image of uint8: steps, then as float32 a scaling, a resize to `size`, flips, arithmetic, a cast.

    With `planes` the result has its channels first. Colours alone, with no `size`, leave an image of uint8.
    `decode` holds the parameters of decode_jpeg where the chain begins with it; with `any_file` it begins with
    decode_image, and is what is done to JPEGs. `scaling` is None as long as the values
    are uint8. `words` name the operations. `rank` is that of an element: 4 where it is a batch of images, which draw as
    they do there, a flip for each and a colour for all.
    """

    decode: Mapping[str, Any] | None = None
    any_file: bool = False
    steps: tuple[Step, ...] = ()
    scaling: tuple[int, float] | None = None
    size: tuple[int, int] | None = None
    flips_after: tuple[Step, ...] = ()
    last: tuple[tuple[int, tuple[float, float, float]], ...] = ()
    to_uint8: bool = False
    planes: bool = False
    words: tuple[str, ...] = field(default=())
    rank: int = 3

    @property
    def colours(self) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if not step.flips)

    @property
    def draws(self) -> tuple[Draw, ...]:
        """In the order of the operands that bring their keys."""
        return tuple(step.amount for step in (*self.steps, *self.flips_after) if isinstance(step.amount, Draw))

    def then(self, equation: Equation, spec: LeafSpec | None) -> Program | None:
        """The program with one more operation, on what has this spec; None where that cannot be part of it."""
        if not isinstance(spec, TensorSpec):
            return None
        if equation.primitive is TRANSPOSE:
            found = self._turned(equation)
        elif self.to_uint8:
            return None
        elif self.planes:
            found = self._after_planes(equation, spec)
        elif equation.primitive.name in ("image.decode_jpeg", "image.decode_image"):
            found = None if self.words else self._begun(equation)
        elif not self._takes(spec) or spec.shape[-1] not in (None, *_channels(equation)):  # grey times three numbers
            return None
        else:
            found = self._flipped(equation) or (self._before(equation) if self.size is None else self._after(equation))
        if found is None:
            return None
        rank = self.rank if self.words else max(len(spec.shape), 3)
        return replace(found, words=(*self.words, _word(equation)), rank=rank)

    def _takes(self, spec: TensorSpec) -> bool:
        """Whether a value is an image, or a batch of them as it was before, and the first one levels."""
        if self.words:
            return len(spec.shape) == self.rank
        return len(spec.shape) in (3, 4) and spec.dtype == np.uint8

    def _before(self, equation: Equation) -> Program | None:
        """An operation in front of the resize, or the resize."""
        found = self._resized(equation) or self._as_float(equation)
        return self._coloured(equation) if found is None and self.scaling is None else found

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
            step = Step(FLIPS[name], 1.0, flips=True)
        elif name in RANDOM_FLIPS:
            step = Step(RANDOM_FLIPS[name], _draw(equation, "flip"), flips=True)
        if step is None:
            return None
        if self.size is None:
            return replace(self, steps=(*self.steps, step))
        return replace(self, flips_after=(*self.flips_after, step))

    def _coloured(self, equation: Equation) -> Program | None:
        name = equation.primitive.name
        amount: float | Draw | None = None
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
        return replace(self, steps=(*self.steps, Step(code, amount)))

    def _as_float(self, equation: Equation) -> Program | None:
        """uint8 as float32, with its own values or from 0 to 1, or those scaled once."""
        name = equation.primitive.name
        if name in RETYPED:
            if np.dtype(equation.params["dtype"]) != np.float32:
                return None
            return replace(self, scaling=self.scaling or (MULTIPLY, RETYPED[name]))
        found = _arithmetic(equation)
        if found is None or self.scaling != (MULTIPLY, 1.0) or found[0] not in (MULTIPLY, DIVIDE):
            return None
        code, numbers = found
        return replace(self, scaling=(code, numbers[0])) if len(set(numbers)) == 1 else None

    def _resized(self, equation: Equation) -> Program | None:
        params = equation.params
        if equation.primitive.name != "image.resize":
            return None
        if params["method"] != "bilinear" or params["preserve_aspect_ratio"] or params["antialias"]:
            return None
        height, width = (int(extent) for extent in params["size"])
        return replace(self, size=(height, width))

    def _after(self, equation: Equation) -> Program | None:
        """Arithmetic with a number, or one per channel, on the resized float32."""
        name = equation.primitive.name
        if name == "image.cast":
            dtype = np.dtype(equation.params["dtype"])
            if dtype == np.uint8 and not self.last and self.scaling in (None, (MULTIPLY, 1.0)):
                return replace(self, to_uint8=True)
            return self if dtype == np.float32 else None
        if name == "image.normalize":
            mean, std = (_per_channel(equation.params[key]) for key in ("mean", "std"))
            return None if mean is None or std is None else self._with((SUBTRACT, mean), (DIVIDE, std))
        found = _arithmetic(equation)
        return None if found is None else self._with(found)

    def _turned(self, equation: Equation) -> Program | None:
        """Channels first, behind the resize."""
        fits = self.size is not None and not self.planes and self.rank == 3
        return replace(self, planes=True) if fits and equation.params["axes"] == (2, 0, 1) else None

    def _after_planes(self, equation: Equation, spec: TensorSpec) -> Program | None:
        """Arithmetic with a number, or one per channel, where channels come first."""
        numbers = [operand for operand in equation.operands if isinstance(operand, Const)]
        made = equation.specs[0]
        if len(numbers) != 1 or not isinstance(made, TensorSpec) or made.shape != spec.shape:
            return None
        array = np.asarray(numbers[0].value)
        if array.size != 1 and array.shape != (3, 1, 1):
            return None
        plain = tuple(Const(array.reshape(-1)) if one is numbers[0] else one for one in equation.operands)
        found = _arithmetic(replace(equation, operands=plain))
        return None if found is None else self._with(found)

    def _with(self, *last: tuple[int, tuple[float, float, float]]) -> Program:
        return replace(self, last=(*self.last, *last))


def _channels(equation: Equation) -> tuple[int | None, ...]:
    """The last extent of the result's shape."""
    found = equation.specs[0]
    return found.shape[-1:] if isinstance(found, TensorSpec) else ()


def _draw(equation: Equation, argument: str) -> Draw:
    keys = equation.operands[1]
    assert isinstance(keys, Keys)
    return Draw(RANDOM_OPS[equation.primitive.name], keys, equation.params, argument)


def _arithmetic(equation: Equation) -> tuple[int, tuple[float, float, float]] | None:
    """An operation of float32 with constants that keeps it float32."""
    name = equation.primitive.name
    if name not in ARITHMETIC or equation.specs[0].dtype != np.float32:
        return None
    left, right = equation.operands
    if isinstance(right, Const):
        numbers = _per_channel(right.value)
    else:
        numbers = _per_channel(left.value) if isinstance(left, Const) and name in ("multiply", "add") else None
    return None if numbers is None else (ARITHMETIC[name], numbers)


def _word(equation: Equation) -> str:
    return equation.primitive.name.removeprefix("image.")


def _number(value: Any) -> float | None:
    """A finite float, or None."""
    array = np.asarray(value)
    if array.ndim or array.dtype.kind not in "biuf" or not np.isfinite(array):
        return None
    return float(array)


def _per_channel(value: Any) -> tuple[float, float, float] | None:
    """Three float32 numbers of a scalar, or of an array that broadcasts along an image's channels."""
    array = np.asarray(value)
    wide = array.ndim > 3 or array.size != array.shape[-1] if array.ndim else False
    if array.dtype.kind not in "biuf" or array.size not in (1, 3) or wide or not np.isfinite(array).all():
        return None
    red, green, blue = np.broadcast_to(array.reshape(-1).astype(np.float32), 3).tolist()
    return red, green, blue


_ANY_IMAGE = (1, 1, 3)  # what colours and flips draw does not depend on the size


def per_image(
    program: Program, keys: Sequence[npt.NDArray[np.uint64]], rows: int, batch: int | None = None
) -> PerImage:
    """The arguments and flips of the images of `rows` elements, each an image or a batch of `batch`.

    `keys` are those of the program's draws, in order.
    """
    left = iter(keys)
    images = rows * (1 if batch is None else batch)
    count = len(program.colours)
    args = np.empty((images, count), np.float32)
    flips = np.empty((images, count), np.int64)
    flipped = np.zeros(images, np.int64)
    column = 0
    for step in program.steps:
        if step.flips:
            flipped = flipped ^ _flip(step, left, rows, batch)
        else:
            args[:, column] = _amounts(step.amount, left, rows, batch)
            flips[:, column] = flipped
            column += 1
    after = np.zeros(images, np.int64)
    for step in program.flips_after:
        after = after ^ _flip(step, left, rows, batch)
    return PerImage(args, flips, flipped, after)


def _flip(step: Step, keys: Iterator[Any], rows: int, batch: int | None) -> npt.NDArray[np.int64]:
    return np.where(_amounts(step.amount, keys, rows, batch) != 0, step.code, 0)


def _amounts(amount: float | Draw, keys: Iterator[Any], rows: int, batch: int | None) -> npt.NDArray[Any]:
    """One number for each image; `sample` takes the keys of all elements. One for a batch is that of its images."""
    if not isinstance(amount, Draw):
        return np.full(rows * (batch or 1), amount, np.float64)
    shape = _ANY_IMAGE if batch is None else (batch, *_ANY_IMAGE)
    sampled = amount.op.sample(next(keys), shape, **amount.params)
    found = np.asarray(sampled[amount.argument]).reshape(rows, -1)
    return np.broadcast_to(found, (rows, batch or 1)).reshape(-1)
