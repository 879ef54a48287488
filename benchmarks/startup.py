"""Measure the time from the start of a process to the first batch.

The pipelines of other benchmarks run in new processes. The time includes Python's start, imports, the plan, and all
work until the first batch. Seconds are wall time; ratios below 1 are good. Goals: at most 3 seconds for each pipeline,
and for photographs 0.5 of TensorFlow's time. On a noisy machine compare the CPU columns first: they count all threads
until then, without child processes.

    python benchmarks/startup.py [--pairs N]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from _autotune.allowed import allowed_row
from _common import augment_pipelines, click_pipelines, jpeg_pipelines, thumbnail_pipelines
from _common.clicks import clicks
from _common.duel import PAIRS, figures_of, installed
from _common.photographs import photographs
from _common.table import Row, print_table
from _common.thumbnails import thumbnails

ALLOWED = 3.0  # seconds
JPEG, TF_JPEG = "JPEG, batch of 32", "tf.data"
OURS: dict[str, Callable[[], Any]] = {
    JPEG: jpeg_pipelines.penstock,
    "augmented JPEG, batch of 32": augment_pipelines.penstock,
    "augmented PNG, batch of 512": thumbnail_pipelines.penstock,
    "parse_example, batch of 1024": click_pipelines.penstock,
    "parse_single_example, batch of 1024": lambda: click_pipelines.penstock(batched=False),
}
PIPELINES = {**OURS, TF_JPEG: jpeg_pipelines.tf_data}


@dataclass(frozen=True)
class First:
    """Time to a first batch from the start of its process: seconds, and CPU seconds of that process."""

    wall: float
    cpu: float


def first_batch(pipeline: str) -> First:
    """Measure a process that computes one batch.

    Child and parent share the system's monotonic clock, so the end of the process is not counted.
    """
    start = time.monotonic()
    end, cpu = figures_of([sys.executable, sys.argv[0], "--side", pipeline])
    return First(end - start, cpu)


def make(pipeline: str) -> None:
    """Compute the first batch, and print the time and the CPU time at that moment."""
    next(iter(PIPELINES[pipeline]()))
    print(json.dumps([time.monotonic(), time.process_time()]))


def main() -> None:
    parser = argparse.ArgumentParser(description="from process start to the first batch")
    parser.add_argument("--pairs", type=int, default=PAIRS, metavar="N", help="runs of each side (%(default)s)")
    parser.add_argument("--side", metavar="NAME", help="make the first batch of this pipeline and print the times")
    chosen = parser.parse_args()
    if chosen.side:
        make(chosen.side)
        return
    for prepare in (photographs, clicks, thumbnails):
        prepare()
    rows = [alone(name, [first_batch(name) for _ in range(chosen.pairs)]) for name in OURS]
    notes = ["left out: tensorflow is not installed"]
    if installed("tensorflow"):
        rows, notes = rows + with_tensorflow(chosen.pairs), []
    print_table(rows, notes)


def with_tensorflow(pairs: int) -> list[Row]:
    first_batch(TF_JPEG)  # reads TensorFlow's libraries from disk, so that no measured run does
    pairs_of = [(first_batch(JPEG), first_batch(TF_JPEG)) for _ in range(pairs)]
    ours, theirs = ([*side] for side in zip(*pairs_of, strict=True))
    return [compared(ours, theirs, 0.5)]


def alone(pipeline: str, found: list[First]) -> Row:
    row = allowed_row(f"first batch: {pipeline}", [first.wall for first in found], ALLOWED, "s")
    return replace(row, cpu_penstock=_microseconds(found))


def compared(ours: list[First], theirs: list[First], goal: float) -> Row:
    return Row(
        workload=f"first batch: {JPEG}",
        penstock=f"{median(first.wall for first in ours):.2f} s",
        peer="tf.data",
        theirs=f"{median(first.wall for first in theirs):.2f} s",
        ratios=[mine.wall / other.wall for mine, other in zip(ours, theirs, strict=True)],
        cpu_penstock=_microseconds(ours),
        cpu_peer=_microseconds(theirs),
        goal=goal,
        at_most=True,
    )


def _microseconds(found: list[First]) -> float:
    return median(first.cpu for first in found) * 1e6


if __name__ == "__main__":
    main()
