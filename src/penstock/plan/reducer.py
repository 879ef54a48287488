"""Reducer: how the elements of a group become one value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.plan.node import check_function


@dataclass(frozen=True)
class Reducer:
    """`init_func(key)` begins a group, `reduce_func(state, element)` adds to it, `finalize_func(state)` ends it.

    A state is a nest of leaves that keeps its structure and dtypes; one that is a plain tuple is unpacked for
    `finalize_func`, and an element that is one is not unpacked for `reduce_func`, as in tf.data. A list that one of
    them returns is a tuple.

    >>> import penstock as ps
    >>> mean = ps.experimental.Reducer(lambda key: (0, 0), lambda s, x: (s[0] + x, s[1] + 1), lambda a, n: a / n)
    >>> ds = ps.Dataset.range(6).apply(ps.experimental.group_by_reducer(lambda x: x % 2, mean))
    >>> [float(x) for x in ds]
    [2.0, 3.0]

    Raises InvalidTypeError for what is no function.
    """

    init_func: Callable[[Any], Any]
    reduce_func: Callable[[Any, Any], Any]
    finalize_func: Callable[..., Any]

    def __post_init__(self) -> None:
        for name in ("init_func", "reduce_func", "finalize_func"):
            check_function(name, getattr(self, name), "Reducer")
