"""Moving: what a chain of moves does to the images of a Block, with the numbers that each draws; and its primitive."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.block.arena import ARENA
from penstock.block.column import Column, DenseColumn
from penstock.image.augment.covering import rectangles
from penstock.image.fuse.inputs import one_by_one
from penstock.image.fuse.moves import KINDS, Moves, constant, cropped, flipped, padded, shown
from penstock.image.fuse.moves_into import Cover, Turn, Window, moves_into, ready
from penstock.image.fuse.program import ARITHMETIC, RETYPED
from penstock.image.geometry.affine import rotations
from penstock.image.geometry.arguments import check_fill, check_fills, check_integer
from penstock.image.geometry.paddings import check_mirrors, check_paddings
from penstock.image.geometry.projective import check_transform
from penstock.image.kernels.numbers import DIVIDE, MULTIPLY, SUBTRACT
from penstock.trace.graph import Allocate, Equation, Keys, Operand, Primitive, Ref
from penstock.trace.random_op import RANDOM_OPS


class Unfit(Exception):
    """These images, or the operations' arguments, are not what the kernel does."""


class Moving:
    """A chain read step by step for images of one shape, or batches of such; `apply` runs it. Refuses with Unfit.

    `images` are (elements, H, W, C) or (elements, N, H, W, C), the elements being batches of N.
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
        self._turn: Turn | None = None
        self._arithmetic: list[tuple[int, npt.NDArray[np.float32]]] = []
        self._covers: list[Cover] = []
        self._dtype = images.dtype
        self._op = ""  # what the step at hand is called

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of an image as it is now."""
        return self._rows.shape[1], self._columns.shape[1], self._channels

    @property
    def element(self) -> tuple[int, ...]:
        """The shape of an element as it is now."""
        return *self._batch, *self.shape

    def read(self, steps: Iterable[Equation], keys: Iterable[npt.NDArray[np.uint64]]) -> None:
        """Take in the steps; `keys` are those of the random ones, in order."""
        left = iter(keys)
        for step in steps:
            name, params = step.primitive.name, step.params
            self._op = name.removeprefix("image.")
            if any(isinstance(operand, Keys) for operand in step.operands):
                params = self._drawn(name, next(left), params)
            elif self._batch and (np.ndim(params.get("angles", 0)) or np.ndim(params.get("offset", 0)) > 1):
                raise Unfit  # a number for each image of a batch
            if name in ARITHMETIC:
                self._calculate((ARITHMETIC[name], constant(step)))
            else:
                _DOES[name](self, **params)

    def _drawn(self, name: str, keys: npt.NDArray[np.uint64], params: Mapping[str, Any]) -> Mapping[str, Any]:
        """What a random step draws for each image; what a batch draws once is that of all its images."""
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
        window = Window(rows, columns, 0 if self._fill is None else self._fill)
        moves_into(self._images, out.reshape(-1, *self.shape), window, self._turn, self._arithmetic, self._covers)

    def _surround(self, value: Any) -> None:
        """Say what stands where no pixel is: one value for the whole window."""
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

    def _rotate(self, *, angles: Any, interpolation: str, fill_mode: str, fill_value: Any) -> None:
        shape = (self._count, *self.shape)
        numbers = rotations(angles, shape, self._op)
        how = check_transform(self._op, shape, self._dtype, numbers, interpolation, fill_mode, None, fill_value)
        self._turn = Turn(*how)

    def _cover(self, *, mask_size: Any, offset: Any, constant_values: Any) -> None:
        boxes = rectangles(self._op, (self._count, *self.shape), mask_size, offset)
        fill = check_fill(self._op, "constant_values", constant_values, self._dtype)
        self._covers.append(Cover(boxes, np.full(self._channels, fill, self._dtype)))

    def _erase(self, *, box: npt.NDArray[np.int64], value: Any, **_: Any) -> None:
        fill = check_fills(self._op, "value", value, self._dtype, self._channels)
        self._covers.append(Cover(box, np.full(self._channels, fill, self._dtype)))

    def _retype(self, factor: float) -> None:
        if self._dtype == np.uint8:
            self._calculate((MULTIPLY, np.array([factor], np.float32)) if factor != 1 else None)

    def _normalise(self, *, mean: Any, std: Any) -> None:
        means, stds = (np.asarray(value, np.float32).reshape(-1) for value in (mean, std))
        if not (np.isfinite(means).all() and np.isfinite(stds).all() and stds.all()):
            raise Unfit
        self._calculate((SUBTRACT, means), (DIVIDE, stds))

    def _calculate(self, *steps: tuple[int, npt.NDArray[np.float32] | None] | None) -> None:
        """Float32 arithmetic; what is covered already is what comes of its value."""
        self._dtype = np.dtype(np.float32)
        self._covers = [Cover(cover.boxes, cover.values.astype(np.float32)) for cover in self._covers]
        for step in steps:
            if step is None:
                continue
            code, given = step
            if given is None or given.size not in (1, self._channels):
                raise Unfit
            numbers = np.broadcast_to(given, self._channels)
            self._arithmetic.append((code, numbers))
            with np.errstate(all="ignore"):
                self._covers = [Cover(cover.boxes, _CALCULATED[code](cover.values, numbers)) for cover in self._covers]


def _of_each(value: Any, given: Mapping[str, Any], name: str, images: int) -> Any:
    """What is drawn for each image of each batch, one after the other; what is given stays as it is."""
    return value if name in given else value.reshape(images, *value.shape[2:])


def _middle(size: int, target: int) -> int:
    """Where `target` pixels begin that have the same centre as `size`, as resize_with_crop_or_pad has it."""
    return (size - target) // 2 if size > target else -((target - size) // 2)


def _retyped(name: str) -> Callable[..., None]:
    def retype(moving: Moving, **_: Any) -> None:
        moving._retype(RETYPED[name])

    return retype


_CALCULATED: Mapping[int, Any] = dict(
    zip(ARITHMETIC.values(), (np.multiply, np.divide, np.add, np.subtract), strict=True)
)
_DOES: Mapping[str, Callable[..., None]] = {
    "image.pad": Moving._pad,
    "image.resize_with_crop_or_pad": Moving._crop_or_pad,
    "image.crop_to_bounding_box": Moving._cut,
    "image.random_crop": Moving._crop,
    "image.flip_left_right": Moving._mirror,
    "image.random_flip_left_right": Moving._mirror,
    "image.flip_up_down": Moving._turn_over,
    "image.random_flip_up_down": Moving._turn_over,
    "image.rotate": Moving._rotate,
    "image.random_rotate": Moving._rotate,
    "image.cutout": Moving._cover,
    "image.random_cutout": Moving._cover,
    "image.random_erasing": Moving._erase,
    "image.normalize": Moving._normalise,
    **{name: _retyped(name) for name in RETYPED},
}


def moved(moves: Moves) -> Equation | None:
    """One equation for the steps of a chain; None where nothing is gained."""
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
