"""IndexedColumn: elements of a large array by their numbers, left where they are until a batch wants them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.block.column import Column, DenseColumn, ListColumn
from penstock.block.spec import TensorSpec


class IndexedColumn(ListColumn):
    """Read-only views of the elements `rows` of `whole`, made when somebody asks for the `items`.

    >>> whole = np.arange(6).reshape(3, 2)
    >>> column = IndexedColumn(whole, np.array([2, 0]))
    >>> [item.tolist() for item in column.items], column.take(np.array([1])).rows.tolist()
    ([[4, 5], [0, 1]], [0])
    """

    __slots__ = ("rows", "whole")

    def __init__(self, whole: np.ndarray, rows: np.ndarray) -> None:
        self.whole = whole
        self.rows = rows

    def __getattr__(self, name: str) -> Any:
        if name != "items":
            raise AttributeError(name)
        fixed = self.whole.view()
        fixed.flags.writeable = False
        self.items = [fixed[row] for row in self.rows.tolist()]
        return self.items

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def nbytes(self) -> int:
        return len(self.rows) * (self.whole.nbytes // len(self.whole))

    def spec(self) -> TensorSpec:
        return TensorSpec(self.whole.shape[1:], self.whole.dtype)

    def slice(self, start: int, stop: int) -> IndexedColumn:
        return IndexedColumn(self.whole, self.rows[start:stop])

    def take(self, rows: np.ndarray) -> IndexedColumn:
        return IndexedColumn(self.whole, self.rows[rows])

    def dense(self) -> DenseColumn:
        """A copy, side by side."""
        return DenseColumn(self.whole.take(self.rows, axis=0))

    def followed_by(self, others: Sequence[Column]) -> IndexedColumn | None:
        rows = [self.rows]
        for other in others:
            if not isinstance(other, IndexedColumn) or other.whole is not self.whole:
                return None
            rows.append(other.rows)
        return IndexedColumn(self.whole, np.concatenate(rows))


def indexed(column: Column) -> IndexedColumn | None:
    """All elements of a column by their numbers in the array that it is a part of, if they are read-only there."""
    if not isinstance(column, DenseColumn) or not len(column):
        return None
    part, whole = column.array, column.array.base
    if part.flags.writeable or not isinstance(whole, np.ndarray) or not part.flags.c_contiguous or not part.nbytes:
        return None
    if not whole.flags.c_contiguous or whole.shape[1:] != part.shape[1:] or whole.dtype != part.dtype:
        return None
    first, beside = divmod(part.ctypes.data - whole.ctypes.data, part.nbytes // len(part))
    return None if beside else IndexedColumn(whole, np.arange(first, first + len(part)))
