"""A consumer of an endless pipeline: what it gets per second, and what that costs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from _common.duel import cpu_seconds


@dataclass(frozen=True)
class Timing:
    """Seconds: for running in, and then to be measured."""

    run_in: float
    seconds: float


@dataclass(frozen=True)
class Figures:
    """Elements per second, CPU microseconds per element, and what the tuner had chosen."""

    rate: float
    cpu_us: float
    chosen: str = ""


def drive(elements: Iterator[Any], timing: Timing, *, each: int = 1, step: float = 0.0) -> Figures:
    """Take what there is, `step` seconds at a time; `each` elements at a time are given."""
    next(elements)
    take(elements, timing.run_in, step)
    start = time.perf_counter()  # first: beside a function that keeps the lock, asking for CPU seconds takes one
    cpu = cpu_seconds()
    count = each * take(elements, timing.seconds, step)
    wall = time.perf_counter() - start
    return Figures(count / wall, (cpu_seconds() - cpu) / count * 1e6)


def take(elements: Iterator[Any], seconds: float, step: float = 0.0) -> int:
    """How many there were in at least so many seconds."""
    stop = time.perf_counter() + seconds
    for count, _ in enumerate(elements, 1):
        if step:
            time.sleep(step)
        if time.perf_counter() >= stop:
            return count
    raise AssertionError("the pipeline was to be endless")
