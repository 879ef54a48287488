"""An interleave over a single file: there is nothing to take in turn."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.plan.node import function_name
from penstock.plan.ops import Interleave
from penstock.profiler.lint.advice import Advice
from penstock.profiler.lint.inspection import Inspection
from penstock.profiler.lint.names import reads_files


def one_file(plan: Inspection) -> Iterator[Advice]:
    """Interleave(f)·x, where x is the name of one file."""
    for node, _ in plan.asked(Interleave):
        if node.input.cardinality == 1 and node.cycle_length > 1 and reads_files(node):
            yield Advice.on(
                node,
                "one-file",
                "speed",
                f"interleave reads one file: of {node.cycle_length} inputs in turn, one is there.",
                f"ps.{function_name(node.function)}(file)"
                if function_name(node.function).endswith("Dataset")
                else "ps.io.TFRecordWriter(...), one for each of several files",
                "To have reading overlap and records mix, write the data into several files; for one, leave out "
                "interleave.",
            )
