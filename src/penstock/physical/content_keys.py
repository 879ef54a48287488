"""Keys by which values are equal: their bits, dtype and shape."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from hashlib import blake2b
from typing import Any

import numpy as np

from penstock.block.column import BytesColumn, Column, DenseColumn

_AS_IT_IS = 64  # bytes of a value up to which its key is the value; a longer one has a digest of 128 bits


def content_keys(column: Column) -> list[Hashable]:
    """A key for every element of a column, equal for equal values only.

    Equal means the same bits: two NaNs of one kind are, 0.0 and -0.0 are not. Two values above 64 bytes that differ
    have one key with a probability of 2**-128.
    """
    if isinstance(column, DenseColumn):
        return _of_array(column.array)
    if isinstance(column, BytesColumn) and column.starts.ndim == 1:
        return [_short(value) for value in column.values()]
    return [_of_value(value) for value in column.values()]


def _of_array(array: np.ndarray) -> list[Hashable]:
    if array.ndim == 1:
        size = array.itemsize
        bits: Any = np.ascontiguousarray(array).view(f"u{size}" if size in (1, 2, 4, 8) else f"V{size}")
        found: list[Hashable] = bits.tolist()
        return found
    shape = array.shape[1:]
    return [(shape, _short(row)) for row in _rows(array)]


def _rows(array: np.ndarray) -> Iterator[bytes]:
    width = array[0].nbytes
    view = memoryview(np.ascontiguousarray(array).tobytes())
    for row in range(len(array)):
        yield bytes(view[row * width : (row + 1) * width])


def _of_value(value: np.ndarray) -> Hashable:
    if value.dtype != object:
        return value.shape, _short(value.tobytes())
    return value.shape, tuple(_short(item) for item in value.reshape(-1).tolist())


def _short(data: bytes) -> Hashable:
    return data if len(data) <= _AS_IT_IS else int.from_bytes(blake2b(data, digest_size=16).digest(), "little")
