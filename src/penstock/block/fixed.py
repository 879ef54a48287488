"""Read-only values without a copy, for user functions and for sources.

`CallArguments` tracks the columns of one function only. If the function returns one of their rows, no copy is needed.
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
    found: np.ndarray = np.asarray(array.data.toreadonly())
    return found


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


# A result needs no copy if it is the very array that the function received and no other reference to it exists. The
# column that contains this row then becomes the column of results. As in `settle`, reference counts tell whether other
# references exist.

_SMALLEST = 1 << 12  # bytes of a row: for smaller rows, the check costs more than a copy


@dataclass(slots=True)
class _CountedColumn:
    """A column, its rows, and the reference counts of the current row and of the memory of all rows."""

    column: DenseColumn
    rows: list[Any]
    base: Any
    layout: Any
    held: int = 0
    base_held: int = 0


class CallArguments:
    """The arguments of the calls of one Block.

    `columns` share memory with nothing else, and `rows` are their values.

    >>> from penstock.block.block import BlockBuilder
    >>> column = DenseColumn(np.zeros((2, 2000)))
    >>> given = CallArguments([column], [column.values()])
    >>> results = BlockBuilder(None, given)
    >>> for row in range(2):
    ...     given.begin(row)
    ...     results.add(given.rows_of(0)[row])
    >>> results.build().columns[0] is column
    True

    Not thread-safe: one thread makes all calls of a Block.
    """

    def __init__(self, columns: Sequence[Column], rows: Sequence[list[Any]]) -> None:
        self._row = -1
        self._more = 0 if type(self) is _Counting else _more()
        self._own = [
            _CountedColumn(column, values, values[0].base, _layout(values[0]))
            for column, values in zip(columns, rows, strict=True)
            if isinstance(column, DenseColumn) and column.array.ndim > 1 and _worth_it(values[0])
        ]
        for own in self._own:
            own.base_held = sys.getrefcount(own.base)

    def rows_of(self, column: int) -> list[Any]:
        return self._own[column].rows

    def begin(self, row: int) -> None:
        """Record that the function is called for this row next; -1 if it receives other arguments."""
        self._row = row
        for own in self._own:
            own.held = sys.getrefcount(own.rows[row])

    def holds(self, value: np.ndarray) -> bool:
        """Return True if a result is the argument itself, and no other reference to it or to its memory exists."""
        for own in self._own:
            if self._row >= 0 and value is own.rows[self._row]:
                return (
                    sys.getrefcount(value) == own.held + self._more
                    and sys.getrefcount(own.base) == own.base_held
                    and _layout(value) == own.layout
                )
        return False

    def column(self, leaves: Sequence[Any]) -> Column | None:
        """Return the column if `leaves` are all its rows in order, or None."""
        for own in self._own:
            if len(leaves) == len(own.rows) and all(map(is_, leaves, own.rows)):
                return own.column
        return None

    def copied(self, leaves: Sequence[Any]) -> list[Any]:
        """Return the same values with a copy of each row: one stored row would keep the memory of all rows alive."""
        known = {id(row) for own in self._own for row in own.rows}
        return [leaf.copy() if id(leaf) in known else leaf for leaf in leaves]


def _worth_it(row: np.ndarray) -> bool:
    return row.nbytes >= _SMALLEST and row.base is not None and row.flags.c_contiguous and not row.dtype.hasobject


def _layout(row: np.ndarray) -> Any:
    return row.shape, row.strides, row.dtype


@functools.cache
def _more() -> int:
    """Return the additional references to a result inside `holds`, compared with the start of the call."""
    from penstock.block.block import BlockBuilder  # which makes use of this module

    column = DenseColumn(np.zeros((1, _SMALLEST)))
    given = _Counting([column], [column.values()])
    given.begin(0)
    BlockBuilder(None, given).add(_given_back(given.rows_of(0)[0]))
    return given.more


class _Counting(CallArguments):
    more = 0

    def holds(self, value: np.ndarray) -> bool:
        self.more = sys.getrefcount(value) - self._own[0].held
        return True


def _given_back(value: Any) -> Any:
    return value
