"""Moving: a chain of moves on the images of a Block, with the numbers of each element.

Moves describes the chain: the source of each pixel, and the operations on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.block.arena import ARENA
from penstock.block.column import Column, DenseColumn
from penstock.block.spec import LeafSpec, TensorSpec
from penstock.image.augment.covering import rectangles
from penstock.image.checks import check_fill, check_fills, check_integer
from penstock.image.fuse.inputs import one_by_one
from penstock.image.fuse.program import Calculation, calculations
from penstock.image.geometry.affine import rotations
from penstock.image.geometry.crops import check_mirrors, check_paddings
from penstock.image.geometry.moves import Cover, CropWindow, moves_into, ready
from penstock.image.geometry.projective import PixelSampling, check_transform
from penstock.image.geometry.transform_reference import ProjectiveTransform
from penstock.image.kernels import CALCULATE
from penstock.trace.graph import Allocate, Equation, Keys, Operand, Primitive, Ref
from penstock.trace.lift import RANDOM_OPS

# Paddings, flips and crops are arrays of source rows and columns for each row or column of the result; -1 is the fill.

# operations that cost nothing alone
VIEWS = {"image.flip_left_right", "image.flip_up_down", "image.crop_to_bounding_box"}
WINDOW, TURN, FINISH = range(3)  # phases of a chain; the last one has arithmetic and covered rectangles
KINDS = (np.dtype(np.uint8), np.dtype(np.float32))


@dataclass(frozen=True, slots=True)
class Moves:
    """Moves of a uint8 or float32 image, or of a batch: windows, a rotation, then arithmetic and covered rectangles.

    `steps` are the equations. `phase` is the progress of the chain.
    """

    steps: tuple[Equation, ...] = ()
    phase: int = WINDOW

    @property
    def words(self) -> tuple[str, ...]:
        """The names of the operations."""
        return tuple(step.primitive.name.removeprefix("image.") for step in self.steps)

    @property
    def gains(self) -> bool:
        """True if one pass replaces several. Each operation is one pass, except views. Arithmetic alone is no move."""
        names = [step.primitive.name for step in self.steps]
        return any(name in _MOVES for name in names) and sum(name not in VIEWS for name in names) > 1

    def then(self, equation: Equation, spec: LeafSpec | None) -> Moves | None:
        """Return the chain with one more operation, on a value with `spec`, or None if it does not fit."""
        ranks = {len(one.shape) if isinstance(one, TensorSpec) else 0 for one in (spec, *equation.specs)}
        if ranks not in ({3}, {4}) or spec is None or spec.dtype not in KINDS:
            return None
        name = equation.primitive.name
        phase, _ = _MOVES.get(name, (FINISH, None))
        if phase < self.phase or self.phase == phase == TURN:
            return None
        if name in _MOVES:
            fits = not isinstance(equation.params.get("value"), str)  # a rectangle of noise is random for each value
        else:
            fits = calculations(equation, spec.dtype) is not None
        return Moves((*self.steps, equation), phase) if fits else None


Places = npt.NDArray[np.int64]


def padded(places: Places, before: int, after: int, mode: str) -> Places:
    """`places` (N, size) after padding one axis as tf.pad does.

    >>> here = np.arange(3)[None]
    >>> [padded(here, 2, 0, mode).tolist()[0] for mode in ("CONSTANT", "REFLECT", "SYMMETRIC")]
    [[-1, -1, 0, 1, 2], [2, 1, 0, 1, 2], [1, 0, 0, 1, 2]]
    """
    size = places.shape[1]
    at = np.arange(-before, size + after)
    if mode != "CONSTANT":
        edge = 1 if mode == "SYMMETRIC" else 0
        at = np.where(at < 0, -at - edge, at)
        at = np.where(at >= size, 2 * size - 2 + edge - at, at)
    return shown(places, at)


def shown(places: Places, at: Places) -> Places:
    """Return the places with the numbers `at`, or -1 for invalid numbers.

    >>> shown(np.array([[5, 6]]), np.array([-1, 1, 2])).tolist()
    [[-1, 6, -1]]
    """
    inside = (at >= 0) & (at < places.shape[1])
    return np.where(inside, places[:, np.where(inside, at, 0)], -1)


def flipped(places: Places, flip: Any) -> Places:
    """Reverse the places if `flip` is true, for all or for each.

    >>> flipped(np.arange(3)[None], np.array([False, True])).tolist()
    [[0, 1, 2], [2, 1, 0]]
    """
    return np.where(np.reshape(flip, (-1, 1)), places[:, ::-1], places)


def cropped(places: Places, starts: Any, extent: int) -> Places:
    """Return `extent` places from `starts` on, one start for all or one for each.

    >>> cropped(np.arange(4)[None], np.array([0, 2]), 2).tolist()
    [[0, 1], [2, 3]]
    """
    at = np.reshape(starts, (-1, 1)) + np.arange(extent)
    rows = max(len(at), len(places))
    return np.take_along_axis(
        np.broadcast_to(places, (rows, places.shape[1])), np.broadcast_to(at, (rows, extent)), axis=1
    )


class Unfit(Exception):
    """The images or the arguments of the operations are not supported by the kernel."""


class Moving:
    """A chain, read step by step for images or batches of one shape. `apply` runs it. Unsupported steps raise Unfit.

    `images` are (elements, H, W, C), or (elements, N, H, W, C) for batches of N.
    """

    def __init__(self, images: npt.NDArray[Any]) -> None:
        if not images.size:
            raise Unfit
        self._batch = images.shape[1:-3]  # (N,), or nothing
        self._images = images = images.reshape(-1, *images.shape[-3:])
        count, height, width, self._channels = images.shape
        self._rows, self._columns = np.arange(height)[None], np.arange(width)[None]
        self._count = count
        self._fill: Any = None
        self._turn: ProjectiveTransform | None = None
        self._arithmetic: list[tuple[int, npt.NDArray[np.float32]]] = []
        self._covers: list[Cover] = []
        self._dtype = images.dtype
        self._op = ""  # name of the current step

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of an image after the steps read so far."""
        return self._rows.shape[1], self._columns.shape[1], self._channels

    @property
    def element(self) -> tuple[int, ...]:
        """The shape of an element after the steps read so far."""
        return *self._batch, *self.shape

    def read(self, steps: Iterable[Equation], keys: Iterable[npt.NDArray[np.uint64]]) -> None:
        """Read the steps. `keys` are those of the random steps, in order."""
        left = iter(keys)
        for step in steps:
            name, params = step.primitive.name, step.params
            self._op = name.removeprefix("image.")
            if any(isinstance(operand, Keys) for operand in step.operands):
                params = self._drawn(name, next(left), params)
            elif self._batch and (np.ndim(params.get("angles", 0)) or np.ndim(params.get("offset", 0)) > 1):
                raise Unfit  # a number for each image of a batch
            if name in _MOVES:
                _MOVES[name][1](self, **params)
            else:
                self._calculate(*(calculations(step, self._dtype) or ()))

    def _drawn(self, name: str, keys: npt.NDArray[np.uint64], params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a random step's parameters for each image. One parameter of a batch applies to all its images."""
        drawn = RANDOM_OPS[name].sample(keys, self.element, **params)
        if not self._batch:
            return drawn
        size = self._batch[0]
        if name == "image.random_crop":
            if drawn["size"][0] != size:
                raise Unfit
            return {"offset": np.repeat(drawn["offset"][:, 1:], size, axis=0), "size": drawn["size"][1:]}
        return {key: _of_each(value, params, key, len(keys) * size) for key, value in drawn.items()}

    def apply(self, out: npt.NDArray[Any]) -> None:
        """Write the results."""
        rows, columns = (
            np.broadcast_to(places, (self._count, places.shape[1])) for places in (self._rows, self._columns)
        )
        window = CropWindow(rows, columns, 0 if self._fill is None else self._fill)
        moves_into(self._images, out.reshape(-1, *self.shape), window, self._turn, self._arithmetic, self._covers)

    def _surround(self, value: Any) -> None:
        """Set the value outside of the image. The whole window has only one."""
        if self._fill is not None and self._fill != value:
            raise Unfit
        self._fill = value

    def _pad(self, *, paddings: Any, mode: Any, constant_values: Any) -> None:
        pairs, name = check_paddings(len(self.element), paddings, mode)
        check_mirrors(self.element, pairs, name)
        *outer, rows, columns, channels = pairs
        if any(pair != (0, 0) for pair in (*outer, channels)):
            raise Unfit
        if name == "CONSTANT":
            self._surround(check_fill(self._op, "constant_values", constant_values, self._dtype))
        self._rows, self._columns = padded(self._rows, *rows, name), padded(self._columns, *columns, name)

    def _crop_or_pad(self, *, target_height: Any, target_width: Any) -> None:
        self._surround(self._dtype.type(0))
        height = check_integer(self._op, "target_height", target_height, 1)
        width = check_integer(self._op, "target_width", target_width, 1)
        self._rows, self._columns = (
            shown(places, np.arange(target) + _middle(places.shape[1], target))
            for places, target in ((self._rows, height), (self._columns, width))
        )

    def _cut(self, *, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any) -> None:
        op = self._op
        top, left = check_integer(op, "offset_height", offset_height), check_integer(op, "offset_width", offset_width)
        bottom = top + check_integer(op, "target_height", target_height, 1)
        right = left + check_integer(op, "target_width", target_width, 1)
        if bottom > self.shape[0] or right > self.shape[1]:
            raise Unfit
        self._rows, self._columns = self._rows[:, top:bottom], self._columns[:, left:right]

    def _crop(self, *, offset: npt.NDArray[np.int64], size: tuple[int, ...]) -> None:
        if size[2] != self._channels or 0 in size:
            raise Unfit
        self._rows = cropped(self._rows, offset[:, 0], size[0])
        self._columns = cropped(self._columns, offset[:, 1], size[1])

    def _mirror(self, *, flip: Any = True) -> None:
        self._columns = flipped(self._columns, flip)

    def _turn_over(self, *, flip: Any = True) -> None:
        self._rows = flipped(self._rows, flip)

    def _rotate(self, *, angles: Any, **sampling: Any) -> None:
        shape = (self._count, *self.shape)
        numbers = rotations(angles, shape, self._op)
        self._turn = check_transform(self._op, shape, self._dtype, numbers, PixelSampling(**sampling), shape[1:3])

    def _cover(self, *, mask_size: Any, offset: Any, constant_values: Any) -> None:
        boxes = rectangles(self._op, (self._count, *self.shape), mask_size, offset)
        fill = check_fill(self._op, "constant_values", constant_values, self._dtype)
        self._covers.append(Cover(boxes, np.full(self._channels, fill, self._dtype)))

    def _erase(self, *, box: npt.NDArray[np.int64], value: Any, **_: Any) -> None:
        fill = check_fills(self._op, "value", value, self._dtype, self._channels)
        self._covers.append(Cover(box, np.full(self._channels, fill, self._dtype)))

    def _calculate(self, *steps: Calculation) -> None:
        """Add float32 arithmetic, and apply it to the values of covered rectangles."""
        self._dtype = np.dtype(np.float32)
        self._covers = [Cover(cover.boxes, cover.values.astype(np.float32)) for cover in self._covers]
        for code, given in steps:
            if len(given) not in (1, self._channels):
                raise Unfit
            numbers = np.broadcast_to(np.array(given, np.float32), self._channels)
            self._arithmetic.append((code, numbers))
            with np.errstate(all="ignore"):
                self._covers = [Cover(cover.boxes, CALCULATE[code](cover.values, numbers)) for cover in self._covers]


def _of_each(value: Any, given: Mapping[str, Any], name: str, images: int) -> Any:
    """Return random parameters for each image of each batch, concatenated. A fixed parameter is unchanged."""
    return value if name in given else value.reshape(images, *value.shape[2:])


def _middle(size: int, target: int) -> int:
    """Return the start of `target` pixels with the centre of `size`, as in resize_with_crop_or_pad."""
    return (size - target) // 2 if size > target else -((target - size) // 2)


_MOVES: Mapping[str, tuple[int, Callable[..., None]]] = {
    "image.pad": (WINDOW, Moving._pad),
    "image.resize_with_crop_or_pad": (WINDOW, Moving._crop_or_pad),
    "image.crop_to_bounding_box": (WINDOW, Moving._cut),
    "image.random_crop": (WINDOW, Moving._crop),
    "image.flip_left_right": (WINDOW, Moving._mirror),
    "image.random_flip_left_right": (WINDOW, Moving._mirror),
    "image.flip_up_down": (WINDOW, Moving._turn_over),
    "image.random_flip_up_down": (WINDOW, Moving._turn_over),
    "image.rotate": (TURN, Moving._rotate),
    "image.random_rotate": (TURN, Moving._rotate),
    "image.cutout": (FINISH, Moving._cover),
    "image.random_cutout": (FINISH, Moving._cover),
    "image.random_erasing": (FINISH, Moving._erase),
}


def moved(moves: Moves) -> Equation | None:
    """Return one equation for the steps of a chain, or None if it saves nothing."""
    if not moves.gains:
        return None
    steps = moves.steps
    specs = steps[-1].specs
    image = next(operand for operand in steps[0].operands if isinstance(operand, Ref))
    draws = [operand for step in steps for operand in step.operands if isinstance(operand, Keys)]
    operands: tuple[Operand, ...] = (image, *draws)
    name = f"image.moved({', '.join(moves.words)})"
    return Equation(Primitive(name, lambda _, __: specs, _run), operands, {"steps": steps}, specs)


def _run(operands: Sequence[Any], params: Mapping[str, Any], rows: int, allocate: Allocate | None) -> Sequence[Column]:
    column, steps = operands[0], params["steps"]
    if not (isinstance(column, DenseColumn) and column.array.ndim >= 4 and column.array.dtype in KINDS and ready()):
        return one_by_one(steps, operands, rows)
    try:
        moving = Moving(column.array)
        moving.read(steps, operands[1:])
    except Unfit:
        return one_by_one(steps, operands, rows)
    dtype = np.dtype(steps[-1].specs[0].dtype)
    place = None if allocate is None else allocate(moving.element, dtype)
    out = ARENA.empty((rows, *moving.element), dtype) if place is None else place
    moving.apply(out)
    return [DenseColumn(out)]
