"""Steps that would run beside others, and were not asked to."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.functions.uses import keeps_state
from penstock.plan.ops import Interleave, Map
from penstock.profiler.lint.inspection import Inspection
from penstock.profiler.lint.names import reads_files
from penstock.profiler.lint.natures import work


def sequential_maps(plan: Inspection) -> Iterator[tuple[Map, str, str]]:
    """Maps without num_parallel_calls that work outside the interpreter's lock, what they do, and how it is spelled."""
    for mapped, _ in plan.each(Map):
        chosen = mapped.num_parallel_calls is not None or mapped.executor == "inline"
        found = None if chosen else work(mapped.function)
        if found is not None and not keeps_state(mapped.function):
            yield mapped, *found


def sequential_interleaves(plan: Inspection) -> Iterator[Interleave]:
    """Interleaves of several files without num_parallel_calls."""
    for node, _ in plan.each(Interleave):
        if node.num_parallel_calls is None and node.input.cardinality not in (0, 1) and reads_files(node):
            yield node
