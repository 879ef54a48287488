"""Functions for `Dataset.apply` that tf.data has in `experimental`: ragged and sparse batches, padding with zeros."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from penstock.dataset.dataset import Dataset

Transformation = Callable[[Dataset], Dataset]


def dense_to_ragged_batch(
    batch_size: int, drop_remainder: bool = False, row_splits_dtype: Any = np.int64
) -> Transformation:
    """`Dataset.ragged_batch` as a function for `apply`.

    >>> import penstock as ps
    >>> ds = ps.Dataset.range(4).map(lambda n: np.arange(n))
    >>> [b.to_list() for b in ds.apply(ps.experimental.dense_to_ragged_batch(2))]
    [[[], [0]], [[0, 1], [0, 1, 2]]]
    """
    return lambda dataset: dataset.ragged_batch(batch_size, drop_remainder, row_splits_dtype)


def dense_to_sparse_batch(batch_size: int, row_shape: Any) -> Transformation:
    """`Dataset.sparse_batch` as a function for `apply`.

    >>> import penstock as ps
    >>> ds = ps.Dataset.range(1, 3).map(lambda n: np.full(n, n))
    >>> [b.to_list() for b in ds.apply(ps.experimental.dense_to_sparse_batch(2, [3]))]
    [[[1, 0, 0], [2, 2, 0]]]
    """
    return lambda dataset: dataset.sparse_batch(batch_size, row_shape)


def pad_to_cardinality(cardinality: int, mask_key: str = "valid") -> Transformation:
    """`Dataset.pad_to_cardinality` as a function for `apply`.

    >>> import penstock as ps
    >>> ds = ps.Dataset.from_tensor_slices({"x": [5]}).apply(ps.experimental.pad_to_cardinality(2))
    >>> [(int(e["x"]), bool(e["valid"])) for e in ds]
    [(5, True), (0, False)]
    """
    return lambda dataset: dataset.pad_to_cardinality(cardinality, mask_key)
