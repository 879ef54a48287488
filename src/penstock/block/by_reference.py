"""by_reference: large elements are kept as views, and those of a memory cache by their numbers."""

from __future__ import annotations

from penstock.block.block import Block
from penstock.block.column import Column, DenseColumn, ListColumn, concat
from penstock.block.counted_memory import is_counted
from penstock.block.indexed_column import IndexedColumn, indexed

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
