"""without_aliasing: the columns of one Block without memory in common, so that writing into one changes no other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np

from penstock.block.column import Column, DenseColumn, ListColumn


def without_aliasing(columns: Sequence[Column], pairs: Iterable[tuple[int, int]]) -> list[Column]:
    """The columns, where the second of a pair is a copy if the two share memory that can be written to.

    >>> pixels = np.zeros((2, 3))
    >>> first, second = without_aliasing([DenseColumn(pixels), DenseColumn(pixels[:, ::-1])], [(0, 1)])
    >>> np.may_share_memory(first.array, second.array)
    False
    """
    found = list(columns)
    for first, second in pairs:
        if _share(found[first], found[second]):
            found[second] = _copy(found[second])
    return found


def _share(first: Column, second: Column) -> bool:
    if isinstance(first, ListColumn) and isinstance(second, ListColumn):
        return any(map(_overlap, first.items, second.items))
    return any(_overlap(a, b) for a, b in product(_arrays(first), _arrays(second)))


def _overlap(first: Any, second: Any) -> bool:
    """Whether both are arrays, and writing into one may change the other."""
    if not (isinstance(first, np.ndarray) and isinstance(second, np.ndarray)):
        return False
    return (first.flags.writeable or second.flags.writeable) and np.may_share_memory(first, second)


def _arrays(column: Column) -> list[Any]:
    if isinstance(column, DenseColumn):
        return [column.array]
    return column.items if isinstance(column, ListColumn) else []


def _copy(column: Column) -> Column:
    if isinstance(column, ListColumn):
        return ListColumn([item.copy() if isinstance(item, np.ndarray) else item for item in column.items])
    assert isinstance(column, DenseColumn)
    return DenseColumn(column.array.copy())
