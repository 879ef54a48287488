"""Steps with almost no work, in one segment or in one segment each, over Blocks of 32 numbers."""

from __future__ import annotations

import time
from typing import Any

STEPS = 5
BLOCK = 32
COUNT = 1 << 16


class Spans:
    """Instrument that counts spans. A span is a Block that a segment has handed over."""

    def __init__(self) -> None:
        self.count = 0

    def span(self, stage: str, start: float, stop: float) -> None:
        self.count += 1


def chain(parallel: int, *, fused: bool) -> Any:
    """Build the chain. A prefetch of two Blocks bounds the Blocks of all later segments."""
    import penstock as ps

    ds = ps.Dataset.range(COUNT).prefetch(2 * BLOCK)
    for _ in range(STEPS):
        ds = ds.map(lambda x: x + 1, num_parallel_calls=parallel, executor="thread")
    options = ps.Options(autotune={"enabled": False}, experimental_optimization={"map_fusion": fused})
    return ds.with_options(options)


def passed(dataset: Any) -> tuple[float, float, int]:
    """Iterate and drop the Blocks. Return CPU seconds, wall seconds and the number of hand-overs."""
    spans = Spans()
    with dataset.iterator(instrument=spans) as iterator:
        cpu, wall = time.process_time(), time.perf_counter()
        while (pulled := iterator._run.pull(BLOCK)) is not None:
            if isinstance(pulled, Exception):
                raise pulled
        return time.process_time() - cpu, time.perf_counter() - wall, spans.count
