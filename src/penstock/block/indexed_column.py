"""IndexedColumn: elements of a large array by their numbers, left where they are until a batch is written.

by_reference: large elements as views, and those of a memory cache by their numbers.
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


_BY_REFERENCE = 1 << 16  # bytes of one element from which a view of its Block is kept instead of a copy
_BY_NUMBER = 1 << 12  # and its number, where it lies in memory that is kept and counted anyway


def by_reference(block: Block) -> Block:
    """The Block with elements that stay where they are anyway as views of it, or by number: taking some copies none."""
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
    """The Block with small elements side by side; large ones are copied once, into their batch."""
    return block.with_columns(block.structure, [side_by_side(column) for column in block.columns])


def side_by_side(column: Column) -> Column:
    """The same elements, picked ones copied if they are small."""
    return column.dense() if isinstance(column, IndexedColumn) and not is_large(column) else column


def copied_bytes(block: Block) -> int:
    """Bytes that are copied when all elements of a Block that `by_reference` gave are taken and `moved`."""
    return sum(column.nbytes for column in block.columns if _is_copied(column))


def _is_copied(column: Column) -> bool:
    return isinstance(column, DenseColumn) or (isinstance(column, IndexedColumn) and not is_large(column))


def joined(kept: Column, fresh: Column) -> Column:
    """One column behind the other, both as `by_reference` gives them."""
    return kept.followed_by([fresh]) or concat([side_by_side(kept), side_by_side(fresh)])


def is_large(column: Column) -> bool:
    """Whether its elements are copied as late as can be."""
    return column.nbytes >= _BY_REFERENCE * len(column)
