"""`group_by_reducer`: for `Dataset.apply`, as in tf.data."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from penstock.plan.grouping import GroupByReducer
from penstock.plan.reducer import Reducer

if TYPE_CHECKING:
    from penstock.dataset.dataset import Dataset


def group_by_reducer(key_func: Callable[..., Any], reducer: Reducer) -> Callable[[Dataset], Dataset]:
    """For `Dataset.apply`: all elements with the same `key_func(element)`, an integer, reduced to one.

    The results come when the input has ended, in ascending order of their keys.

    >>> import penstock as ps
    >>> count = ps.experimental.Reducer(lambda key: (key, 0), lambda s, x: (s[0], s[1] + 1), lambda key, n: (key, n))
    >>> ds = ps.Dataset.from_tensor_slices([5, 3, 5, 5]).apply(ps.experimental.group_by_reducer(lambda x: x, count))
    >>> [(int(key), int(n)) for key, n in ds]
    [(3, 1), (5, 3)]

    An element for which a function fails is one failure and leaves its group as it was. A checkpoint holds no groups: a
    continued pass reads its input from the start. Raises InvalidTypeError for what is no function or no Reducer.
    """

    def apply(dataset: Dataset) -> Dataset:
        return dataset._then(GroupByReducer, key_func=key_func, reducer=reducer)

    return apply
