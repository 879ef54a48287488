"""What a rewrite of a graph needs: who reads a result, and the graph without the equations that were taken up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

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
