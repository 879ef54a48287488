"""fuse: finds the chains in a graph and puts one primitive in the place of each."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Protocol, Self, TypeVar

from penstock.block.spec import LeafSpec
from penstock.image.fuse.moves import Moves
from penstock.image.fuse.moving import moved
from penstock.image.fuse.primitives import fused
from penstock.image.fuse.program import Program
from penstock.trace.graph import Equation, Graph, Operand, Ref

OUTPUT = -1  # stands for the graph's outputs among the readers of a result


def readers(graph: Graph) -> dict[int, list[int]]:
    """Which equations read each equation's result."""
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
    """The graph in which each of `chains`, by its last equation, is the one equation given for it."""
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
    """What some equations do together."""

    def then(self, equation: Equation, spec: LeafSpec | None) -> Self | None:
        """The chain with one more equation, on what has this spec; None where that cannot be part of it."""


C = TypeVar("C", bound=Chain)


def fuse(graph: Graph, *, approximate: bool = False, copied: Collection[int] = ()) -> Graph:
    """The graph with chains of image operations as one primitive each, equal to the last bit.

    A chain holds a bilinear resize, and begins with decode_jpeg or changes colours before it; or it changes colours
    only; or it moves pixels, and then changes each by itself. With `approximate`, colours are changed after the resize,
    and a JPEG is decoded at a smaller scale where that is enough. The chain of an output that is `copied` into one
    piece, which nobody sees before, may end with a transposition.
    """
    users = readers(graph)
    free = {graph.outputs[k].equation for k in copied if isinstance(graph.outputs[k], Ref)}  # type: ignore[union-attr]
    found: dict[int, tuple[list[int], Equation]] = {}
    taken: set[int] = set()
    for start in range(len(graph.equations)):
        if start in taken:
            continue
        for chain, equation in _chains(graph, start, users, free, approximate=approximate):
            if equation is not None:
                found[chain[-1]] = chain, equation
                taken.update(chain)
                break
    return replaced(graph, found)


def _chains(
    graph: Graph, start: int, users: Mapping[int, list[int]], free: Collection[int], *, approximate: bool
) -> Iterator[tuple[list[int], Equation | None]]:
    """Equations from `start` on and what can be put in their place: those with a resize first, the longest first."""
    longest, programs = _longest(graph, start, users, Program())
    for length in range(len(longest), 1, -1):
        chain, program = longest[:length], programs[length - 1]
        seen = chain[-1] not in free or users[chain[-1]] != [OUTPUT]
        if not (program.planes and seen):  # a view has another layout than memory of its own
            yield chain, fused(program, [graph.equations[i] for i in chain], approximate=approximate)
    longest, moves = _longest(graph, start, users, Moves())
    if moves:
        yield longest, moved(moves[-1])


def _longest(graph: Graph, start: int, users: Mapping[int, list[int]], nothing: C) -> tuple[list[int], list[C]]:
    """The equations from `start` on that can follow `nothing`, each result having one reader; what they do so far."""
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
    """The spec of the value that an equation works on."""
    for operand in equation.operands:
        if isinstance(operand, Ref):
            found: LeafSpec = graph.spec_of(operand)
            return found
    return None
