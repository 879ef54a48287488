"""The table that all benchmarks print."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any


@dataclass(frozen=True)
class Row:
    """penstock and one peer. `ratios` has one entry per pair of runs.

    `goal` is the bound on the median ratio, and `hoped` the figure in brackets after it. With `at_most` the smaller
    ratio is the better one. A row without a goal has no verdict.
    """

    workload: str
    penstock: str
    peer: str
    theirs: str
    ratios: Sequence[float]
    cpu_penstock: float | None = None
    cpu_peer: float | None = None
    goal: float | None = None
    hoped: float | None = None
    at_most: bool = False

    @property
    def verdict(self) -> str:
        if self.goal is None or not self.ratios:
            return "-"
        found = median(self.ratios)
        met = found <= self.goal if self.at_most else found >= self.goal
        sign = "≤" if self.at_most else "≥"
        hoped = f" ({self.hoped:g}×)" if self.hoped else ""
        return f"{sign} {self.goal:g}×{hoped} {'met' if met else 'MISSED'}"

    def cells(self) -> tuple[str, ...]:
        spread = " / ".join(_figure(f(self.ratios)) for f in (min, median, max)) if self.ratios else "-"
        return (
            self.workload,
            self.penstock,
            self.peer,
            self.theirs,
            spread,
            "-" if self.cpu_penstock is None else _figure(self.cpu_penstock),
            "-" if self.cpu_peer is None else _figure(self.cpu_peer),
            self.verdict,
        )


def row_of(
    workload: str,
    ours: Sequence[Any],
    peer: str,
    theirs: Sequence[Any],
    *,
    ratio: Callable[[Any, Any], float] = lambda mine, other: mine.rate / other.rate,
    goal: float | None = None,
    hoped: float | None = None,
    at_most: bool = False,
) -> Row:
    """Return the row of runs that have a `rate` and a `cpu_us`: their medians, and the ratio of each pair of runs."""
    return Row(
        workload=workload,
        penstock=rate(median(run.rate for run in ours)),
        peer=peer,
        theirs=rate(median(run.rate for run in theirs)),
        ratios=[ratio(mine, other) for mine, other in zip(ours, theirs, strict=True)],
        cpu_penstock=median(run.cpu_us for run in ours),
        cpu_peer=median(run.cpu_us for run in theirs),
        goal=goal,
        hoped=hoped,
        at_most=at_most,
    )


HEADER = ("workload", "penstock", "peer", "its", "ratio min / median / max", "CPU µs: ours", "its", "goal")


def print_table(rows: Sequence[Row], notes: Sequence[str] = ()) -> None:
    """Print `rows` under the common header, then `notes`, and append the rows to the file in PENSTOCK_BENCH_ROWS."""
    lines = [HEADER, *(row.cells() for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADER))]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    for note in notes:
        print(note)
    if kept := os.environ.get("PENSTOCK_BENCH_ROWS"):
        with Path(kept).open("a", encoding="utf-8") as file:
            file.writelines(f"{json.dumps(asdict(row))}\n" for row in rows)


def rate(value: float) -> str:
    """Format elements per second with three digits.

    >>> rate(1234567.0), rate(870.2)
    ('1.23 M/s', '870 /s')
    """
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{_figure(value / size)} {unit}/s"
    return f"{_figure(value)} /s"


def _figure(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
