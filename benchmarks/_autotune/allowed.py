"""Rows that compare a figure with its limit, or with the cost elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from _common.table import Row


def allowed_row(workload: str, found: Sequence[float], allowed: float, unit: str) -> Row:
    """Return a row that checks that the median of the rounds is at most `allowed`."""
    return Row(
        workload=workload,
        penstock=f"{median(found):.3g} {unit}",
        peer="allowed",
        theirs=f"{allowed:g} {unit}",
        ratios=[value / allowed for value in found],
        goal=1,
        at_most=True,
    )


def cost_row(workload: str, found: Sequence[float], peer: str, theirs: Sequence[float]) -> Row:
    """Return a row of microseconds and those of a peer, for each round. Less is better."""
    return Row(
        workload=workload,
        penstock=f"{median(found):.3g} µs",
        peer=peer,
        theirs=f"{median(theirs):.3g} µs",
        ratios=[mine / other for mine, other in zip(found, theirs, strict=True)],
        at_most=True,
    )
