"""The primitives that stand for a chain: which chains have one, and how it runs over a Block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.block.column import Column, DenseColumn
from penstock.image.fuse.approximate import decode_scaled, run_approximately
from penstock.image.fuse.inputs import (
    are_jpegs,
    are_rgb,
    arrays,
    contents,
    decoded,
    memory,
    one_by_one,
    raise_first,
    settings,
)
from penstock.image.fuse.program import Program
from penstock.image.fuse.rows import per_image
from penstock.image.jpeg_block import FLIPS, JpegBlock
from penstock.image.kernels.chain.run import PerImage, Recipe, chain_into, images_of, ready
from penstock.image.kernels.codes import DIVIDE, LEFT_RIGHT, MULTIPLY, UP_DOWN
from penstock.trace.graph import Allocate, Equation, Operand, Primitive, Ref, Run


def fused(program: Program, steps: Sequence[Equation], *, approximate: bool) -> Equation | None:
    """One equation for `steps`, which together are `program`; None where nothing is gained, or not all can be done."""
    if program.size is None or len(steps) < 2:
        return None
    if not program.colours:
        return None if program.decode is None else _decode_resize(program, steps, approximate=approximate)
    approximate = approximate and program.rank == 3
    name, run = ("approximately", run_approximately) if approximate else ("fused", _run_chain)
    return _equation(f"image.{name}({', '.join(program.words)})", run, program, steps)


def _equation(name: str, run: Any, program: Program, steps: Sequence[Equation]) -> Equation:
    specs = steps[-1].specs
    image = next(operand for operand in steps[0].operands if isinstance(operand, Ref))
    operands: tuple[Operand, ...] = (image, *(draw.keys for draw in program.draws))
    chain = Primitive(name, lambda _, __: specs, _of_any_file(run) if program.any_file else run)
    return Equation(chain, operands, {"program": program, "steps": steps}, specs)


def _of_any_file(run: Run) -> Run:
    """What `run` does to JPEGs, for files that may be others: these are decoded first."""

    def run_or_decode(
        operands: Sequence[Any], params: Mapping[str, Any], rows: int, allocate: Allocate | None
    ) -> Sequence[Column]:
        if are_jpegs(operands[0]):
            return run(operands, params, rows, allocate)
        first, *steps = params["steps"]
        program = replace(params["program"], decode=None, any_file=False)
        images = first.primitive.run(operands[:1], first.params, rows, None)[0]
        if not program.colours:
            return one_by_one(steps, [images, *operands[1:]], rows)
        return run([images, *operands[1:]], {"program": program, "steps": steps}, rows, allocate)

    return run_or_decode


def _decode_resize(program: Program, steps: Sequence[Equation], *, approximate: bool) -> Equation | None:
    """Without colours one kernel does it all, if a number that all values are multiplied or divided by is the last."""
    scales = [code in (MULTIPLY, DIVIDE) and len(set(numbers)) == 1 for code, numbers in program.last]
    both_sides = {step.code for step in program.steps} & {step.code for step in program.flips_after}
    if scales not in ([], [True]) or program.scaling is not None or both_sides:
        return None
    if approximate:
        return _equation("image.decode_scaled_resize", _run_decode_scaled, program, steps)
    return _equation("image.decode_resize", _run_decode_resize, program, steps)


def _run_decode_resize(
    operands: Sequence[Any], params: Mapping[str, Any], rows: int, allocate: Allocate | None
) -> list[Column]:
    program = params["program"]
    out = memory(program, program.decode["channels"], rows, allocate)
    flips = per_image(program, operands[1:], rows)
    failed = JpegBlock(contents(operands[0])).decode_resize(
        out,
        flip_left_right=_flips(flips, LEFT_RIGHT),
        flip_up_down=_flips(flips, UP_DOWN),
        **_scale(program),
        **settings(program),
    )
    raise_first(failed)
    return [DenseColumn(out)]


def _run_decode_scaled(
    operands: Sequence[Any], params: Mapping[str, Any], rows: int, allocate: Allocate | None
) -> list[Column]:
    program = params["program"]
    out = memory(program, program.decode["channels"], rows, allocate)
    numbers = per_image(program, operands[1:], rows)
    flips = numbers.before ^ numbers.after
    raise_first(decode_scaled(contents(operands[0]), out, flips, program, _scale(program)))
    return [DenseColumn(out)]


def _scale(program: Program) -> dict[str, Any]:
    return {"multiply" if code == MULTIPLY else "divide": numbers[0] for code, numbers in program.last}


def _flips(flips: PerImage, axis: int) -> npt.NDArray[np.int8]:
    before, after = (np.int8(FLIPS.index(word)) for word in ("before", "after"))
    return np.where(flips.before & axis, before, np.where(flips.after & axis, after, np.int8(0)))


def _run_chain(
    operands: Sequence[Any], params: Mapping[str, Any], rows: int, allocate: Allocate | None
) -> list[Column]:
    program, column = params["program"], operands[0]
    batches = program.rank == 4  # of images: as many more images
    if not ready() or (program.decode is None and not are_rgb(column)) or (batches and type(column) is not DenseColumn):
        return one_by_one(params["steps"], operands, rows)
    batch = column.array.shape[1] if batches else None
    if batch is not None:
        column = DenseColumn(column.array.reshape(-1, *column.array.shape[2:]))
    codes = tuple(step.code for step in program.colours)
    recipe = Recipe(program.size, codes, program.scaling or (MULTIPLY, 1.0), program.last)
    numbers = per_image(program, operands[1:], rows, batch)
    found = memory(program, 3, rows, allocate, batch)
    out = found.reshape(-1, *found.shape[-3:])
    at = 0
    here = map(images_of, arrays(column)) if program.decode is None else decoded(contents(column), program)
    for images in here:
        end = at + len(images.starts)
        chain_into(images, out[at:end], recipe, numbers.part(at, end))
        at = end
    return [DenseColumn(found)]
