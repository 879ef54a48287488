"""An interleave over fewer files than it would take in turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from penstock.plan.ops import Interleave
from penstock.profiler.lint.advice import Advice
from penstock.profiler.lint.calls import call
from penstock.profiler.lint.inspection import Inspection
from penstock.profiler.lint.names import reads_files

_DEFAULT = 16  # nobody asked for it


def idle_cycle(plan: Inspection) -> Iterator[Advice]:
    """Interleave(f, cycle_length=n) over 2 to n - 1 files, n being of the user's choice."""
    for node, _ in plan.asked(Interleave):
        count = node.input.cardinality
        if 1 < count < node.cycle_length != _DEFAULT and reads_files(node):
            yield Advice.on(
                node,
                "idle-cycle",
                "speed",
                f"cycle_length={node.cycle_length} asks for more inputs in turn than there are files: {count}.",
                call(replace(node, cycle_length=count)),
                "The order stays as it is. To read more at a time, write the data into more files.",
            )
