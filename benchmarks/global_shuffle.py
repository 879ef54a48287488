"""Measure the start, rate and memory of a shuffle of all elements.

    range(10 000 000).shuffle(ALL).batch(1024)

The start is the time from building the data set to its first batch, in a process that has done one such iteration
before. Penstock is compared with three sides: tf.data's own global shuffle, which is not public; a `shuffle` of tf.data
with a buffer for all elements; and a permutation of all numbers by numpy, returned in batches. The buffered side has a
tenth of the elements, because its start and memory grow with their number. Memory is the growth of the process's peak.
A rate counts elements, over the first two million. Goal: the start takes at most 50 ms.

    python benchmarks/global_shuffle.py [--pairs N]
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import resource
import sys
import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import numpy as np
from _common.duel import figures_of
from _common.table import rate

COUNT, BATCH, MEASURED = 10_000_000, 1024, 2_000_000
FEWER = COUNT // 10
MOST_MS = 50

Batches = Callable[[int], Iterator[Any]]  # starts an iteration with a seed


def penstock() -> Batches:
    import penstock as ps

    return lambda seed: iter(ps.Dataset.range(COUNT).shuffle(ps.ALL, seed=seed).batch(BATCH))


def tf_global() -> Batches:
    import tensorflow as tf
    from tensorflow.python.data.experimental.ops.global_shuffle_op import _global_shuffle

    return lambda seed: iter(_global_shuffle(tf.data.Dataset.range(COUNT), seed=seed).batch(BATCH))


def tf_buffer() -> Batches:
    import tensorflow as tf

    return lambda seed: iter(tf.data.Dataset.range(FEWER).shuffle(FEWER, seed=seed).batch(BATCH))


def numpy() -> Batches:
    def batches(seed: int) -> Iterator[Any]:
        order = np.random.default_rng(seed).permutation(COUNT)
        for start in range(0, COUNT, BATCH):
            yield order[start : start + BATCH]

    return batches


SIDES = {"penstock": penstock, "tf.data, global": tf_global, "tf.data, a tenth": tf_buffer, "numpy": numpy}
NEEDS = {"tf.data, global": "tensorflow", "tf.data, a tenth": "tensorflow"}


def measure(side: str) -> tuple[float, float, float]:
    """Return milliseconds to the first batch, elements per second after it, and MiB."""
    batches = SIDES[side]()
    before = _peak()
    next(batches(0))
    started = time.perf_counter()
    found = batches(2)
    next(found)
    first = time.perf_counter()
    given = sum(len(batch) for batch in itertools.islice(found, MEASURED // BATCH))
    took = time.perf_counter() - first
    return (first - started) * 1e3, given / took, _peak() - before


def _peak() -> float:
    """Return the peak memory of the process in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description="a shuffle of ten million elements: start, rate, memory")
    parser.add_argument("--pairs", type=int, default=2, metavar="N", help="runs of each side (%(default)s)")
    parser.add_argument("--side", choices=SIDES, help="run this side alone, in this process, and print its figures")
    chosen = parser.parse_args()
    if chosen.side:
        print(json.dumps(measure(chosen.side)))
        return
    present = [side for side in SIDES if importlib.util.find_spec(NEEDS.get(side, "penstock"))]
    runs = [{side: figures(side) for side in present} for _ in range(chosen.pairs)]
    print(f"{'':16}  {'first batch: min':>18}  {'median':>9}  {'elements':>9}  {'memory':>8}  goal")
    for side in present:
        starts, rates, memory = zip(*(run[side] for run in runs), strict=True)
        verdict = "-" if side != "penstock" else f"≤ {MOST_MS} ms {'met' if min(starts) <= MOST_MS else 'MISSED'}"
        least, middle = f"{min(starts):.1f} ms", f"{median(starts):.1f} ms"
        speed, grown = rate(median(rates)), f"{max(memory):.0f} MiB"
        print(f"{side:16}  {least:>18}  {middle:>9}  {speed:>9}  {grown:>8}  {verdict}")


def figures(side: str) -> list[float]:
    """Return the figures of a side from its own process."""
    found: list[float] = figures_of([sys.executable, *sys.argv, "--side", side])
    return found


if __name__ == "__main__":
    main()
