"""What a Program's steps are for each element of a Block: constants, or drawn from the elements' keys all at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.image.fuse.program import Draw, Program, Step
from penstock.image.kernels.chain.run import PerImage

_ANY_IMAGE = (1, 1, 3)  # what colours and flips draw does not depend on the size


def per_image(program: Program, keys: Sequence[npt.NDArray[np.uint64]], rows: int) -> PerImage:
    """The arguments and flips of `rows` elements; `keys` are those of the program's draws, in order."""
    left = iter(keys)
    count = len(program.colours)
    args = np.empty((rows, count), np.float32)
    flips = np.empty((rows, count), np.int64)
    flipped = np.zeros(rows, np.int64)
    column = 0
    for step in program.steps:
        if step.flips:
            flipped = flipped ^ _flip(step, left, rows)
        else:
            args[:, column] = _amounts(step.amount, left, rows)
            flips[:, column] = flipped
            column += 1
    after = np.zeros(rows, np.int64)
    for step in program.flips_after:
        after = after ^ _flip(step, left, rows)
    return PerImage(args, flips, flipped, after)


def _flip(step: Step, keys: Iterator[Any], rows: int) -> npt.NDArray[np.int64]:
    return np.where(_amounts(step.amount, keys, rows) != 0, step.code, 0)


def _amounts(amount: float | Draw, keys: Iterator[Any], rows: int) -> npt.NDArray[Any]:
    """One number for each element; `sample` takes the keys of all."""
    if not isinstance(amount, Draw):
        return np.full(rows, amount, np.float64)
    sampled = amount.op.sample(next(keys), _ANY_IMAGE, **amount.params)
    return np.asarray(sampled[amount.argument]).reshape(rows)
