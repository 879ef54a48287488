"""Values that cannot be written to, without a copy: what users' functions get, and what a source reads from.

Given: those of columns made for one function alone, which it may give back.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from operator import is_
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
        plain = array.ndim == 1 and array.dtype.kind != "V"  # numbers are values
        return list(array if plain else _locked(array))
    values = column.values()
    if isinstance(column, ListColumn) or (values and isinstance(values[0], np.ndarray)):
        return [fixed(value) for value in values]
    return values


def fixed_column(column: Column) -> Column:
    """The same elements in arrays that nobody can write through."""
    if isinstance(column, DenseColumn):
        return DenseColumn(fixed_array(column.array))
    return ListColumn(fixed_values(column)) if isinstance(column, ListColumn) else column


def fixed_columns(columns: Sequence[Column], used: Collection[int]) -> list[Column]:
    """The columns with those that are `used` as `fixed_column`s."""
    found = list(columns)
    for number in used:
        found[number] = fixed_column(columns[number])
    return found


def fixed(value: Any) -> Any:
    """An array or tensor as a view that cannot be written to or made writable; anything else as it is."""
    if isinstance(value, np.ndarray):
        return _locked(value)
    return value.with_arrays(_locked) if isinstance(value, (SparseTensor, RaggedTensor)) else value


def _locked(array: np.ndarray) -> np.ndarray:
    """A view of memory whose owner cannot be written to: a buffer that is read-only, where there is no such owner."""
    owner: Any = array if array.base is None else array.base
    if type(owner) is memoryview:
        safe = owner.readonly
    else:
        safe = type(owner) is np.ndarray and owner.base is None and not owner.flags.writeable
    if array.dtype.hasobject and not safe:  # numpy needs 50 µs for a buffer of objects
        return fix(array.copy()).view()
    if safe or not array.itemsize:
        return fixed_array(array.view())
    if array.dtype.kind in "mMV":  # which have no buffers, or none that numpy reads back
        return _locked(array[..., None].view(np.uint8)).view(array.dtype)[..., 0]
    found: np.ndarray = np.asarray(array.data.toreadonly())
    return found


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


# A result that is the very array that the function was given, and that nobody else holds, needs no copy: the column
# that it is a row of becomes the column of the results. Who holds what is told by counts of references, as in `settle`.

_SMALLEST = 1 << 12  # bytes of a row: looking costs more than copying less


@dataclass(slots=True)
class _Own:
    """A column, its rows, and how many hold the row at hand and the memory of all."""

    column: DenseColumn
    rows: list[Any]
    base: Any
    layout: Any
    held: int = 0
    base_held: int = 0


class Given:
    """What the calls of one Block are given. `columns` share memory with nothing else, and `rows` are their values.

    >>> from penstock.block.block import Builder
    >>> column = DenseColumn(np.zeros((2, 2000)))
    >>> given = Given([column], [column.values()])
    >>> results = Builder(None, given)
    >>> for row in range(2):
    ...     given.begin(row)
    ...     results.add(given.rows_of(0)[row])
    >>> results.build().columns[0] is column
    True

    Not thread-safe: the calls of a Block are made by one thread.
    """

    def __init__(self, columns: Sequence[Column], rows: Sequence[list[Any]]) -> None:
        self._row = -1
        self._more = 0 if type(self) is _Counting else _more()
        self._own = [
            _Own(column, values, values[0].base, _layout(values[0]))
            for column, values in zip(columns, rows, strict=True)
            if isinstance(column, DenseColumn) and column.array.ndim > 1 and _worth_it(values[0])
        ]
        for own in self._own:
            own.base_held = sys.getrefcount(own.base)

    def rows_of(self, column: int) -> list[Any]:
        return self._own[column].rows

    def begin(self, row: int) -> None:
        """The function is about to be called for this row; -1 where it is given something else."""
        self._row = row
        for own in self._own:
            own.held = sys.getrefcount(own.rows[row])

    def holds(self, value: np.ndarray) -> bool:
        """Whether a result is what the function was given, and nobody else holds it or a view of its memory."""
        for own in self._own:
            if self._row >= 0 and value is own.rows[self._row]:
                return (
                    sys.getrefcount(value) == own.held + self._more
                    and sys.getrefcount(own.base) == own.base_held
                    and _layout(value) == own.layout
                )
        return False

    def column(self, leaves: Sequence[Any]) -> Column | None:
        """The column whose rows these are, all of them in order."""
        for own in self._own:
            if len(leaves) == len(own.rows) and all(map(is_, leaves, own.rows)):
                return own.column
        return None

    def copied(self, leaves: Sequence[Any]) -> list[Any]:
        """The same values, none of them a row: one that is kept would keep the memory of all."""
        known = {id(row) for own in self._own for row in own.rows}
        return [leaf.copy() if id(leaf) in known else leaf for leaf in leaves]


def _worth_it(row: np.ndarray) -> bool:
    return row.nbytes >= _SMALLEST and row.base is not None and row.flags.c_contiguous and not row.dtype.hasobject


def _layout(row: np.ndarray) -> Any:
    return row.shape, row.strides, row.dtype


@functools.cache
def _more() -> int:
    """How many more hold a result when `holds` looks at it than when the call began, if nobody keeps it."""
    from penstock.block.block import Builder  # which makes use of this module

    column = DenseColumn(np.zeros((1, _SMALLEST)))
    given = _Counting([column], [column.values()])
    given.begin(0)
    Builder(None, given).add(_given_back(given.rows_of(0)[0]))
    return given.more


class _Counting(Given):
    more = 0

    def holds(self, value: np.ndarray) -> bool:
        self.more = sys.getrefcount(value) - self._own[0].held
        return True


def _given_back(value: Any) -> Any:
    return value
