"""Read-only values without a copy, for user functions and for sources."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np

from penstock.block.column import Column, DenseColumn, ListColumn
from penstock.block.tensors import RaggedTensor, SparseTensor


def fixed_values(column: Column) -> list[Any]:
    """Return the value of each element. It cannot be written to or made writable.

    >>> value, = fixed_values(DenseColumn(np.zeros((1, 3))))
    >>> value.flags.writeable = True
    Traceback (most recent call last):
    ValueError: cannot set WRITEABLE flag to True of this array
    """
    if isinstance(column, DenseColumn):
        array = column.array
        # elements of such a column are numbers, which cannot be changed
        plain = array.ndim == 1 and array.dtype.kind != "V"
        return list(array if plain else _locked(array))
    values = column.values()
    if isinstance(column, ListColumn) or (values and isinstance(values[0], np.ndarray)):
        return [fixed(value) for value in values]
    return values


def fixed_column(column: Column) -> Column:
    """Return the same elements in read-only arrays."""
    if isinstance(column, DenseColumn):
        return DenseColumn(fixed_array(column.array))
    return ListColumn(fixed_values(column)) if isinstance(column, ListColumn) else column


def fixed_columns(columns: Sequence[Column], used: Collection[int]) -> list[Column]:
    """Return the columns, with `fixed_column` applied to those whose number is in `used`."""
    found = list(columns)
    for number in used:
        found[number] = fixed_column(columns[number])
    return found


def fixed(value: Any) -> Any:
    """Return an array or tensor as a view that cannot be written to or made writable; return other values unchanged."""
    if isinstance(value, np.ndarray):
        return _locked(value)
    return value.with_arrays(_locked) if isinstance(value, (SparseTensor, RaggedTensor)) else value


def _locked(array: np.ndarray) -> np.ndarray:
    """Return a view whose owner is read-only. If there is no such owner, the view is over a read-only buffer."""
    owner: Any = array if array.base is None else array.base
    if type(owner) is memoryview:
        safe = owner.readonly
    else:
        safe = type(owner) is np.ndarray and owner.base is None and not owner.flags.writeable
    if array.dtype.hasobject and not safe:  # numpy needs 50 µs to create a buffer of objects
        return fix(array.copy()).view()
    if safe or not array.itemsize:
        return fixed_array(array.view())
    if array.dtype.kind in "mMV":  # these dtypes have no buffers, or buffers that numpy cannot read back
        return _locked(array[..., None].view(np.uint8)).view(array.dtype)[..., 0]
    return np.asarray(array.data.toreadonly())


def fixed_array(array: np.ndarray) -> np.ndarray:
    if not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def fix(array: np.ndarray) -> np.ndarray:
    """Make the array itself read-only and return it."""
    array.flags.writeable = False
    return array


def without_aliasing(columns: Sequence[Column], pairs: Iterable[tuple[int, int]]) -> list[Column]:
    """Return the columns. For each pair that shares writable memory, the second column is a copy.

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
    """Return True if both are arrays and a write to one may change the other."""
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
