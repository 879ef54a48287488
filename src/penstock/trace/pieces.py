"""Arithmetic on each value of large arrays, in pieces that stay in the cache from the first operation to the last."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from penstock.block.arena import ARENA
from penstock.block.column import Column, DenseColumn
from penstock.trace.arithmetic import ASTYPE, EXACT
from penstock.trace.graph import Allocate, Const, Graph, Ref

PIECE = 1 << 19  # values of each array; arrays of up to two pieces are not cut


def is_of_each_value(graph: Graph) -> bool:
    """Return True if each value of a result is computed from the values and constants at its place."""
    exact = all(equation.primitive in EXACT or equation.primitive is ASTYPE for equation in graph.equations)
    computed = all(isinstance(output, Ref) and output.equation >= 0 for output in graph.outputs)
    return exact and computed and len(graph.equations) > 1


def run_in_pieces(
    graph: Graph, columns: Sequence[Column], allocate: Callable[[int], Allocate] | None
) -> list[Column] | None:
    """Return what `graph.run` returns, or None if the columns are small or differ in shape.

    The graph is one for which `is_of_each_value` is true.
    """
    arrays = [column.array for column in columns if type(column) is DenseColumn]
    shape = arrays[0].shape if len(arrays) == len(columns) else ()
    if len(shape) < 3 or math.prod(shape) <= 2 * PIECE:
        return None
    inner = shape[2:]  # the first two axes become one, so constants may only have the others
    constants = {np.shape(one.value) for step in graph.equations for one in step.operands if isinstance(one, Const)}
    if any(array.shape != shape or not array.flags.c_contiguous for array in arrays) or not all(
        len(one) <= len(inner) and np.broadcast_shapes(one, inner) == inner for one in constants
    ):
        return None
    results = []
    for k in range(len(graph.outputs)):
        dtype = graph.output_spec(k).dtype
        place = None if allocate is None else allocate(k)(shape[1:], dtype)
        results.append(ARENA.empty(shape, dtype) if place is None else place)
    given, made = ([array.reshape(-1, *inner) for array in found] for found in (arrays, results))
    rows = max(PIECE // math.prod(inner), 1)
    for start in range(0, len(given[0]), rows):
        pieces = [DenseColumn(array[start : start + rows]) for array in given]
        places = [array[start : start + rows] for array in made]
        for place, output in zip(places, graph.run(pieces, len(places[0]), _offer(places)), strict=True):
            assert isinstance(output, DenseColumn)
            if not np.may_share_memory(place, output.array):
                place[...] = output.array
    return [DenseColumn(array) for array in results]


def _offer(places: Sequence[np.ndarray]) -> Callable[[int], Allocate]:
    def allocate(k: int) -> Allocate:
        return lambda shape, dtype: places[k]

    return allocate
