"""Which plans are so quick that handing their Blocks to another thread costs more than making them."""

from __future__ import annotations

from penstock.block.known_bytes import known_bytes
from penstock.block.structure import flatten
from penstock.plan.node import AUTOTUNE, Node
from penstock.plan.ops import Batch, Enumerate, FusedMap, Map, Repeat, Shard, Skip, Take
from penstock.plan.scan import Scan
from penstock.sources.arrays import ArraysSource, RangeSource
from penstock.trace.arithmetic import ASTYPE, UFUNCS, WHERE
from penstock.trace.traced import traced

_SMALL = 256  # bytes of an element
_FEW = 16  # operations of a function
_HANDING_ON = (Take, Skip, Shard, Enumerate, Repeat)
_ARITHMETIC = (*UFUNCS.values(), ASTYPE, WHERE)


def is_trivial(plan: Node) -> bool:
    """Whether a plan gives small elements of memory, with a little arithmetic: some nanoseconds each.

    A parallel step is trivial only where the choice is left to the engine.
    """
    if isinstance(plan, Scan):
        return isinstance(plan.source, (ArraysSource, RangeSource)) and _is_small(plan)
    if isinstance(plan, Map):
        return is_trivial(plan.input) and _is_trivial_map(plan)
    if isinstance(plan, FusedMap):
        return is_trivial(plan.unfused)
    if isinstance(plan, Batch):
        return plan.num_parallel_calls is None and is_trivial(plan.input)
    return isinstance(plan, _HANDING_ON) and is_trivial(plan.input)


def _is_trivial_map(mapped: Map) -> bool:
    """Whether its function is known to be arithmetic on small elements."""
    free = mapped.num_parallel_calls in (None, AUTOTUNE) and mapped.executor == "auto" and mapped.vectorise
    if not free or not _is_small(mapped) or not _is_small(mapped.input):
        return False
    leaves, structure = flatten(mapped.input.spec)
    graph = traced(mapped.function, structure, leaves).graph
    return (
        graph is not None
        and len(graph.equations) <= _FEW
        and all(equation.primitive in _ARITHMETIC for equation in graph.equations)
    )


def _is_small(plan: Node) -> bool:
    nbytes, known = known_bytes(plan.spec)
    return known and nbytes <= _SMALL
