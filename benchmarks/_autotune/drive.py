"""The consumer of an endless pipeline: its elements per second, and their cost."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from _common.duel import cpu_seconds


@dataclass(frozen=True)
class Timing:
    """Seconds of warm-up and of measurement."""

    run_in: float
    seconds: float


@dataclass(frozen=True)
class Figures:
    """Elements per second, CPU microseconds per element, and the tuner's choices."""

    rate: float
    cpu_us: float
    chosen: str = ""


def drive(elements: Iterator[Any], timing: Timing, *, each: int = 1, step: float = 0.0) -> Figures:
    """Consume an endless iterator, with `step` seconds of waiting after each. An item has `each` elements."""
    next(elements)
    take(elements, timing.run_in, step)
    # first, because reading the CPU seconds takes a second if a function holds the interpreter lock
    start = time.perf_counter()
    cpu = cpu_seconds()
    count = each * take(elements, timing.seconds, step)
    wall = time.perf_counter() - start
    return Figures(count / wall, (cpu_seconds() - cpu) / count * 1e6)


def take(elements: Iterator[Any], seconds: float, step: float = 0.0) -> int:
    """Return the number of items taken in at least `seconds`."""
    stop = time.perf_counter() + seconds
    for count, _ in enumerate(elements, 1):
        if step:
            time.sleep(step)
        if time.perf_counter() >= stop:
            return count
    raise AssertionError("the pipeline has to be endless")
