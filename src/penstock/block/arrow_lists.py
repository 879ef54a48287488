"""Arrays of differing shape, and of differing rank, as Arrow arrays and back."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from penstock.block.arrow_fixed import decode_fixed, encode_fixed, fixed_type
from penstock.block.arrow_values import (
    Array,
    fixed_array,
    items_of,
    list_array,
    lists_of,
    numbers_array,
    numbers_of,
    objects_of,
)
from penstock.block.column import BytesColumn, Column, DenseColumn
from penstock.block.spec import TensorSpec

INT64 = np.dtype(np.int64)


def list_type(dtype: Any) -> Any:
    """The Arrow type of lists of values."""
    import pyarrow as pa

    return pa.large_list(fixed_type(TensorSpec((), dtype)))


def ragged_type(rank: int, dtype: Any) -> Any:
    """The Arrow type of arrays of a rank whose shapes differ."""
    import pyarrow as pa

    values = list_type(dtype)
    return values if rank == 1 else pa.struct([("values", values), ("shape", pa.list_(pa.int64(), rank))])


def _items_array(flat: np.ndarray, dtype: Any) -> Array:
    """A 1-D array of any dtype as the values of a list."""
    return encode_fixed(
        BytesColumn.from_values(flat.tolist()) if dtype is bytes else DenseColumn(flat), TensorSpec((), dtype)
    )


def _items(array: Array, dtype: Any) -> np.ndarray:
    column = decode_fixed(array, TensorSpec((), dtype))
    return objects_of(column) if isinstance(column, BytesColumn) else _array_of(column)


def _array_of(column: Column) -> np.ndarray:
    assert isinstance(column, DenseColumn)
    return column.array


def lists_array(rows: list[np.ndarray], dtype: Any) -> Array:
    flat = np.concatenate([row.reshape(-1) for row in rows]) if rows else np.empty(0, _numpy(dtype))
    return list_array([row.size for row in rows], _items_array(flat, dtype))


def _numpy(dtype: Any) -> Any:
    return object if dtype is bytes else dtype


def split(array: Array, dtype: Any) -> list[np.ndarray]:
    """The arrays of a list array."""
    offsets, values = lists_of(array)
    flat, ends = _items(values, dtype), offsets.tolist()
    return [flat[a:b] for a, b in pairwise(ends)]


def encode_ragged(rows: list[Any], rank: int, dtype: Any) -> Array:
    values = lists_array(rows, dtype)
    if rank == 1:
        return values
    shapes = np.array([row.shape for row in rows], np.int64).reshape(-1)
    return struct_array(ragged_type(rank, dtype), values, fixed_array(len(rows), rank, numbers_array(shapes)))


def decode_ragged(array: Array, rank: int, dtype: Any) -> list[Any]:
    if rank == 1:
        return list(split(array, dtype))
    values, shapes = array.flatten()
    extents = numbers_of(items_of(shapes)).reshape(-1, rank).tolist()
    return [row.reshape(shape) for row, shape in zip(split(values, dtype), extents, strict=True)]


def of_any_rank(dtype: Any) -> Any:
    """The Arrow type of numbers, byte strings and arrays whose ranks differ."""
    import pyarrow as pa

    return pa.struct([("values", list_type(dtype)), ("shape", list_type(INT64))])


def encode_any(rows: list[Any], dtype: Any) -> Array:
    arrays = [np.array(row, object) if type(row) is bytes else np.asarray(row) for row in rows]
    shapes = lists_array([np.array(array.shape, np.int64) for array in arrays], INT64)
    return struct_array(of_any_rank(dtype), lists_array(arrays, dtype), shapes)


def decode_any(array: Array, dtype: Any) -> list[Any]:
    values, shapes = array.flatten()
    parts = zip(split(values, dtype), split(shapes, INT64), strict=True)
    return [row.reshape(shape.tolist()) if len(shape) else row[0] for row, shape in parts]


def struct_array(kind: Any, *parts: Array) -> Array:
    import pyarrow as pa

    return pa.StructArray.from_arrays(list(parts), fields=list(kind))
