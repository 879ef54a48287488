"""Serialisation for another process: a pickle, and the bytes of the arrays in separate buffers."""

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

_same_main: list[bool] = []  # not empty if the reading process has the same `__main__` as this one
_SLACK = 2  # a column is copied out of its buffers if they are so many times larger than the column


def pack(value: Any, *, by_value: bool = False) -> tuple[bytes, list[pickle.PickleBuffer]]:
    """Return a value as bytes and buffers.

    Functions and classes that the other process cannot import are pickled by value. This costs more, so it is done only
    if `by_value` is True or a plain pickle fails.
    """
    buffers: list[pickle.PickleBuffer] = []
    if not by_value:
        try:
            content = pickle.dumps(value, 5, buffer_callback=buffers.append)
        except Exception:  # a lambda, or a class defined in a function: pickling by value works
            buffers.clear()
        else:
            if not by_reference_fails(content):
                return content, buffers
            buffers.clear()
    from penstock.functions.shipping import dumped_by_value

    return dumped_by_value(value, buffers.append), buffers


def by_reference_fails(content: bytes) -> bool:
    """Return True if a plain pickle refers to the main script, which is another module in the other process."""
    return (b"__main__" in content or b"__mp_main__" in content) and not _same_main


def share_main() -> None:
    """Record that this forked process writes to its parent, which finds objects of `__main__` by name.

    Pickled by value, each object would get its own copy of its class, and `isinstance` and `except` would fail.
    """
    _same_main.append(True)


# The default pickling of classes with slots costs as much as the rest of the transfer of a small Block.


def _structure(found: Structure) -> str | tuple[Any, ...]:
    if found is LEAF:
        return "LEAF"  # the singleton of the module
    return Structure, (found.kind, found.names, found.children, found.size, found.flat)


def _list(column: ListColumn) -> tuple[Any, ...]:
    return ListColumn, (column.items,)


copyreg.pickle(Block, lambda block: (Block, (block.structure, block.columns, block.size, block.origin)))
copyreg.pickle(Structure, _structure)
copyreg.pickle(DenseColumn, lambda column: (DenseColumn, (column.array,)))
copyreg.pickle(BytesColumn, lambda one: (BytesColumn, (one.buffers, one.starts, one.lengths, one.which)))
copyreg.pickle(ListColumn, _list)
copyreg.pickle(IndexedColumn, _list)
copyreg.pickle(Origin, lambda origin: (Origin, (origin.files, origin.file, origin.offset, origin.position)))


def unpack(content: bytes | memoryview, buffers: Sequence[Any]) -> Any:
    """Return the value, with its arrays over `buffers` without a copy."""
    return pickle.loads(content, buffers=buffers)


def portable(block: Block) -> Block:
    """Return the same elements without memory of this process only, such as a mapped file around a few strings."""
    return block.with_columns(block.structure, [_alone(column) for column in block.columns])


def _alone(column: Column) -> Column:
    if isinstance(column, DenseColumn):
        flags = column.array.flags
        whole = flags.c_contiguous or flags.f_contiguous  # other arrays would be pickled by value
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
