"""Joined: neighbouring maps that run as one graph, in which operations of different functions are fused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from penstock.block.block import Block, BlockBuilder
from penstock.block.numbers import Numbers
from penstock.block.spec import LeafSpec
from penstock.block.structure import Structure, components
from penstock.functions.captured import Captured
from penstock.physical.vectorise import Vectoriser, optimised, why_not_equal
from penstock.trace.drawing import UNNUMBERED
from penstock.trace.graph import Allocate, Graph, Ref
from penstock.trace.purity import may_draw
from penstock.trace.traced import Traced, traced

if TYPE_CHECKING:
    from penstock.physical.transform import MapTransform, Outcome


class Joined:
    """Consecutive maps, of which at most one uses random numbers: each map has its own random keys. Thread-safe."""

    def __init__(self, maps: Sequence[MapTransform]) -> None:
        self._functions = tuple(one.function for one in maps)
        self._draw = [k for k, one in enumerate(maps) if may_draw(one.function)]
        self._begun = False  # the first Block runs through each map separately, which warns of text in it
        self._vectoriser: Vectoriser | None = None
        if len(self._draw) < 2 and all(one.vectoriser is not None for one in maps):
            composed = Composed(self._functions, self._draw)
            self._vectoriser = Vectoriser(composed, composed.traced)

    def is_of(self, maps: Sequence[MapTransform]) -> bool:
        """Return True for maps with the same functions, such as those of another iteration."""
        return len(maps) == len(self._functions) and all(
            one.function is function for one, function in zip(maps, self._functions, strict=True)
        )

    def run(
        self,
        maps: Sequence[MapTransform],
        block: Block,
        numbers: Numbers,
        allocate: Callable[[int], Allocate] | None,
    ) -> Outcome | None:
        """Return the results of the last map, or None if each map has to run separately, such as to raise an error."""
        if self._vectoriser is None:
            return None
        if not self._begun:
            self._begun = True
            return None
        draws = maps[self._draw[0]].draws(numbers) if self._draw else UNNUMBERED
        found = self._vectoriser.run(block, allocate, draws)
        return None if found is None else maps[-1].admitted(found, block)


def graph_of(functions: Sequence[Callable[..., Any]], structure: Structure, specs: Sequence[LeafSpec]) -> Graph | None:
    """Return the graph of maps that run as one, or None if each runs separately."""
    draw = [k for k, function in enumerate(functions) if may_draw(function)]
    found = Composed(functions, draw[:1]).traced(structure, specs)
    return None if why_not_equal(found) else found.graph


class Composed:
    """Functions called one after another, as maps call them.

    Only the functions at the positions `draw` use random numbers.
    """

    def __init__(self, functions: Sequence[Callable[..., Any]], draw: Sequence[int]) -> None:
        self._functions = tuple(functions)
        self._draw = draw

    def __call__(self, *arguments: Any) -> Any:
        *first, last = self._functions
        for function in first:
            builder = BlockBuilder()
            builder.add(components(function(*arguments)))
            block = builder.build()
            (element,) = block.elements()
            arguments = element if block.structure.unpacks else (element,)
        return last(*arguments)

    def traced(self, structure: Structure, specs: Sequence[LeafSpec]) -> Traced:
        """Return the graph of all functions, if it has fewer operations than their own graphs together."""
        first, *rest = self._functions
        found = traced(first, structure, specs)
        apart = [found.graph]
        for function in rest:
            if found.graph is None:
                return found
            given = [found.graph.output_spec(k) for k in range(len(found.graph.outputs))]
            then = traced(function, found.graph.structure, given)
            apart.append(then.graph)
            found = _followed(found, then)
        if any(graph is not None and graph.random and k not in self._draw for k, graph in enumerate(apart)):
            return Traced(None, "another function uses random numbers than before", found.captured)
        if found.graph is not None and "gains" not in found.notes:
            found.notes["gains"] = _operations(found.graph) < sum(map(_operations, filter(None, apart)))
        return found if found.notes.get("gains") else Traced(None, "nothing is gained", found.captured)


def _operations(graph: Graph) -> int:
    return len(optimised(graph).equations)


def _followed(first: Traced, then: Traced) -> Traced:
    """Return the graph of both, cached as long as both graphs exist."""
    known: WeakKeyDictionary[Traced, Traced] = first.notes.setdefault("followed by", WeakKeyDictionary())
    if then not in known:
        captured = Captured((*first.captured.reads, *then.captured.reads))
        known[then] = Traced(_joined(first.graph, then.graph), "its functions have no graph together", captured)
    return known[then]


def _joined(first: Graph | None, then: Graph | None) -> Graph | None:
    """Return one graph for both functions, or None if the first returns a constant."""
    if first is None or then is None:
        return None
    return first.followed_by(then) if all(isinstance(output, Ref) for output in first.outputs) else None
