"""IndexedColumn: elements of a large array by index. The elements are not copied until a batch is written.

`by_reference` replaces large elements by views, and elements of a memory cache by indices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.block.block import Block
from penstock.block.column import Column, DenseColumn, ListColumn, concat
from penstock.block.footprint import is_counted
from penstock.block.spec import TensorSpec


class IndexedColumn(ListColumn):
    """Read-only views of the elements `rows` of `whole`. The views are created at the first access to `items`.

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
        """Return a contiguous copy."""
        return DenseColumn(self.whole.take(self.rows, axis=0))

    def followed_by(self, others: Sequence[Column]) -> IndexedColumn | None:
        rows = [self.rows]
        for other in others:
            if not isinstance(other, IndexedColumn) or other.whole is not self.whole:
                return None
            rows.append(other.rows)
        return IndexedColumn(self.whole, np.concatenate(rows))


def indexed(column: Column) -> IndexedColumn | None:
    """Return a column as indices into the array that contains it, or None if that is writable or not contiguous."""
    if not isinstance(column, DenseColumn) or not len(column):
        return None
    part, whole = column.array, column.array.base
    if part.flags.writeable or not isinstance(whole, np.ndarray) or not part.flags.c_contiguous or not part.nbytes:
        return None
    if not whole.flags.c_contiguous or whole.shape[1:] != part.shape[1:] or whole.dtype != part.dtype:
        return None
    first, beside = divmod(part.ctypes.data - whole.ctypes.data, part.nbytes // len(part))
    return None if beside else IndexedColumn(whole, np.arange(first, first + len(part)))


_BY_REFERENCE = 1 << 16  # bytes of one element from which a view is stored instead of a copy
_BY_NUMBER = 1 << 12  # bytes of one element from which its index is stored, if it lies in memory that is counted anyway


def by_reference(block: Block) -> Block:
    """Return the Block with large elements as views and elements of a memory cache as indices.

    Taking some of its elements then copies none of them.
    """
    return block.with_columns(block.structure, [_where_it_is(column) for column in block.columns])


def _where_it_is(column: Column) -> Column:
    if not isinstance(column, DenseColumn):
        return column
    array = column.array
    if array.nbytes < _BY_NUMBER * len(array) or array.flags.writeable:
        return column
    if is_large(column):
        return indexed(column) or ListColumn(column.values())
    return indexed(column) or column if is_counted(array) else column


def moved(block: Block) -> Block:
    """Return the Block with small elements in contiguous memory. Large ones are copied once, into their batch."""
    return block.with_columns(block.structure, [side_by_side(column) for column in block.columns])


def side_by_side(column: Column) -> Column:
    """Return the column with indexed elements copied if they are small."""
    return column.dense() if isinstance(column, IndexedColumn) and not is_large(column) else column


def copied_bytes(block: Block) -> int:
    """Return the bytes that are copied if all elements of a Block of `by_reference` are taken and `moved`."""
    return sum(column.nbytes for column in block.columns if _is_copied(column))


def _is_copied(column: Column) -> bool:
    return isinstance(column, DenseColumn) or (isinstance(column, IndexedColumn) and not is_large(column))


def joined(kept: Column, fresh: Column) -> Column:
    """Join two columns that `by_reference` returned."""
    return kept.followed_by([fresh]) or concat([side_by_side(kept), side_by_side(fresh)])


def is_large(column: Column) -> bool:
    """Return True if the elements are so large that they are copied as late as possible."""
    return column.nbytes >= _BY_REFERENCE * len(column)
