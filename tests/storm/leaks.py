"""Iterations that end in any way leave no threads, no processes, no open files and no memory."""

from __future__ import annotations

import contextlib
import gc
import os
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from tests.storm.pipelines import executors, pipeline_of
from tests.storm.worker import GROUP, Skipped, Wrong, members

import penstock as ps

_PIPELINES = 12
_ROUNDS = 4
_PATIENCE = 10.0  # seconds until workers of abandoned iterations have to end
_MEMORY = 64 << 20  # allowed difference of the same rounds in bytes


class Left(Exception):
    """Raised inside a loop, or in a user function."""


def leaks(seed: int) -> None:
    """Run the same iterations, abandoned in all ways, in some rounds: nothing grows from the second to the last."""
    rng = Random(seed)
    work = []
    for _ in range(_PIPELINES):
        with contextlib.suppress(Skipped):
            number = rng.getrandbits(32)
            way, (executor,) = rng.choice(WAYS), executors(rng, 1)
            work.append(partial(_left, pipeline_of(number).dataset, way, executor, rng.randint(0, 6)))
    kept = []
    for _ in range(_ROUNDS):
        for one in work:
            one()
        kept.append(_held())
    first, last = kept[1], kept[-1]
    for name, most in (("threads", 0), ("processes", 0), ("files", 2), ("memory", _MEMORY)):
        grown = [one[name] for one in kept]
        if last[name] - first[name] > most and grown == sorted(set(grown)):
            raise Wrong(f"{name} grow: {grown} behind each of {_ROUNDS} equal rounds of {len(work)} passes")


def _left(dataset: ps.Dataset, way: Callable[..., None], executor: str, count: int) -> None:
    with contextlib.suppress(Left, StopIteration):
        way(dataset, executor, count)


def dropped(dataset: ps.Dataset, executor: str, count: int) -> None:
    elements = dataset.iterator(executor=executor)
    for _ in range(count):
        next(elements)


def closed(dataset: ps.Dataset, executor: str, count: int) -> None:
    elements = dataset.iterator(executor=executor)
    try:
        for _ in range(count):
            next(elements)
    finally:
        elements.close()


def raised(dataset: ps.Dataset, executor: str, count: int) -> None:
    for number, _ in enumerate(dataset.iterator(executor=executor)):
        if number == count:
            raise Left


def failed(dataset: ps.Dataset, executor: str, count: int) -> None:
    def fail(*element: Any) -> Any:
        raise Left

    for _ in dataset.map(fail).iterator(executor=executor):
        pass


def in_a_thread(dataset: ps.Dataset, executor: str, count: int) -> None:
    thread = threading.Thread(target=_left, args=(dataset, dropped, executor, count))
    thread.start()
    thread.join()


def together(dataset: ps.Dataset, executor: str, count: int) -> None:
    kept = [dataset.iterator(executor=executor) for _ in range(4)]
    for elements in kept:
        next(elements)


def in_a_cycle(dataset: ps.Dataset, executor: str, count: int) -> None:
    elements = dataset.iterator(executor=executor)
    cycle: list[Any] = [elements]
    cycle.append(cycle)
    next(elements)


WAYS = (dropped, closed, raised, failed, in_a_thread, together, in_a_cycle)


def _held() -> dict[str, int]:
    """Return the resources of this process, after ending workers have ended."""
    gc.collect()
    deadline = time.monotonic() + _PATIENCE
    while any(thread.name.startswith("penstock") for thread in threading.enumerate()) and time.monotonic() < deadline:
        time.sleep(0.02)
    gc.collect()
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return {
        "threads": threading.active_count(),
        "processes": len(members(os.getpgrp(), GROUP)),
        "files": sum(1 for _ in Path("/proc/self/fd").iterdir()),
        "memory": resident,
    }
