"""The primitive that stands for a chain of moves, and how it runs over a Block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from penstock.block.arena import ARENA
from penstock.block.column import Column, DenseColumn
from penstock.image.fuse.inputs import one_by_one
from penstock.image.fuse.moves import KINDS, Moves
from penstock.image.fuse.moving import Moving, Unfit
from penstock.image.kernels.geometry.moves import ready
from penstock.trace.graph import Allocate, Equation, Keys, Operand, Primitive, Ref


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
