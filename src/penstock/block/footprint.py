"""Footprint: the bytes of memory that Blocks keep alive, which may be more than they show."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np

from penstock.block.block import Block
from penstock.block.column import BytesColumn, DenseColumn, ListColumn
from penstock.block.counted_memory import CountedMemory
from penstock.block.file_mapping import Mapping
from penstock.block.lease import Lease

_NOTHING = object()
_OBJECT = 64  # bytes of what does not tell, as columns count it


def footprint(block: Block | None) -> int:
    """Bytes kept alive: whole arrays, once each, of which the Block may show a part; 0 for none.

    Pages of mapped files count nothing: the system takes them back when it needs them. What is mapped and lent counts,
    for that is memory shared with another process. What a memory cache counts does not count again.

    >>> whole = Block.single(DenseColumn(np.zeros((100, 8))))
    >>> footprint(whole), footprint(whole.slice(0, 1)), whole.slice(0, 1).nbytes
    (6400, 6400, 64)
    """
    if block is None:
        return 0
    if len(block.columns) == 1:
        only = block.columns[0]
        if isinstance(only, DenseColumn):
            return _owner(only.array)[1]
        if isinstance(only, BytesColumn) and len(only.buffers) == 1:
            return _owner(only.buffers[0])[1] + only.starts.nbytes + only.lengths.nbytes
    alive = Footprints()
    alive.add_block(block)
    return alive.nbytes


class Footprints:
    """The bytes that several values keep alive together: what they share counts once.

    >>> whole, alive = np.zeros(100), Footprints()
    >>> for part in (whole[:10], whole[10:]):
    ...     alive.add(part)
    >>> alive.nbytes
    800
    >>> alive.remove(whole[10:])
    >>> alive.nbytes
    800
    """

    __slots__ = ("_owners", "_weightless", "nbytes")

    def __init__(self) -> None:
        self._weightless: Any = _NOTHING  # what the latest value without weight is a part of
        self._owners: dict[int, tuple[int, int]] = {}  # how many values each is kept alive by, and its bytes
        self.nbytes = 0

    def add(self, value: Any) -> None:
        """Count a value, which has to stay alive until it is removed."""
        if getattr(value, "base", None) is self._weightless:
            return
        key, nbytes = _owner(value)
        if not nbytes and isinstance(value, np.ndarray):
            if value.base is not None:
                self._weightless = value.base
            return
        count, known = self._owners.get(key, (0, nbytes))
        self._owners[key] = count + 1, known
        if not count:
            self.nbytes += nbytes

    def remove(self, value: Any) -> None:
        """A value that was added is let go of."""
        if getattr(value, "base", None) is self._weightless:
            return
        key, nbytes = _owner(value)
        if not nbytes and isinstance(value, np.ndarray):
            return
        count, nbytes = self._owners[key]
        if count > 1:
            self._owners[key] = count - 1, nbytes
        else:
            del self._owners[key]
            self.nbytes -= nbytes

    def add_block(self, block: Block) -> None:
        """Count all that is in a Block."""
        for column in block.columns:
            if isinstance(column, DenseColumn):
                self.add(column.array)
            elif isinstance(column, BytesColumn):
                for buffer in column.buffers:
                    self.add(buffer)
                self.nbytes += column.starts.nbytes + column.lengths.nbytes
            elif isinstance(column, ListColumn):
                for item in column.items:
                    self.add(item)


def _owner(value: Any) -> tuple[int, int]:
    """The identity of what a value is a part of, and the bytes that are alive with it."""
    if not isinstance(value, np.ndarray):
        return id(value), getattr(value, "nbytes", _OBJECT)
    base, lent = value, False
    while isinstance(base.base, np.ndarray):
        base = base.base
        lent = lent or isinstance(base, Lease)
        if isinstance(base, CountedMemory):
            return id(base), 0
    below = base.base
    if isinstance(below, memoryview):
        below = below.obj
    if isinstance(below, (mmap.mmap, Mapping)):
        return id(below), base.nbytes if lent else 0
    return (id(below), len(below)) if isinstance(below, (bytes, bytearray)) else (id(base), base.nbytes)
