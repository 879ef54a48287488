"""Values that cannot be written to, without a copy: what users' functions get, and what a source reads from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np

from penstock.block.column import Column, DenseColumn, ListColumn
from penstock.block.tensors import RaggedTensor, SparseTensor


def fixed_values(column: Column) -> list[Any]:
    """Every element's value, so that nobody can write into it.

    >>> value, = fixed_values(DenseColumn(np.zeros((1, 3))))
    >>> value.flags.writeable
    False
    """
    if isinstance(column, DenseColumn):
        array = column.array
        plain = array.ndim == 1 and array.dtype.kind != "V"  # numbers are values
        return list(array if plain else fixed_array(array))
    values = column.values()
    if isinstance(column, ListColumn) or (values and isinstance(values[0], np.ndarray)):
        return [fixed(value) for value in values]
    return values


def fixed_column(column: Column) -> Column:
    """The same elements in arrays that nobody can write through."""
    if isinstance(column, DenseColumn):
        return DenseColumn(fixed_array(column.array))
    return ListColumn(fixed_values(column)) if isinstance(column, ListColumn) else column


def fixed(value: Any) -> Any:
    """An array or tensor as a view that cannot be written to; anything else as it is."""
    if isinstance(value, np.ndarray):
        return fixed_array(value)
    return value.with_arrays(fixed_array) if isinstance(value, (SparseTensor, RaggedTensor)) else value


def fixed_array(array: np.ndarray) -> np.ndarray:
    if not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def fix(array: np.ndarray) -> np.ndarray:
    """The array itself, which cannot be written to from now on."""
    array.flags.writeable = False
    return array


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
