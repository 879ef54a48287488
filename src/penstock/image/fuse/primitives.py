"""The primitives of chains: which chains have one, and how it runs over a Block.

`fuse` finds the chains in a graph, and replaces each by one primitive.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from penstock.block.column import Column, DenseColumn
from penstock.block.spec import LeafSpec, TensorSpec
from penstock.errors import PenstockError
from penstock.image.fuse.chain import Images, PerImage, Recipe, chain_into, images_of, ready
from penstock.image.fuse.inputs import (
    are_jpegs,
    are_rgb,
    arrays,
    decoded,
    files,
    memory,
    one_by_one,
    raise_first,
    settings,
)
from penstock.image.fuse.moving import Moves, moved
from penstock.image.fuse.program import CASTS, PixelStep, Program, levels, per_image
from penstock.image.jpeg.block import FLIPS, JpegBlock
from penstock.image.kernels import LEFT_RIGHT, UP_DOWN
from penstock.trace.graph import Allocate, Equation, Graph, Operand, Primitive, Ref, Run


def fused(program: Program, steps: Sequence[Equation]) -> Equation | None:
    """Return one equation for `steps`, which form `program`, or None if it saves nothing or is not supported."""
    if len(steps) < 2:
        return None
    sized = program if program.size is not None else _sized(program, steps)
    if sized is None:
        return _recoloured(program, steps)
    program = sized
    if not program.colours and program.decode is not None:
        return _decode_resize(program, steps)
    if not program.colours and not program.before:
        return None
    return _equation(f"image.fused({', '.join(program.words)})", _run_chain, program, steps)


def _equation(name: str, run: Any, program: Program, steps: Sequence[Equation]) -> Equation:
    specs = steps[-1].specs
    image = next(operand for operand in steps[0].operands if isinstance(operand, Ref))
    operands: tuple[Operand, ...] = (image, *(draw.keys for draw in program.draws))
    chain = Primitive(name, lambda _, __: specs, _of_any_file(run) if program.any_file else run)
    channels = 3 if program.decode is None else program.decode["channels"]
    table = levels(program, channels) if program.before else None
    return Equation(chain, operands, {"program": program, "steps": steps, "levels": table}, specs)


def _of_any_file(run: Run) -> Run:
    """Wrap `run`, which takes JPEGs, for files of any format. Other files are decoded first."""

    def run_or_decode(
        operands: Sequence[Any], params: Mapping[str, Any], rows: int, allocate: Allocate | None
    ) -> Sequence[Column]:
        if are_jpegs(operands[0]):
            return run(operands, params, rows, allocate)
        first, *steps = params["steps"]
        program = replace(params["program"], decode=None, any_file=False)
        images = first.primitive.run(operands[:1], first.params, rows, None)[0]
        if not program.colours or program.crops:
            return one_by_one(steps, [images, *operands[1:]], rows)
        return run([images, *operands[1:]], {**params, "program": program, "steps": steps}, rows, allocate)

    return run_or_decode


def _sized(program: Program, steps: Sequence[Equation]) -> Program | None:
    """Return a program whose images all end with one size as a resize to this size. It keeps each level."""
    found, last = steps[-1].specs[0], program.calculated_before
    if not (isinstance(found, TensorSpec) and program.crops and last is not None) or None in found.shape:
        return None
    height, width = (extent or 0 for extent in found.shape[:2])
    return replace(program, size=(height, width), before=(), last=last, to_uint8=found.dtype == np.uint8)


def _recoloured(program: Program, steps: Sequence[Equation]) -> Equation | None:
    """Return colour operations alone as a chain with a resize to the image's own size, which keeps each level."""
    if len(program.colours) < 2 or program.decode is not None or program.before:
        return None
    return _equation(f"image.fused({', '.join(program.words)})", _run_chain, replace(program, to_uint8=True), steps)


def _decode_resize(program: Program, steps: Sequence[Equation]) -> Equation | None:
    """Return the equation of a program without colours, which one kernel computes; None if it flips on both sides."""
    both_sides = {step.code for step in program.steps if isinstance(step, PixelStep)} & {
        step.code for step in program.flips_after
    }
    if both_sides:
        return None
    within = ", ".join(word for word in program.words[1:] if word != "resize")
    name = f"image.decode_resize({within})" if within else "image.decode_resize"
    return _equation(name, _run_decode_resize, program, steps)


def _read(program: Program, operands: Sequence[Any], rows: int) -> tuple[JpegBlock, PerImage] | None:
    """Return the files and their random parameters.

    None if a crop fails, or the header of a cropped file is invalid.
    """
    block = files(operands[0])
    shapes = block.shapes() if program.crops else None
    if shapes is not None and not shapes.all():
        return None
    try:
        return block, per_image(program, operands[1:], rows, shapes=shapes)
    except PenstockError:
        return None


def _run_decode_resize(
    operands: Sequence[Any], params: Mapping[str, Any], rows: int, allocate: Allocate | None
) -> Sequence[Column]:
    program = params["program"]
    found = _read(program, operands, rows)
    if found is None:
        return one_by_one(params["steps"], operands, rows)
    block, flips = found
    out = memory(program, program.decode["channels"], rows, allocate)
    failed = block.decode_resize(
        out,
        flip_left_right=_flips(flips, LEFT_RIGHT),
        flip_up_down=_flips(flips, UP_DOWN),
        levels=params["levels"],
        planes=program.planes,
        windows=flips.windows,
        last=program.last,
        **settings(program),
    )
    raise_first(failed)
    return [DenseColumn(out)]


def _flips(flips: PerImage, axis: int) -> npt.NDArray[np.int8]:
    before, after = (np.int8(FLIPS.index(word)) for word in ("before", "after"))
    return np.where(flips.before & axis, before, np.where(flips.after & axis, after, np.int8(0)))


def _run_chain(
    operands: Sequence[Any], params: Mapping[str, Any], rows: int, allocate: Allocate | None
) -> Sequence[Column]:
    program, column = params["program"], operands[0]
    batches = program.rank == 4  # a batch counts as several images
    whole = type(column) is DenseColumn or not (batches or program.size is None)
    if not ready() or (program.decode is None and not are_rgb(column)) or not whole:
        return one_by_one(params["steps"], operands, rows)
    if program.size is None:
        program = replace(program, size=column.array.shape[-3:-1])
    batch = column.array.shape[1] if batches else None
    if batch is not None:
        column = DenseColumn(column.array.reshape(-1, *column.array.shape[2:]))
    codes = tuple(step.code for step in program.colours)
    recipe = Recipe(program.size, codes, params["levels"], program.last, program.planes)
    if program.decode is None:
        numbers = per_image(program, operands[1:], rows, batch)
        here: Iterator[Images] = map(images_of, arrays(column))
    else:
        read = _read(program, operands, rows)
        if read is None:
            return one_by_one(params["steps"], operands, rows)
        block, numbers = read
        here = decoded(block, program, numbers.windows)
    found = memory(program, 3, rows, allocate, batch)
    out = found.reshape(-1, *found.shape[-3:])
    at = 0
    for images in here:
        end = at + len(images.starts)
        chain_into(images, out[at:end], recipe, numbers.part(at, end))
        at = end
    return [DenseColumn(found)]


OUTPUT = -1  # stands for the graph's outputs among the readers of a result


def readers(graph: Graph) -> dict[int, list[int]]:
    """Return the equations that read each equation's result."""
    found: dict[int, list[int]] = {}
    for i, equation in enumerate(graph.equations):
        for operand in equation.operands:
            if isinstance(operand, Ref) and operand.equation >= 0:
                found.setdefault(operand.equation, []).append(i)
    for output in graph.outputs:
        if isinstance(output, Ref) and output.equation >= 0:
            found.setdefault(output.equation, []).append(OUTPUT)
    return found


def replaced(graph: Graph, chains: Mapping[int, tuple[Sequence[int], Equation]]) -> Graph:
    """Return the graph with each of `chains` replaced by its one equation. The key is the chain's last equation."""
    gone = {member for last, (members, _) in chains.items() for member in members if member != last}
    numbers: dict[int, int] = {-1: -1}
    kept: list[Equation] = []

    def moved(operand: Operand) -> Operand:
        return replace(operand, equation=numbers[operand.equation]) if isinstance(operand, Ref) else operand

    for i, equation in enumerate(graph.equations):
        if i in gone:
            continue
        numbers[i] = len(kept)
        found = chains[i][1] if i in chains else equation
        kept.append(replace(found, operands=tuple(moved(operand) for operand in found.operands)))
    return replace(graph, equations=tuple(kept), outputs=tuple(moved(output) for output in graph.outputs))


class Chain(Protocol):
    """A description of the joint effect of some equations."""

    def then(self, equation: Equation, spec: LeafSpec | None) -> Self | None:
        """Return the chain with one more equation, on a value with `spec`, or None if it does not fit."""


C = TypeVar("C", bound=Chain)


def fuse(graph: Graph, *, copied: Collection[int] = ()) -> Graph:
    """Return the graph with each chain of image operations as one primitive. Results are equal to the last bit.

    There are three kinds of chains. The first has a bilinear resize, after decode_jpeg or colour operations. The second
    has only colour operations. The third moves pixels, then changes each value. If an output is `copied` into new
    memory, its chain may end with a transposition.
    """
    graph = _without_casts(graph)
    users = readers(graph)
    outputs = (graph.outputs[k] for k in copied)
    free = {output.equation for output in outputs if isinstance(output, Ref)}
    found: dict[int, tuple[list[int], Equation]] = {}
    taken: set[int] = set()
    for start in range(len(graph.equations)):
        if start in taken:
            continue
        for chain, equation in _chains(graph, start, users, free):
            if equation is not None:
                found[chain[-1]] = chain, equation
                taken.update(chain)
                break
    return replaced(graph, found)


def _without_casts(graph: Graph) -> Graph:
    """Return the graph without casts before a resize, if the resize is the only reader.

    It calculates with float32 anyway.
    """
    found = {}
    for i, reader in readers(graph).items():
        cast, after = graph.equations[i], graph.equations[reader[0]]
        if reader != [OUTPUT] and len(reader) == 1 and _is_free(cast, _input(graph, cast), after):
            found[reader[0]] = (i, reader[0]), replace(after, operands=cast.operands)
    return replaced(graph, found)


def _is_free(equation: Equation, spec: LeafSpec | None, after: Equation) -> bool:
    """Return True if a resize returns equal values without the cast before it. A nearest resize keeps the dtype."""
    resized = after.primitive.name == "image.resize" and after.params["method"] != "nearest"
    if not resized or equation.primitive.name not in CASTS or not isinstance(spec, TensorSpec):
        return False
    to = equation.specs[0].dtype
    return spec.dtype.kind in "biuf" and (to == np.float32 or (spec.dtype == np.uint8 and np.can_cast(spec.dtype, to)))


def _chains(
    graph: Graph, start: int, users: Mapping[int, list[int]], free: Collection[int]
) -> Iterator[tuple[list[int], Equation | None]]:
    """Yield equations from `start` on with their replacement: chains with a resize first, the longest first."""
    longest, programs = _longest(graph, start, users, Program())
    for length in range(len(longest), 1, -1):
        chain, program = longest[:length], programs[length - 1]
        seen = chain[-1] not in free or users[chain[-1]] != [OUTPUT]
        if not (program.planes and seen):  # a view has another memory layout than a new array
            yield chain, fused(program, [graph.equations[i] for i in chain])
    longest, moves = _longest(graph, start, users, Moves())
    if moves:
        yield longest, moved(moves[-1])


def _longest(graph: Graph, start: int, users: Mapping[int, list[int]], nothing: C) -> tuple[list[int], list[C]]:
    """Return the longest chain from `start` on, whose results have one reader each, and its descriptions so far."""
    chain: list[int] = []
    programs = [nothing]
    readers_ = [start]
    while len(readers_) == 1 and readers_[0] != OUTPUT:
        equation = graph.equations[readers_[0]]
        longer = programs[-1].then(equation, _input(graph, equation))
        if longer is None:
            break
        chain.append(readers_[0])
        programs.append(longer)
        readers_ = users.get(chain[-1], [])
    return chain, programs[1:]


def _input(graph: Graph, equation: Equation) -> LeafSpec | None:
    """Return the spec of the value that an equation takes."""
    for operand in equation.operands:
        if isinstance(operand, Ref):
            return graph.spec_of(operand)
    return None
