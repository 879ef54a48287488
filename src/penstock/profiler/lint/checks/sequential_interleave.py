"""An interleave over files that reads each only when its turn has come."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from penstock.plan.node import AUTOTUNE
from penstock.profiler.lint.advice import Advice
from penstock.profiler.lint.calls import call
from penstock.profiler.lint.inspection import Inspection
from penstock.profiler.lint.parallel import sequential_interleaves


def sequential_interleave(plan: Inspection) -> Iterator[Advice]:
    """Interleave(f) over several files without num_parallel_calls."""
    for node in sequential_interleaves(plan):
        yield Advice.on(
            node,
            "sequential-interleave",
            "speed",
            f"{node.label} opens and reads files in the thread that asks for the next record.",
            call(replace(node, num_parallel_calls=AUTOTUNE)),
            "Files are then opened and read ahead, and the order stays as it is.",
        )
