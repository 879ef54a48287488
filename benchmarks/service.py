"""What does it cost to have worker processes make the elements?

Three pipelines, each through `distribute()` and without it, in turns, in the same run:

- waiting: every element sleeps 5 ms, on 1, 2, 4 and 8 workers. Efficiency is the rate over that of the sleeps alone,
  times workers. Goal: ≥ 0.95.
- computing: every element is 1 ms of plain Python, on one worker, beside the thread that asks. Goal: ≥ 0.8 of its rate.
- moving: batches of 19 MB, each filled by one function, on one worker, beside threads. Goal: ≥ 0.8 of their rate.

Workers have started before anything is timed: a first pass of the same data set starts them.

    python benchmarks/service.py [--turns N]
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np

import penstock as ps

SLEEP = 0.005
FLOATS = 19 * 2**20 // 4


def sleep(x):
    time.sleep(SLEEP)
    return x


def compute(x):
    total = int(x)
    for i in range(12_000):
        total += i * i % 7
    return total


def fill(x):
    return np.full(FLOATS, x, np.float32)


def seconds(dataset):
    began = time.perf_counter()
    count = sum(1 for _ in dataset)
    return (time.perf_counter() - began) / count


def beside(dataset, workers, turns):
    """Medians of the seconds of an element: without the service, and with it."""
    remote = dataset.distribute(workers=workers)
    here, there = [], []
    seconds(remote)
    for _ in range(turns):
        here.append(seconds(dataset))
        there.append(seconds(remote))
    return statistics.median(here), statistics.median(there)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=3)
    turns = parser.parse_args().turns
    for workers in (1, 2, 4, 8):
        dataset = ps.Dataset.range(200 * workers).map(sleep).distribute(workers=workers)
        seconds(dataset)
        took = statistics.median(seconds(dataset) for _ in range(turns))
        print(f"waiting, {workers} workers: {took * 1e3:.2f} ms an element, efficiency {SLEEP / workers / took:.2f}")
    here, there = beside(ps.Dataset.range(400).map(compute), 1, turns)
    print(f"computing, 1 worker: {here * 1e3:.2f} ms here, {there * 1e3:.2f} ms there, {here / there:.2f} of its rate")
    here, there = beside(ps.Dataset.range(40).map(fill, num_parallel_calls=1, executor="thread"), 1, turns)
    print(
        f"moving 19 MB, 1 worker: {here * 1e3:.1f} ms here, {there * 1e3:.1f} ms there, {here / there:.2f} of its rate"
    )


if __name__ == "__main__":
    main()
