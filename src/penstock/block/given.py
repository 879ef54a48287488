"""Given: the values that a function is given of columns made for it alone, which it may give back as they are.

A result that is the very array that the function was given, and that nobody else holds, needs no copy: the column
that it is a row of becomes the column of the results. Who holds what is told by counts of references, as in `settle`.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from operator import is_
from typing import Any

import numpy as np

from penstock.block.column import Column, DenseColumn

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
