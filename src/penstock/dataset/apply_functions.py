"""Functions for `Dataset.apply` that tf.data has in `experimental`: batches, groups, access by index, state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from penstock.dataset.dataset import Dataset
from penstock.dataset.stateful import Stateful
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.keys import fold
from penstock.permutation import MOST, permutation
from penstock.plan.grouping import GroupByReducer, Reducer
from penstock.plan.node import check_int

Transformation = Callable[[Dataset], Dataset]


def dense_to_ragged_batch(
    batch_size: int, drop_remainder: bool = False, row_splits_dtype: Any = np.int64
) -> Transformation:
    """Return a function for `Dataset.apply` that calls `Dataset.ragged_batch`.

    Args:
        batch_size: As in `Dataset.ragged_batch`.
        drop_remainder: As in `Dataset.ragged_batch`.
        row_splits_dtype: As in `Dataset.ragged_batch`.

    Returns:
        A function from a data set to a data set.

    Example:
        >>> import numpy as np, penstock as ps
        >>> ds = ps.Dataset.range(4).map(lambda n: np.arange(n))
        >>> [b.to_list() for b in ds.apply(ps.experimental.dense_to_ragged_batch(2))]
        [[[], [0]], [[0, 1], [0, 1, 2]]]
    """
    return lambda dataset: dataset.ragged_batch(batch_size, drop_remainder, row_splits_dtype)


def dense_to_sparse_batch(batch_size: int, row_shape: Any) -> Transformation:
    """Return a function for `Dataset.apply` that calls `Dataset.sparse_batch`.

    Args:
        batch_size: As in `Dataset.sparse_batch`.
        row_shape: As in `Dataset.sparse_batch`.

    Returns:
        A function from a data set to a data set.

    Example:
        >>> import numpy as np, penstock as ps
        >>> ds = ps.Dataset.range(1, 3).map(lambda n: np.full(n, n))
        >>> [b.to_list() for b in ds.apply(ps.experimental.dense_to_sparse_batch(2, [3]))]
        [[[1, 0, 0], [2, 2, 0]]]
    """
    return lambda dataset: dataset.sparse_batch(batch_size, row_shape)


def pad_to_cardinality(cardinality: int, mask_key: str = "valid") -> Transformation:
    """Return a function for `Dataset.apply` that calls `Dataset.pad_to_cardinality`.

    Args:
        cardinality: As in `Dataset.pad_to_cardinality`.
        mask_key: As in `Dataset.pad_to_cardinality`.

    Returns:
        A function from a data set to a data set.

    Example:
        >>> import penstock as ps
        >>> ds = ps.Dataset.from_tensor_slices({"x": [5]}).apply(ps.experimental.pad_to_cardinality(2))
        >>> [(int(e["x"]), bool(e["valid"])) for e in ds]
        [(5, True), (0, False)]
    """
    return lambda dataset: dataset.pad_to_cardinality(cardinality, mask_key)


_INDEX = 0x696E646578  # the letters of "index": separates these random numbers from those of other uses of a seed


def at(dataset: Dataset, index: int) -> Any:
    """Return the element with a given index: `dataset.at(index)`.

    Args:
        dataset: The data set.
        index: As in `Dataset.at`.

    Returns:
        The element.

    Raises:
        InvalidTypeError: If `dataset` is not a Dataset.
        OutOfRangeError: If there is no element with this index.
        UnimplementedError: If the elements have no index.

    Example:
        >>> import penstock as ps
        >>> ps.experimental.at(ps.Dataset.range(5).map(lambda x: x + 1), 3)
        np.int64(4)
    """
    if not isinstance(dataset, Dataset):
        raise InvalidTypeError(f"at needs a Dataset, got {type(dataset).__name__}.")
    return dataset.at(index)


def index_shuffle(index: Any, seed: Any, max_index: int) -> Any:
    """Return the number at a given place of a random permutation of `0, 1, …, max_index`.

    The call takes constant memory and time for any `max_index`. The method is that of `shuffle(ps.ALL)`. The
    permutations differ from those of TensorFlow.

    Args:
        index: A place, or an array of places: integers from 0 to `max_index`.
        seed: Seed of the permutation: an integer, or a sequence of up to three integers.
        max_index: The largest number, below 2**63.

    Returns:
        The number, or an array of numbers, with the dtype of `index`.

    Raises:
        InvalidArgumentError: If a place or `max_index` is out of range.
        InvalidTypeError: If `index` or `seed` is not an integer.

    Example:
        >>> import numpy as np
        >>> import penstock as ps
        >>> order = ps.experimental.index_shuffle(np.arange(5), seed=(1, 2), max_index=4)
        >>> sorted(order.tolist()), bool(ps.experimental.index_shuffle(3, (1, 2), 4) == order[3])
        ([0, 1, 2, 3, 4], True)
    """
    most = check_int("max_index", max_index, least=0, hint="The largest index: one less than the number of elements.")
    if most >= MOST:
        raise InvalidArgumentError(f"max_index must be below 2**63, got max_index={most}.")
    found = np.asarray(index)
    if found.dtype.kind not in "iu":
        message = f"index must be an integer or an array of integers, got {type(index).__name__} of {found.dtype}."
        raise InvalidTypeError(message)
    outside = (found < 0) | (found > most)
    if outside.any():
        message = f"index must be in [0, max_index], got index={found[outside].flat[0]}, max_index={most}."
        raise InvalidArgumentError(message)
    numbers = permutation(_key(seed), most + 1).at(found.reshape(-1).astype(np.int64))
    return numbers.reshape(found.shape).astype(found.dtype)[()]


def _key(seed: Any) -> int:
    parts = np.atleast_1d(np.asarray(seed))
    if parts.dtype.kind not in "iu" or parts.ndim > 1 or not 1 <= len(parts) <= 3:
        raise InvalidTypeError(f"seed must be an integer or a list of up to three, got seed={seed!r:.60}.")
    return fold(_INDEX, *parts.tolist())


def assert_cardinality(expected_cardinality: int) -> Callable[[Dataset], Dataset]:
    """Return a function for `Dataset.apply` that calls `Dataset.assert_cardinality`.

    Args:
        expected_cardinality: As in `Dataset.assert_cardinality`.

    Returns:
        A function from a data set to a data set.

    Example:
        >>> import penstock as ps
        >>> ds = ps.Dataset.range(9).filter(lambda x: x % 3 == 0)
        >>> len(ds.apply(ps.experimental.assert_cardinality(3)))
        3
    """
    return lambda dataset: dataset.assert_cardinality(expected_cardinality)


def ignore_errors(log_warning: bool = False) -> Callable[[Dataset], Dataset]:
    """Return a function for `Dataset.apply` that calls `Dataset.ignore_errors`, which also has limits and a quarantine.

    Args:
        log_warning: As in `Dataset.ignore_errors`.

    Returns:
        A function from a data set to a data set.

    Example:
        >>> import penstock as ps
        >>> ds = ps.Dataset.range(3).apply(ps.experimental.ignore_errors())
        >>> [int(x) for x in ds]
        [0, 1, 2]
    """
    return lambda dataset: dataset.ignore_errors(log_warning)


def Counter(start: Any = 0, step: Any = 1, dtype: Any = np.int64) -> Dataset:
    """Create an infinite data set of numbers with a constant step: `Dataset.counter`.

    Args:
        start: As in `Dataset.counter`.
        step: As in `Dataset.counter`.
        dtype: As in `Dataset.counter`.

    Returns:
        A data set of scalars.

    Example:
        >>> import penstock as ps
        >>> [int(x) for x in ps.experimental.Counter(5).take(2)]
        [5, 6]
    """
    return Stateful.counter(start, step, dtype)


def RandomDataset(seed: int | None = None, rerandomize_each_iteration: bool | None = None) -> Dataset:
    """Create an infinite data set of random numbers: `Dataset.random`.

    Args:
        seed: As in `Dataset.random`.
        rerandomize_each_iteration: As in `Dataset.random`.

    Returns:
        A data set of int64 scalars.

    Example:
        >>> import penstock as ps
        >>> int(next(iter(ps.experimental.RandomDataset(4)))) == int(next(iter(ps.Dataset.random(4))))
        True
    """
    return Stateful.random(seed, rerandomize_each_iteration)


def group_by_reducer(key_func: Callable[..., Any], reducer: Reducer) -> Callable[[Dataset], Dataset]:
    """Return a function for `Dataset.apply` that reduces all elements with the same key to one element.

    The results are yielded after the end of the input, in ascending order of their keys. If a function fails for an
    element, the element fails, and its group stays the same. A checkpoint contains no groups: a resumed iterator reads
    its input from the start.

    Args:
        key_func: A function of an element that returns its key, an integer.
        reducer: The functions that reduce a group.

    Returns:
        A function from a data set to a data set.

    Raises:
        InvalidTypeError: If `key_func` cannot be called, or if `reducer` is not a Reducer.

    Example:
        >>> import penstock as ps
        >>> count = ps.experimental.Reducer(
        ...     lambda key: (key, 0), lambda s, x: (s[0], s[1] + 1), lambda key, n: (key, n))
        >>> ds = ps.Dataset.from_tensor_slices([5, 3, 5, 5]).apply(ps.experimental.group_by_reducer(lambda x: x, count))
        >>> [(int(key), int(n)) for key, n in ds]
        [(3, 1), (5, 3)]
    """

    def apply(dataset: Dataset) -> Dataset:
        return dataset._then(GroupByReducer, key_func=key_func, reducer=reducer)

    return apply
