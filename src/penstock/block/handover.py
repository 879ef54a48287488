"""Elements as the consumer of a data set receives them, in memory of their own.

Read-only memory belongs to a source, a file or a cache, so it is copied. Writable memory was allocated for these
elements and is passed on without a copy. If two arrays share it, the second one is copied.
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
    """Return the elements of a Block that is not used afterwards.

    Their arrays are writable unless `read_only` is True, and share memory with nothing. With `zero_copy`, arrays in
    memory of a source, file or cache are read-only views of it.

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
    """The memory that the arrays of some elements use."""

    def __init__(self) -> None:
        self._spans: dict[int, _Spans] = {}  # by owner of the memory, from the second array in it on
        self._alone: dict[int, np.ndarray] = {}  # the only array so far in the memory of an owner

    def values(self, column: Column, *, read_only: bool) -> list[Any]:
        if isinstance(column, DenseColumn):
            array = column.array
            if array.ndim > 1 or array.dtype.kind == "V":  # otherwise the elements are numbers, which cannot be changed
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
            value = value.with_arrays(np.copy)  # rows share some of these arrays, also between Blocks
            return value.with_arrays(fix) if read_only else value
        return value

    def own(self, array: np.ndarray) -> np.ndarray:
        """Return the array, or a copy if its memory is read-only or already used."""
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
    """The byte ranges that arrays use in the memory of one owner."""

    __slots__ = ("_last", "_spans")

    def __init__(self, first: np.ndarray) -> None:
        self._spans = [_span(first)]
        self._last = self._spans[0][1]  # the first byte after all of them

    def add(self, array: np.ndarray) -> bool:
        """Add an array that overlaps no other array; return False if it overlaps one."""
        start, stop = _span(array)
        if start < self._last:
            if any(start < end and begin < stop for begin, end in self._spans):
                return False
            self._spans.append((start, stop))
        else:  # the usual order: each column or row starts after the previous one
            if start == self._spans[-1][1]:
                self._spans[-1] = self._spans[-1][0], stop
            else:
                self._spans.append((start, stop))
            self._last = stop
        return True


def _repeats(array: np.ndarray) -> bool:
    """Return True if some values of the array share memory."""
    return any(not stride and extent > 1 for stride, extent in zip(array.strides, array.shape, strict=True))


def _copy(array: np.ndarray) -> np.ndarray:
    out = ARENA.empty(array.shape, array.dtype)
    out[...] = array
    return out


def _span(array: np.ndarray) -> tuple[int, int]:
    """Return the addresses of the first byte of an array and of the first byte after it."""
    if array.flags.c_contiguous:
        start: int = array.__array_interface__["data"][0]
        return start, start + array.nbytes
    return np.lib.array_utils.byte_bounds(array)
