"""One pass for a whole chain:  scale·flip·resize·flip·decode_jpeg   →   decode_resize, straight into the batch.

Equal to the last bit, because `decode_resize_into` does the same float operations in the same order; what goes are the
arrays in between, each the size of an image.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from penstock.block.arena import ARENA
from penstock.block.column import BytesColumn, Column, DenseColumn
from penstock.block.spec import TensorSpec
from penstock.errors import Context, annotate
from penstock.image.kernels.decode_resize import decode_resize_into
from penstock.trace.graph import Allocate, Const, Equation, Graph, NotTraceable, Operand, Primitive, Ref

_FLIPS = {"image.flip_left_right": "flip_left_right", "image.flip_up_down": "flip_up_down"}


def _rule(specs: Sequence[Any], params: Mapping[str, Any]) -> list[TensorSpec]:
    return [TensorSpec((*params["size"], params["channels"]), np.float32)]


def _run(operands: Sequence[Any], params: Mapping[str, Any], rows: int, allocate: Allocate | None) -> list[Column]:
    column = operands[0]
    if not isinstance(column, BytesColumn):
        message = "decode_resize reads byte strings"
        raise NotTraceable(message)
    shape = (*params["size"], params["channels"])
    place = None if allocate is None else allocate(shape, np.float32)
    out = ARENA.empty((rows, *shape), np.float32) if place is None else place
    for row, contents in enumerate(column.views()):
        try:
            decode_resize_into(contents, out[row], **params["settings"])
        except Exception as error:
            annotate(error, Context(element=row))
            raise
    return [DenseColumn(out)]


DECODE_RESIZE = Primitive("image.decode_resize", _rule, _run)


def fuse(graph: Graph) -> Graph:
    """The graph with every chain that begins with decode_jpeg and holds a bilinear resize as one primitive."""
    users = _users(graph)
    equations: list[Equation | None] = list(graph.equations)
    for start, equation in enumerate(graph.equations):
        if equation.primitive.name != "image.decode_jpeg":
            continue
        chain = _chain(graph, start, users)
        fused = _fused(graph, chain)
        if fused is None:
            continue
        for member in chain[:-1]:
            equations[member] = None
        equations[chain[-1]] = fused
    return _renumbered(graph, equations)


def _users(graph: Graph) -> dict[int, list[int]]:
    """Which equations read each equation's result; -1 stands for the graph's outputs."""
    found: dict[int, list[int]] = {}
    for i, equation in enumerate(graph.equations):
        for operand in equation.operands:
            if isinstance(operand, Ref) and operand.equation >= 0:
                found.setdefault(operand.equation, []).append(i)
    for output in graph.outputs:
        if isinstance(output, Ref) and output.equation >= 0:
            found.setdefault(output.equation, []).append(-1)
    return found


def _chain(graph: Graph, start: int, users: dict[int, list[int]]) -> list[int]:
    """The equations from a decode on, as long as each result has exactly one reader that can join."""
    chain = [start]
    resized = False
    while True:
        readers = users.get(chain[-1], [])
        if len(readers) != 1 or readers[0] < 0:
            break
        equation = graph.equations[readers[0]]
        name = equation.primitive.name
        if name == "image.resize" and not resized and _is_plain_bilinear(equation):
            resized = True
        elif resized and _scale(equation) is not None:
            return [*chain, readers[0]]
        elif name not in _FLIPS or _flips_twice(graph, chain, equation):
            break
        chain.append(readers[0])
    return chain


def _is_plain_bilinear(equation: Equation) -> bool:
    params = equation.params
    return params["method"] == "bilinear" and not params["preserve_aspect_ratio"] and not params["antialias"]


def _flips_twice(graph: Graph, chain: list[int], equation: Equation) -> bool:
    return any(graph.equations[i].primitive.name == equation.primitive.name for i in chain)


def _scale(equation: Equation) -> tuple[str, float] | None:
    """("multiply" or "divide", constant) for scaling by a number that keeps float32."""
    left, right = equation.operands if len(equation.operands) == 2 else (None, None)
    if equation.specs[0].dtype != np.float32:
        return None
    if isinstance(right, Const) and np.ndim(right.value) == 0 and equation.primitive.name in ("multiply", "divide"):
        return equation.primitive.name, float(right.value)
    if isinstance(left, Const) and np.ndim(left.value) == 0 and equation.primitive.name == "multiply":
        return "multiply", float(left.value)
    return None


def _fused(graph: Graph, chain: list[int]) -> Equation | None:
    steps = [graph.equations[i] for i in chain]
    decode, rest = steps[0], steps[1:]
    resize = next((step for step in rest if step.primitive.name == "image.resize"), None)
    params = decode.params
    plain = params["ratio"] == 1 and not params["try_recover_truncated"] and params["acceptable_fraction"] == 1
    if resize is None or not plain or params["channels"] not in (1, 3):
        return None
    settings: dict[str, Any] = {key: params[key] for key in ("fancy_upscaling", "dct_method")}
    behind = False
    for step in rest:
        scale = _scale(step)
        if step is resize:
            behind = True
        elif step.primitive.name in _FLIPS:
            settings[_FLIPS[step.primitive.name]] = "after" if behind else "before"
        elif scale is not None:
            settings[scale[0]] = scale[1]
    size = tuple(int(extent) for extent in resize.params["size"])
    found = {"size": size, "channels": params["channels"], "settings": settings}
    return Equation(DECODE_RESIZE, decode.operands, found, steps[-1].specs)


def _renumbered(graph: Graph, equations: list[Equation | None]) -> Graph:
    """The graph without the equations that are None."""
    numbers: dict[int, int] = {-1: -1}
    kept: list[Equation] = []

    def moved(operand: Operand) -> Operand:
        return replace(operand, equation=numbers[operand.equation]) if isinstance(operand, Ref) else operand

    for i, equation in enumerate(equations):
        if equation is not None:
            numbers[i] = len(kept)
            kept.append(replace(equation, operands=tuple(moved(operand) for operand in equation.operands)))
    return replace(graph, equations=tuple(kept), outputs=tuple(moved(output) for output in graph.outputs))
