"""Values on their way to another process: a pickle, and beside it the bytes of the arrays."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

from penstock.block.block import Block
from penstock.block.column import BytesColumn, Column

_SLACK = 2  # times the bytes a column means, from which it is copied out of the buffers it points into


def pack(value: Any) -> tuple[bytes, list[pickle.PickleBuffer]]:
    """A value as bytes and buffers. Functions and classes that the other process cannot import travel by value."""
    import cloudpickle

    buffers: list[pickle.PickleBuffer] = []
    return cloudpickle.dumps(value, protocol=5, buffer_callback=buffers.append), buffers


def unpack(content: bytes, buffers: Sequence[Any]) -> Any:
    """The value again, its arrays over `buffers` without a copy."""
    return pickle.loads(content, buffers=buffers)


def portable(block: Block) -> Block:
    """The same elements, without what only this process has: a mapped file behind a few byte strings."""
    return block.with_columns(block.structure, [_alone(column) for column in block.columns])


def _alone(column: Column) -> Column:
    if not isinstance(column, BytesColumn):
        return column
    behind = sum(buffer.nbytes for buffer in column.buffers)
    if behind <= _SLACK * column.nbytes:
        return column
    shape = column.starts.shape[1:]
    values = column.values()
    flat = [s for v in values for s in v.reshape(-1).tolist()] if shape else values
    return BytesColumn.from_values(flat, shape, len(values))
