"""handover: elements as whoever loops over a data set gets them, in memory that is theirs alone.

Memory that cannot be written to belongs to somebody: a source, a file, a cache. It is copied. What can be written to
was made for these elements, and goes to the consumer as it is; of two arrays that share it, the second is a copy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.block.arena import ARENA
from penstock.block.block import Block
from penstock.block.column import Column, DenseColumn
from penstock.block.fixed import fix, fixed
from penstock.block.tensors import RaggedTensor, SparseTensor


def handed_over(block: Block, *, read_only: bool = False, zero_copy: bool = False) -> list[Any]:
    """The elements of a Block that nobody asks for again.

    Their arrays can be written to unless `read_only`, and share memory with nothing; with `zero_copy` what belongs to
    somebody else is a view of it, which cannot be written to.

    >>> source = np.arange(6).reshape(2, 3)
    >>> source.flags.writeable = False
    >>> first, second = handed_over(Block.single(DenseColumn(source)))
    >>> first.flags.writeable, np.may_share_memory(first, source)
    (True, False)
    """
    if zero_copy:
        if read_only:
            return block.elements()
        values = [_views(column) for column in block.columns]
    else:
        taken = _Taken()
        values = [taken.values(column, read_only=read_only) for column in block.columns]
    return block.structure.rows(values) if values else block.elements()


def _views(column: Column) -> list[Any]:
    """Return the values. Arrays over read-only memory cannot be made writable."""
    if isinstance(column, DenseColumn):
        return list(column.array if column.array.flags.writeable else fixed(column.array))
    return [fixed(v) if isinstance(v, np.ndarray) and not v.flags.writeable else v for v in column.values()]


class _Taken:
    """The memory that the arrays of some elements lie in."""

    def __init__(self) -> None:
        self._spans: dict[int, _Spans] = {}  # by the memory's owner, once two arrays have the same
        self._alone: dict[int, np.ndarray] = {}  # the only array so far in an owner's memory

    def values(self, column: Column, *, read_only: bool) -> list[Any]:
        if isinstance(column, DenseColumn):
            array = column.array
            if array.ndim > 1 or array.dtype.kind == "V":  # else its elements are numbers, which are values
                array = self.own(array)
                if read_only:
                    array = fix(array.view())
            return list(array)
        values = column.values()
        if values and isinstance(values[0], (np.ndarray, SparseTensor, RaggedTensor)):
            values = [self._leaf(value, read_only=read_only) for value in values]
        return values

    def _leaf(self, value: Any, *, read_only: bool) -> Any:
        if isinstance(value, np.ndarray):
            value = self.own(value)
            return fix(value.view()) if read_only else value
        if isinstance(value, (SparseTensor, RaggedTensor)):
            value = value.with_arrays(np.copy)  # of which rows share some, also from Block to Block
            return value.with_arrays(fix) if read_only else value
        return value

    def own(self, array: np.ndarray) -> np.ndarray:
        """The array, or a copy of it."""
        if not array.flags.writeable or (0 in array.strides and _repeats(array)):
            return _copy(array)
        owner = array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        key = id(owner)
        other = self._alone.setdefault(key, array)
        if other is not array:
            spans = self._spans.get(key)
            if spans is None:
                spans = self._spans[key] = _Spans(other)
            if not spans.add(array):
                return _copy(array)
        return array


class _Spans:
    """Where arrays lie in the memory of one owner."""

    __slots__ = ("_last", "_spans")

    def __init__(self, first: np.ndarray) -> None:
        self._spans = [_span(first)]
        self._last = self._spans[0][1]  # the byte behind all of them

    def add(self, array: np.ndarray) -> bool:
        """Take in an array that lies beside all others; False for one that does not."""
        start, stop = _span(array)
        if start < self._last:
            if any(start < end and begin < stop for begin, end in self._spans):
                return False
            self._spans.append((start, stop))
        else:  # columns and rows come one behind the other
            if start == self._spans[-1][1]:
                self._spans[-1] = self._spans[-1][0], stop
            else:
                self._spans.append((start, stop))
            self._last = stop
        return True


def _repeats(array: np.ndarray) -> bool:
    """Whether some of its values are the same memory."""
    return any(not stride and extent > 1 for stride, extent in zip(array.strides, array.shape, strict=True))


def _copy(array: np.ndarray) -> np.ndarray:
    out = ARENA.empty(array.shape, array.dtype)
    out[...] = array
    return out


def _span(array: np.ndarray) -> tuple[int, int]:
    """The first byte of an array in memory, and the one behind its last."""
    if array.flags.c_contiguous:
        start: int = array.__array_interface__["data"][0]
        return start, start + array.nbytes
    return np.lib.array_utils.byte_bounds(array)
