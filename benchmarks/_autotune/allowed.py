"""A figure beside what is allowed."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from _common.table import Row


def allowed_row(workload: str, found: Sequence[float], allowed: float, unit: str) -> Row:
    """Whether the median of what the rounds found is at most what is allowed."""
    return Row(
        workload=workload,
        penstock=f"{median(found):.3g} {unit}",
        peer="allowed",
        theirs=f"{allowed:g} {unit}",
        ratios=[value / allowed for value in found],
        goal=1,
        at_most=True,
    )
