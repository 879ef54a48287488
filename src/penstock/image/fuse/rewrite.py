"""fuse: finds the chains in a graph and puts one primitive in the place of each."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.block.spec import LeafSpec
from penstock.image.fuse.graphs import OUTPUT, readers, replaced
from penstock.image.fuse.primitives import fused
from penstock.image.fuse.program import Program
from penstock.trace.graph import Equation, Graph, Ref


def fuse(graph: Graph, *, approximate: bool = False) -> Graph:
    """The graph with chains of image operations as one primitive each, equal to the last bit.

    A chain holds a bilinear resize, and begins with decode_jpeg or changes colours before it. With `approximate`,
    colours are changed after the resize, and a JPEG is decoded at a smaller scale where that is enough.
    """
    users = readers(graph)
    found: dict[int, tuple[list[int], Equation]] = {}
    taken: set[int] = set()
    for start in range(len(graph.equations)):
        if start in taken:
            continue
        chain, programs = _longest(graph, start, users)
        for length in range(len(chain), 1, -1):
            steps = [graph.equations[i] for i in chain[:length]]
            equation = fused(programs[length - 1], steps, approximate=approximate)
            if equation is not None:
                found[chain[length - 1]] = chain[:length], equation
                taken.update(chain[:length])
                break
    return replaced(graph, found)


def _longest(graph: Graph, start: int, users: Mapping[int, list[int]]) -> tuple[list[int], list[Program]]:
    """The equations from `start` on that one program can do, each result having one reader; the program at each."""
    chain: list[int] = []
    programs = [Program()]
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
