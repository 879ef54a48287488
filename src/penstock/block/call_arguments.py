"""The arguments of a user function: if it returns a row of a column that it received, no copy is needed."""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from operator import is_
from typing import Any

import numpy as np

from penstock.block.block import BlockBuilder
from penstock.block.column import Column, DenseColumn

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
