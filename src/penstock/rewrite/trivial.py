"""Which plans are so quick that handing their Blocks to another thread costs more than making them."""

from __future__ import annotations

from penstock.block.known_bytes import known_bytes
from penstock.block.structure import flatten
from penstock.plan.node import AUTOTUNE, Node
from penstock.plan.once import answered
from penstock.plan.ops import Batch, Enumerate, FusedMap, Map, Repeat, Shard, Skip, Take
from penstock.plan.scan import Scan
from penstock.sources.arrays import ArraysSource, RangeSource
from penstock.trace.arithmetic import ASTYPE, UFUNCS, WHERE
from penstock.trace.traced import traced

_SMALL = 256  # bytes of an element
_FEW = 16  # operations of a function
_MOST_MAPS = 100
_HANDING_ON = (Take, Skip, Shard, Enumerate, Repeat)
_ARITHMETIC = (*UFUNCS.values(), ASTYPE, WHERE)


def is_trivial(plan: Node) -> bool:
    """Whether a plan gives small elements of memory, with a little arithmetic: some nanoseconds each.

    A parallel step is trivial only where the choice is left to the engine.
    """
    maps: list[Map] = []
    while not isinstance(plan, Scan):
        if isinstance(plan, FusedMap):
            plan = plan.unfused
        if isinstance(plan, Map) and _is_free(plan):
            maps.append(plan)
            if len(maps) > _MOST_MAPS:
                return False
        elif not isinstance(plan, _HANDING_ON) and not (isinstance(plan, Batch) and plan.num_parallel_calls is None):
            return False
        (plan,) = plan.inputs
    if not isinstance(plan.source, (ArraysSource, RangeSource)) or not _is_small(plan):
        return False
    return all(answered(one, _is_trivial_map) for one in reversed(maps))  # each of a chain asks those below it


def _is_free(mapped: Map) -> bool:
    """Whether the engine may choose how it runs."""
    return mapped.num_parallel_calls in (None, AUTOTUNE) and mapped.executor == "auto" and mapped.vectorise


def _is_trivial_map(mapped: Map) -> bool:
    """Whether its function is known to be arithmetic on small elements."""
    if not _is_small(mapped) or not _is_small(mapped.input):
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
