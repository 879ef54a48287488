"""`tf.data.experimental`'s spelling of some steps of dataset/stateful.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.dataset.stateful import Stateful

if TYPE_CHECKING:
    from penstock.dataset.dataset import Dataset


def assert_cardinality(expected_cardinality: int) -> Callable[[Dataset], Dataset]:
    """For `Dataset.apply`: as `Dataset.assert_cardinality`.

    >>> import penstock as ps
    >>> ds = ps.Dataset.range(9).filter(lambda x: x % 3 == 0)
    >>> len(ds.apply(ps.experimental.assert_cardinality(3)))
    3
    """
    return lambda dataset: dataset.assert_cardinality(expected_cardinality)


def ignore_errors(log_warning: bool = False) -> Callable[[Dataset], Dataset]:
    """For `Dataset.apply`: as `Dataset.ignore_errors`, which also has limits and a quarantine.

    >>> import penstock as ps
    >>> ds = ps.Dataset.range(3).apply(ps.experimental.ignore_errors())
    >>> [int(x) for x in ds]
    [0, 1, 2]
    """
    return lambda dataset: dataset.ignore_errors(log_warning)


def Counter(start: Any = 0, step: Any = 1, dtype: Any = np.int64) -> Dataset:
    """As `Dataset.counter`.

    >>> import penstock as ps
    >>> [int(x) for x in ps.experimental.Counter(5).take(2)]
    [5, 6]
    """
    return Stateful.counter(start, step, dtype)


def RandomDataset(seed: int | None = None, rerandomize_each_iteration: bool | None = None) -> Dataset:
    """As `Dataset.random`.

    >>> import penstock as ps
    >>> int(next(iter(ps.experimental.RandomDataset(4)))) == int(next(iter(ps.Dataset.random(4))))
    True
    """
    return Stateful.random(seed, rerandomize_each_iteration)
