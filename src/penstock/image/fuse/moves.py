"""Moves: a chain of operations that say where pixels come from, and of what is then done to each by itself.

Where paddings, flips and crops lead: which row or column of an image each one of the result shows, -1 being none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.block.spec import LeafSpec, TensorSpec
from penstock.image.fuse.program import ARITHMETIC, RETYPED
from penstock.trace.graph import Const, Equation

VIEWS = {"image.flip_left_right", "image.flip_up_down", "image.crop_to_bounding_box"}  # cost nothing by themselves
WINDOWS = {
    *VIEWS,
    "image.pad",
    "image.resize_with_crop_or_pad",
    "image.random_flip_left_right",
    "image.random_flip_up_down",
    "image.random_crop",
}
TURNS = {"image.rotate", "image.random_rotate"}
COVERS = {"image.cutout", "image.random_cutout", "image.random_erasing"}
KINDS = (np.dtype(np.uint8), np.dtype(np.float32))


@dataclass(frozen=True, slots=True)
class Moves:
    """Moves of an image of uint8 or float32: windows, a rotation, then arithmetic and covered rectangles, any number.

    Or of a batch of them, as one. `steps` are the equations; `phase` is how far the chain has come: 0 windows, 1 the
    rotation, 2 what follows.
    """

    steps: tuple[Equation, ...] = ()
    phase: int = 0

    @property
    def words(self) -> tuple[str, ...]:
        """What the operations are called."""
        return tuple(step.primitive.name.removeprefix("image.") for step in self.steps)

    @property
    def gains(self) -> bool:
        """Whether one pass is fewer than the operations make, which is one for all but views; arithmetic is no move."""
        names = [step.primitive.name for step in self.steps]
        moving = any(name in WINDOWS | TURNS | COVERS for name in names)
        return moving and sum(name not in VIEWS for name in names) > 1

    def then(self, equation: Equation, spec: LeafSpec | None) -> Moves | None:
        """The chain with one more operation, on what has this spec; None where that cannot be part of it."""
        ranks = {len(one.shape) if isinstance(one, TensorSpec) else 0 for one in (spec, *equation.specs)}
        if ranks not in ({3}, {4}) or spec is None or spec.dtype not in KINDS:
            return None
        name = equation.primitive.name
        if name in WINDOWS:
            phase = 0
        elif name in TURNS:
            phase = 1
        elif covers(equation) or is_arithmetic(equation):
            phase = 2
        else:
            return None
        if phase < self.phase or self.phase == phase == 1:
            return None
        return Moves((*self.steps, equation), phase)


def covers(equation: Equation) -> bool:
    """Whether it covers rectangles with a number, or one for each channel; noise is drawn for each value."""
    return equation.primitive.name in COVERS and not isinstance(equation.params.get("value"), str)


def is_arithmetic(equation: Equation) -> bool:
    """Whether it changes each value by itself, to float32, with numbers that are the same for all pixels."""
    name = equation.primitive.name
    if equation.specs[0].dtype != np.float32:
        return False
    return name in RETYPED or name == "image.normalize" or (name in ARITHMETIC and constant(equation) is not None)


def constant(equation: Equation) -> npt.NDArray[np.float32] | None:
    """The number, or the number for each channel, that arithmetic is done with; None where it is another kind."""
    left, right = equation.operands
    value: Any = right
    if isinstance(left, Const):
        value = left if equation.primitive.name in ("multiply", "add") else None
    if not isinstance(value, Const):
        return None
    array = np.asarray(value.value)
    if array.dtype.kind not in "biuf" or array.ndim > 3 or (array.ndim and array.size != array.shape[-1]):
        return None
    return array.reshape(-1).astype(np.float32)


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
    """The places numbered `at`; -1 for numbers that are none.

    >>> shown(np.array([[5, 6]]), np.array([-1, 1, 2])).tolist()
    [[-1, 6, -1]]
    """
    inside = (at >= 0) & (at < places.shape[1])
    return np.where(inside, places[:, np.where(inside, at, 0)], -1)


def flipped(places: Places, flip: Any) -> Places:
    """Backwards where `flip` is true, for all or for each.

    >>> flipped(np.arange(3)[None], np.array([False, True])).tolist()
    [[0, 1, 2], [2, 1, 0]]
    """
    return np.where(np.reshape(flip, (-1, 1)), places[:, ::-1], places)


def cropped(places: Places, starts: Any, extent: int) -> Places:
    """`extent` of them from `starts` on, one for all or one for each.

    >>> cropped(np.arange(4)[None], np.array([0, 2]), 2).tolist()
    [[0, 1], [2, 3]]
    """
    at = np.reshape(starts, (-1, 1)) + np.arange(extent)
    rows = max(len(at), len(places))
    return np.take_along_axis(
        np.broadcast_to(places, (rows, places.shape[1])), np.broadcast_to(at, (rows, extent)), axis=1
    )
