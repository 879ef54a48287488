"""What does it cost to take elements one by one in a Python loop?

    for element in range(100 000): ...

Both ways of iterating, each beside tf.data's own: `for x in ds` (penstock: numpy scalars, tf.data: eager tensors) and
`ds.as_numpy_iterator()` (numpy on both sides; the goal is on it). Goal: ≥ 20 times tf.data.

    python benchmarks/elements.py [--pairs N]
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from _common.duel import Pass, Side, duel

COUNT = 100_000


def counted(elements: Iterable[Any]) -> int:
    seen = 0
    for _ in elements:
        seen += 1
    assert seen == COUNT
    return seen


def penstock() -> Pass:
    import penstock as ps

    ds = ps.Dataset.range(COUNT)
    return lambda: counted(ds.as_numpy_iterator())


def tf_numpy() -> Pass:
    import tensorflow as tf

    ds = tf.data.Dataset.range(COUNT)
    return lambda: counted(ds.as_numpy_iterator())


def tf_eager() -> Pass:
    import tensorflow as tf

    ds = tf.data.Dataset.range(COUNT)
    return lambda: counted(ds)


def grain() -> Pass:
    import grain.python as pygrain

    ds = pygrain.MapDataset.range(COUNT)
    return lambda: counted(ds)


def torch() -> Pass:
    from torch.utils.data import DataLoader

    loader = DataLoader(range(COUNT), batch_size=None)  # type: ignore[arg-type]
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
