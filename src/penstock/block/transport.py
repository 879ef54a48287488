"""Values on their way to another process: a pickle, and beside it the bytes of the arrays."""

from __future__ import annotations

import copyreg
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.block.block import Block
from penstock.block.column import BytesColumn, Column, DenseColumn, ListColumn
from penstock.block.indexed_column import IndexedColumn
from penstock.block.origin import Origin
from penstock.block.structure import LEAF, Structure

_same_main: list[bool] = []  # filled where the process that reads has this one's `__main__`
_SLACK = 2  # times the bytes a column means, from which it is copied out of the buffers it points into


def pack(value: Any, *, by_value: bool = False) -> tuple[bytes, list[pickle.PickleBuffer]]:
    """A value as bytes and buffers.

    Functions and classes that the other process cannot import travel by value; that costs more, and is done where
    `by_value` asks for it or a plain pickle will not do.
    """
    buffers: list[pickle.PickleBuffer] = []
    if not by_value:
        try:
            content = pickle.dumps(value, 5, buffer_callback=buffers.append)
        except Exception:  # a lambda, a class made in a function: the other way can
            buffers.clear()
        else:
            if not by_reference_fails(content):
                return content, buffers
            buffers.clear()
    from penstock.functions.shipping import dumped_by_value

    return dumped_by_value(value, buffers.append), buffers


def by_reference_fails(content: bytes) -> bool:
    """Return True if a plain pickle names the main script, which is another module there."""
    return (b"__main__" in content or b"__mp_main__" in content) and not _same_main


def share_main() -> None:
    """From now on this process, a forked one, writes to its parent: what that has in `__main__` is found by name.

    By value it would get another class for each, and `isinstance` and `except` would not know them.
    """
    _same_main.append(True)


# The general way to pickle classes with slots costs as much as the rest of a small Block's journey.


def _block(block: Block) -> tuple[Any, ...]:
    return Block, (block.structure, block.columns, block.size, block.origin)


def _structure(found: Structure) -> str | tuple[Any, ...]:
    if found is LEAF:
        return "LEAF"  # the module's own
    return Structure, (found.kind, found.names, found.children, found.size, found.flat)


def _dense(column: DenseColumn) -> tuple[Any, ...]:
    return DenseColumn, (column.array,)


def _bytes(column: BytesColumn) -> tuple[Any, ...]:
    return BytesColumn, (column.buffers, column.starts, column.lengths, column.which)


def _list(column: ListColumn) -> tuple[Any, ...]:
    return ListColumn, (column.items,)


def _origin(origin: Origin) -> tuple[Any, ...]:
    return Origin, (origin.files, origin.file, origin.offset, origin.position)


copyreg.pickle(Block, _block)
copyreg.pickle(Structure, _structure)
copyreg.pickle(DenseColumn, _dense)
copyreg.pickle(BytesColumn, _bytes)
copyreg.pickle(ListColumn, _list)
copyreg.pickle(IndexedColumn, _list)
copyreg.pickle(Origin, _origin)


def unpack(content: bytes | memoryview, buffers: Sequence[Any]) -> Any:
    """The value again, its arrays over `buffers` without a copy."""
    return pickle.loads(content, buffers=buffers)


def portable(block: Block) -> Block:
    """The same elements, without what only this process has: a mapped file behind a few byte strings."""
    return block.with_columns(block.structure, [_alone(column) for column in block.columns])


def _alone(column: Column) -> Column:
    if isinstance(column, DenseColumn):
        flags = column.array.flags
        whole = flags.c_contiguous or flags.f_contiguous  # another would be pickled by value
        return column if whole else DenseColumn(np.ascontiguousarray(column.array))
    if not isinstance(column, BytesColumn):
        return column
    behind = sum(buffer.nbytes for buffer in column.buffers)
    if behind <= _SLACK * column.nbytes:
        return column
    shape = column.starts.shape[1:]
    values = column.values()
    flat = [s for v in values for s in v.reshape(-1).tolist()] if shape else values
    return BytesColumn.from_values(flat, shape, len(values))
