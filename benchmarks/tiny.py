"""Measure the cost of tiny elements in a pipeline of plain Python functions.

    range(N).map(lambda x: x + 1).filter(lambda x: x % 3 != 0).shuffle(10000).batch(1024)

penstock runs N = 2 000 000. tf.data runs a fortieth of N to save minutes. This does not change its rate, because its
cost is per element. tf.data has two rows: with AUTOTUNE, and sequential, which also suits tiny elements. A rate counts
elements of the range. Goal: ≥ 60 times the rate of tf.data, 500 times if possible.

    python benchmarks/tiny.py [--pairs N]
"""

from __future__ import annotations

from functools import partial
from typing import Any

from _common.duel import Pass, Side, duel

NUMBERS = 2_000_000
FEWER = NUMBERS // 40
BUFFER, BATCH = 10_000, 1024


def data_set() -> Any:
    import penstock as ps

    numbers = ps.Dataset.range(NUMBERS)
    return numbers.map(lambda x: x + 1).filter(lambda x: x % 3 != 0).shuffle(BUFFER).batch(BATCH)


def penstock() -> Pass:
    ds = data_set()

    def one_pass() -> int:
        assert sum(len(batch) for batch in ds) == kept(NUMBERS)
        return NUMBERS

    return one_pass


def tf_data(*, autotune: bool = True) -> Pass:
    import tensorflow as tf

    ds = tf.data.Dataset.range(FEWER)
    ds = ds.map(lambda x: x + 1, num_parallel_calls=tf.data.AUTOTUNE if autotune else None)
    ds = ds.filter(lambda x: x % 3 != 0)
    ds = ds.shuffle(BUFFER).batch(BATCH)
    if autotune:
        ds = ds.prefetch(tf.data.AUTOTUNE)

    def one_pass() -> int:
        assert sum(len(batch) for batch in ds) == kept(FEWER)
        return FEWER

    return one_pass


def kept(count: int) -> int:
    """Return the number of integers in 1…count that are no multiples of three."""
    return count - count // 3


if __name__ == "__main__":
    duel(
        "map, filter, shuffle, batch of numbers",
        Side("penstock", penstock),
        Side("tf.data", tf_data, needs="tensorflow", goal=60, hoped=500),
        Side("tf.data, sequential", partial(tf_data, autotune=False), needs="tensorflow", goal=60, hoped=500),
    )
