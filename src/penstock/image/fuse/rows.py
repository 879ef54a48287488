"""What a Program's steps are for each element of a Block: constants, or drawn from the elements' keys all at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.image.fuse.program import Draw, Program, Step
from penstock.image.kernels.chain.run import PerImage

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
