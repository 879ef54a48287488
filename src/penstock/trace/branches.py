"""Branches: a function with `if` on a value, as one graph per way. Each way runs for the rows that take it.

    if uniform() > 0.5:                           uniform → greater → branch(resize | flip → resize)
        image = flip(image)               →
    return resize(image)

A function is run on tracers once for each of its ways. The condition, and the values that it depends on, are computed
for all rows of a Block. All other values of a way are computed only for the rows that take this way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from penstock.block.arena import ARENA
from penstock.block.column import Column, DenseColumn, ListColumn, column_of, concat
from penstock.block.fixed import without_aliasing
from penstock.block.spec import LeafSpec
from penstock.block.structure import Structure
from penstock.trace.graph import (
    Allocate,
    Const,
    Equation,
    Forked,
    Graph,
    GraphBuilder,
    KeysFrom,
    NotTraceable,
    Operand,
    Primitive,
    Ref,
    changed,
)
from penstock.trace.lift import families

_MOST = 16  # ways of a function; with more ways, each runs for fewer rows

Run = Callable[[GraphBuilder], tuple[list[Operand], Structure]]


@dataclass(frozen=True, slots=True)
class Way:
    """All equations of a function on one way, and its result. With `ways`, the result selects one of them."""

    builder: GraphBuilder
    outputs: Sequence[Operand]
    structure: Structure
    ways: tuple[Way, ...] = ()


def explored(run: Run, specs: Sequence[LeafSpec]) -> Graph:
    """Return the graph, with all ways, of a function that `run` runs on tracers."""
    forks = 0

    def explore(decided: tuple[bool, ...]) -> Way:
        nonlocal forks
        builder = GraphBuilder(tuple(specs), decided=decided)
        try:
            outputs, structure = run(builder)
            builder.check_unwritten(outputs)
            return Way(builder, outputs, structure)
        except Forked:
            forks += 1
            if forks >= _MOST:
                raise NotTraceable(f"it branches on values, into more than {_MOST} ways") from None
            ways = explore((*decided, False)), explore((*decided, True))
            return Way(builder, [builder.conditions[-1]], ways[0].structure, ways)

    return _graph(explore(()), frozenset(), {Ref(-1, i): Ref(-1, i) for i in range(len(specs))})


def parted(builder: GraphBuilder, by: Ref, ways: Sequence[Way]) -> list[Ref]:
    """Add the result of way number `by` to the graph. All ways begin with the builder's equations."""
    given = frozenset(range(len(builder.equations)))
    primitive, operands = _branch([_way(way, given) for way in ways])
    return builder.bind(primitive, [by, *operands], {})


def _way(way: Way, given: Set[int]) -> tuple[Graph, list[Ref]]:
    """Return the graph of a way, without the equations `given`, and the values that the graph reads."""
    taken: dict[Ref, Ref] = {}
    graph = _graph(way, given, taken)
    copied = range(len(graph.outputs))
    for family in families(equation.primitive for equation in graph.equations):
        graph = family.fused(graph, copied=copied)
    return replace(graph), [*taken]


def _graph(way: Way, given: Set[int], taken: dict[Ref, Ref]) -> Graph:
    """Return the graph of a way. `taken` maps the values that the way reads to the inputs of the graph."""
    builder = way.builder
    every = range(len(builder.equations))
    own = [i for i in (_needed(builder, way.outputs) if way.ways else every) if i not in given]
    numbers = {i: number for number, i in enumerate(own)}

    def moved(operand: Operand) -> Operand:
        if not isinstance(operand, Ref):
            return operand
        if operand.equation in numbers:
            return Ref(numbers[operand.equation], operand.index)
        return taken.setdefault(operand, Ref(-1, len(taken)))

    equations = [changed(builder.equations[i], moved) for i in own]
    outputs: list[Operand] = [*map(moved, way.outputs)]
    draws: set[int | None] = {builder.draws}
    if way.ways:
        made = [_way(one, {*given, *own}) for one in way.ways]
        primitive, operands = _branch(made)
        specs = tuple(primitive.rule((), {}))
        equations.append(Equation(primitive, (*outputs, *map(moved, operands)), {}, specs))
        outputs, draws = [Ref(len(own), k) for k in range(len(specs))], {graph.draws for graph, _ in made}
    inputs = tuple(builder.spec_of(ref) for ref in taken)
    return Graph(inputs, tuple(equations), tuple(outputs), way.structure, draws.pop() if len(draws) == 1 else None)


def _needed(builder: GraphBuilder, wanted: Sequence[Operand]) -> list[int]:
    """Return the numbers of the equations that compute these values, in order."""
    left, found = [*wanted], set()
    while left:
        operand = left.pop()
        if isinstance(operand, Ref) and operand.equation >= 0 and operand.equation not in found:
            found.add(operand.equation)
            left += builder.equations[operand.equation].operands
    return sorted(found)


def _branch(ways: Sequence[tuple[Graph, list[Ref]]]) -> tuple[Primitive, list[Operand]]:
    """Return a primitive that runs one of several ways, and its operands except the number of the way."""
    graphs = [graph for graph, _ in ways]
    if any(graph.structure != graphs[0].structure for graph in graphs):
        raise NotTraceable("it branches on a value, and its ways return different nests")
    specs = [_relaxed([graph.output_spec(k) for graph in graphs]) for k in range(len(graphs[0].outputs))]
    refs = list(dict.fromkeys(ref for _, taken in ways for ref in taken))
    random = any(graph.random for graph in graphs)
    places = [[refs.index(ref) for ref in taken] for _, taken in ways]

    def run(operands: Sequence[Any], params: Mapping[str, Any], rows: int, allocate: Allocate | None) -> list[Column]:
        numbers, *columns = operands
        keys = columns.pop() if random else None
        chosen = numbers.array.astype(np.int64)
        made, order = [], []
        for way in np.unique(chosen).tolist():
            at = np.flatnonzero(chosen == way)
            own = None if keys is None else lambda wanted, at=at: keys(wanted)[at]
            made.append(_columns(graphs[way], [columns[place].take(at) for place in places[way]], len(at), own))
            order.append(at)
        return [_joined(parts, np.concatenate(order)) for parts in zip(*made, strict=True)]

    name = f"branch({' | '.join(graph.describe() for graph in graphs)})"
    presumes = any(graph.presumes for graph in graphs)
    primitive = Primitive(name, lambda _, __: specs, run, presumes=lambda _: presumes)
    return primitive, [*refs, *([KeysFrom(0)] if random else [])]


def _relaxed(specs: Sequence[LeafSpec]) -> LeafSpec:
    found, *others = specs
    for other in others:
        both = found.relax(other)
        if both is None:
            raise NotTraceable(f"it branches on a value, and its ways return {found} and {other}")
        found = both
    return found


def _columns(graph: Graph, columns: list[Column], rows: int, keys: Any) -> list[Column]:
    """Run a way for its rows. The results share no memory."""
    made = graph.run(columns, rows, None, keys)
    found = [column_of([value.value] * rows) if isinstance(value, Const) else value for value in made]
    return without_aliasing(found, graph.sharing())


def _joined(parts: Sequence[Column], order: np.ndarray) -> Column:
    """Join the values of all ways, in the order of the rows."""
    arrays = [part.array for part in parts if isinstance(part, DenseColumn)]
    if len(arrays) == len(parts) and all(array.shape[1:] == arrays[0].shape[1:] for array in arrays):
        made, begin = ARENA.empty((len(order), *arrays[0].shape[1:]), arrays[0].dtype), 0
        for array in arrays:
            made[order[begin : begin + len(array)]] = array
            begin += len(array)
        return DenseColumn(made)
    found = concat(parts).take(np.argsort(order))
    if isinstance(found, ListColumn):
        items = [np.ascontiguousarray(item) if isinstance(item, np.ndarray) else item for item in found.items]
        return ListColumn(items)
    return found
