"""Measure the cost of taking elements one by one in a Python loop.

    for element in range(100 000): ...

penstock and tf.data iterate with `ds.as_numpy_iterator()`; tf.data also with `for x in ds`, which returns eager
tensors. tf.data's side has a fifth of the elements to save minutes. This does not change its rate, because its cost is
per element. Goal: ≥ 20 times the rate of tf.data.

    python benchmarks/elements.py [--pairs N]
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from _common.duel import Pass, Side, duel

COUNT = 100_000
FEWER = COUNT // 5


def counted(elements: Iterable[Any], count: int = COUNT) -> int:
    seen = 0
    for _ in elements:
        seen += 1
    assert seen == count
    return seen


def penstock() -> Pass:
    import penstock as ps

    ds = ps.Dataset.range(COUNT)
    return lambda: counted(ds.as_numpy_iterator())


def tf_numpy() -> Pass:
    import tensorflow as tf

    ds = tf.data.Dataset.range(FEWER)
    return lambda: counted(ds.as_numpy_iterator(), FEWER)


def tf_eager() -> Pass:
    import tensorflow as tf

    ds = tf.data.Dataset.range(FEWER)
    return lambda: counted(ds, FEWER)


def grain() -> Pass:
    import grain.python as pygrain

    ds = pygrain.MapDataset.range(COUNT)
    return lambda: counted(ds)


def torch() -> Pass:
    from torch.utils.data import DataLoader

    loader = DataLoader(range(COUNT), batch_size=None)
    return lambda: counted(loader)


if __name__ == "__main__":
    duel(
        "numbers one by one",
        Side("penstock", penstock),
        Side("tf.data, as_numpy_iterator", tf_numpy, needs="tensorflow", goal=20),
        Side("tf.data, eager tensors", tf_eager, needs="tensorflow", goal=20),
        Side("grain", grain, needs="grain"),
        Side("torch, no workers", torch, needs="torch"),
    )
