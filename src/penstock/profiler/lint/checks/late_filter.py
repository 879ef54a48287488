"""A filter behind a costly map that only looks at what the map passes through."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.block.structure import flatten
from penstock.plan.ops import Filter, Map
from penstock.profiler.lint.advice import Advice
from penstock.profiler.lint.calls import calls
from penstock.profiler.lint.inspection import Inspection
from penstock.trace.graph import Graph, Ref
from penstock.trace.nature import families
from penstock.trace.traced import traced


def late_filter(plan: Inspection) -> Iterator[Advice]:
    """Filter(p)·Map(f), where f works on pictures and p reads only components that f hands on."""
    for kept, _ in plan.each(Filter):
        mapped = kept.input
        if not isinstance(mapped, Map) or mapped.input.spec is None:
            continue
        leaves, structure = flatten(mapped.input.spec)
        function = traced(mapped.function, structure, leaves).graph
        if function is None or not families(step.primitive for step in function.equations):
            continue
        leaves, structure = flatten(mapped.spec)
        predicate = traced(kept.predicate, structure, leaves).graph
        if predicate is not None and all(_passes(function, i) for i in _read(predicate)):
            yield Advice.on(
                kept,
                "late-filter",
                "speed",
                f"{kept.label} only looks at what {mapped.label} hands on, after the pictures have been made.",
                calls([kept, mapped]),
                "The map is then not called for what is dropped; the predicate takes the map's input.",
            )


def _read(graph: Graph) -> set[int]:
    """The numbers of the components that a function looks at."""
    operands = [operand for step in graph.equations for operand in step.operands] + list(graph.outputs)
    return {operand.index for operand in operands if isinstance(operand, Ref) and operand.equation < 0}


def _passes(graph: Graph, number: int) -> bool:
    output = graph.outputs[number]
    return isinstance(output, Ref) and output.equation < 0
