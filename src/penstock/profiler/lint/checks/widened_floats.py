"""A function that makes float64 of narrower numbers unasked: twice the memory, and twice to copy."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.plan.explain import short_location
from penstock.profiler.lint.advice import Advice
from penstock.profiler.lint.inspection import Inspection
from penstock.profiler.lint.kinds import found_in_functions
from penstock.trace.kinds.values import Widened


def widened_floats(plan: Inspection) -> Iterator[Advice]:
    """Map(f) where f gives `x / 255.0` of uint8, or `x - MEAN` with a MEAN of float64."""
    for node, found in found_in_functions(plan.written, Widened):
        yield Advice.on(
            node,
            "widened-floats",
            "memory",
            f"{node.label} makes float64 of {found.dtype}: {found.dtype} {found.operator} {found.operand} "
            f"({short_location(found.where)}).",
            _mended(found),
            "float32 is half the memory, and half to copy at every step behind; networks take float32. Results differ "
            "in the last digits.",
        )


def _mended(found: Widened) -> str:
    if found.number is not None:
        return f"x {found.operator} np.float32({found.number:g})"
    if found.operand.startswith("an array"):
        return f"x {found.operator} array, with array = array.astype(np.float32)"
    return f"(x {found.operator} …).astype(np.float32)"
