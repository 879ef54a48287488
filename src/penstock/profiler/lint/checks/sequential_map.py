"""A map that waits, reads or decodes, one element at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from penstock.plan.node import AUTOTUNE
from penstock.profiler.lint.advice import Advice
from penstock.profiler.lint.calls import call
from penstock.profiler.lint.inspection import Inspection
from penstock.profiler.lint.natures import randomness
from penstock.profiler.lint.parallel import sequential_maps


def sequential_map(plan: Inspection) -> Iterator[Advice]:
    """Map(f) without num_parallel_calls, where f is known to work outside the interpreter's lock."""
    for mapped, does, spelled in sequential_maps(plan):
        draws = randomness(mapped.function)
        note = "Several calls then run at once, and the order stays as it is."
        if draws is not None:
            note += f" Which element gets which draw of {draws} then depends on timing."
        yield Advice.on(
            mapped,
            "sequential-map",
            "speed",
            f"{mapped.label} {does} ({spelled}), one element after the other.",
            call(replace(mapped, num_parallel_calls=AUTOTUNE)),
            note,
        )
