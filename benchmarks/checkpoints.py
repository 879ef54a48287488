"""Measure the size of a checkpoint, and the time to resume from it deep in an indexed source.

Each plan has 10 million numbers as its source. The program iterates over 9 million of them, writes the state as JSON,
and loads it into a new iterator. The measured time starts before the new iterator is built and ends with its first
element. This element must be equal to the next element of the first iterator. Plans that reorder or group elements have
buffers, but a state stores only positions. Goals: at most 64 KiB, at most 1 second.

    python benchmarks/checkpoints.py [--only TEXT]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import penstock as ps
from penstock.testing.compare import difference

COUNT, AT = 10_000_000, 9_000_000
BATCH, BUFFER, WINDOW = 1000, 100_000, 1000
LENGTH = 8  # elements in a sequence
INPUTS = 100
MOST_BYTES, MOST_SECONDS = 64 << 10, 1.0

ARRAY = np.arange(COUNT)
Plan = Callable[[ps.Dataset], ps.Dataset]


def part(number: Any) -> ps.Dataset:
    """Return one of `INPUTS` data sets that together have all numbers."""
    return ps.Dataset.range(COUNT // INPUTS).map(lambda x: x + number * (COUNT // INPUTS))


def mixed(ds: ps.Dataset) -> ps.Dataset:
    halves = [ds.shard(2, 0), ds.shard(2, 1)]
    return ps.Dataset.sample_from_datasets(halves, [0.5, 0.5], seed=1)


def free_order(ds: ps.Dataset) -> ps.Dataset:
    return ds.map(lambda x: x + 1, num_parallel_calls=2, deterministic=False).batch(BATCH)


def grouped(ds: ps.Dataset) -> ps.Dataset:
    return ds.group_by_window(lambda x: x % 10, lambda key, window: window.batch(WINDOW), WINDOW)


def bucketed(ds: ps.Dataset) -> ps.Dataset:
    return ds.batch(LENGTH).bucket_by_sequence_length(len, [5], [BATCH // LENGTH] * 2)


# name -> (plan, number of source elements in one element of the plan)
PLANS: dict[str, tuple[Plan, int]] = {
    "range": (lambda ds: ds.batch(BATCH), BATCH),
    "arrays": (lambda ds: ps.Dataset.from_tensor_slices(ARRAY).batch(BATCH), BATCH),
    "map": (lambda ds: ds.map(lambda x: x + 1).batch(BATCH), BATCH),
    "parallel map": (lambda ds: ds.map(lambda x: x + 1, num_parallel_calls=2).batch(BATCH), BATCH),
    "parallel map, free order": (free_order, BATCH),
    "filter": (lambda ds: ds.filter(lambda x: x >= 0).batch(BATCH), BATCH),
    "prefetch": (lambda ds: ds.batch(BATCH).prefetch(10), BATCH),
    "shuffle(100000)": (lambda ds: ds.shuffle(BUFFER).batch(BATCH), BATCH),
    "shuffle(ALL)": (lambda ds: ds.shuffle(ps.ALL).batch(BATCH), BATCH),
    "repeat": (lambda ds: ds.take(COUNT // 10).repeat(10).batch(BATCH), BATCH),
    "shuffle and repeat": (lambda ds: ds.take(COUNT // 10).shuffle(BUFFER).repeat(10).batch(BATCH), BATCH),
    "zip": (lambda ds: ps.Dataset.zip(ds, ds.map(lambda x: -x)).batch(BATCH), BATCH),
    "interleave": (lambda ds: ps.Dataset.range(INPUTS).interleave(part, 16, 16).batch(BATCH), BATCH),
    "interleave, parallel": (lambda ds: ps.Dataset.range(INPUTS).interleave(part, 16, 16, 2).batch(BATCH), BATCH),
    "sample_from_datasets": (lambda ds: mixed(ds).batch(BATCH), BATCH),
    "window": (lambda ds: ds.window(WINDOW), WINDOW),
    "group_by_window": (grouped, WINDOW),
    "bucket_by_sequence_length": (bucketed, BATCH),
    "pack": (lambda ds: ds.batch(LENGTH).pack(BATCH), BATCH),
    "batch_by_tokens": (lambda ds: ds.batch(LENGTH).batch_by_tokens(BATCH), BATCH),
    "unique": (lambda ds: ds.unique().batch(BATCH), BATCH),
    "scan": (lambda ds: ds.scan(np.int64(0), lambda last, x: (x, last)).batch(BATCH), BATCH),
}


def measure(plan: Plan, per: int) -> tuple[int, float, float]:
    """Return the bytes of the state, the seconds to reach it and the seconds to resume from it."""
    ds = plan(ps.Dataset.range(COUNT))
    with ds.iterator(epoch=0) as elements:
        next(elements)
        started = time.perf_counter()
        for _ in range(AT // per - 1):
            next(elements)
        ran = time.perf_counter() - started
        text = json.dumps(elements.state_dict())
        wanted = next(elements)
    started = time.perf_counter()
    with plan(ps.Dataset.range(COUNT)).iterator() as again:
        again.load_state_dict(json.loads(text))
        found = next(again)
        took = time.perf_counter() - started
    if plan is not free_order:
        check(found, wanted)
    return len(text), ran, took


def check(found: Any, wanted: Any) -> None:
    if isinstance(found, ps.Dataset):
        found, wanted = list(found), list(wanted)
    if difference(found, wanted) is not None:
        sys.exit("the resumed iterator has another element")


def main() -> None:
    parser = argparse.ArgumentParser(description="size of checkpoints, time to resume from them")
    parser.add_argument("--only", default="", metavar="TEXT", help="run only plans whose names contain TEXT")
    chosen = parser.parse_args()
    width = max(map(len, PLANS))
    print(f"{'plan':{width}}  {'bytes':>7}  {'reached':>9}  {'resumed':>9}  goals")
    for name, (plan, per) in PLANS.items():
        if chosen.only in name:
            size, ran, took = measure(plan, per)
            verdict = "met" if size <= MOST_BYTES and took <= MOST_SECONDS else "MISSED"
            print(f"{name:{width}}  {size:>7}  {ran:>7.2f} s  {took * 1e3:>6.0f} ms  {verdict}", flush=True)


if __name__ == "__main__":
    main()
