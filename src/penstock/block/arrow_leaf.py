"""One leaf of a Block as an Arrow array, and back, without loss.

The spec of the leaf determines the Arrow type:

| spec | Arrow |
|---|---|
| a scalar | its own type; `bytes` as large_binary, complex as a fixed-size list of two |
| a fixed shape | arrow.fixed_shape_tensor; for byte strings a fixed-size list; null if the shape holds no values |
| a shape with None | large_list; for rank 2 and higher a struct of the values and the shape |
| an open rank | a struct of the values and the shape, which is a list |
| SparseTensor, RaggedTensor | structs of lists |
"""

from __future__ import annotations

from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from penstock.block.arrow_values import (
    Array,
    fixed_array,
    items_of,
    list_array,
    lists_of,
    numbers_array,
    numbers_of,
    objects_of,
    restored,
    stored,
    stored_type,
    strings_array,
    strings_of,
)
from penstock.block.column import BytesColumn, Column, DenseColumn, ListColumn, column_of
from penstock.block.spec import LeafSpec, TensorSpec
from penstock.block.tensors import RaggedTensor, SparseTensor
from penstock.errors import InvalidTypeError


def fixed_type(spec: TensorSpec) -> Any:
    """Return the Arrow type for values of a spec without None."""
    import pyarrow as pa

    kind, extra = stored_type(spec.dtype)
    shape = (*known_shape(spec), *extra)
    if not shape:
        return kind
    if not prod(shape):
        return pa.null()
    if spec.dtype is bytes or not spec.shape:
        return pa.list_(kind, prod(shape))
    return pa.fixed_shape_tensor(kind, shape)


def known_shape(spec: TensorSpec) -> tuple[int, ...]:
    """Return the shape of a spec, without its None dimensions."""
    return tuple(extent for extent in spec.shape if extent is not None)


def encode_fixed(column: Column, spec: TensorSpec) -> Array:
    import pyarrow as pa

    size = prod(known_shape(spec))
    if not size:
        return pa.nulls(len(column))
    if spec.dtype is bytes:
        flat = column if isinstance(column, BytesColumn) else BytesColumn.from_values(_all_strings(column.values()))
        strings = strings_array(flat)
        return fixed_array(len(column), size, strings) if spec.shape else strings
    array = column.array if isinstance(column, DenseColumn) else np.stack(column.values())
    array = stored(array)
    values = numbers_array(array.reshape(-1))
    if array.ndim == 1:
        return values
    lists = fixed_array(len(array), prod(array.shape[1:]), values)
    return pa.ExtensionArray.from_storage(fixed_type(spec), lists) if spec.shape else lists


def _all_strings(values: list[Any]) -> list[bytes]:
    return [item for value in values for item in (value.reshape(-1).tolist() if hasattr(value, "shape") else [value])]


def decode_fixed(array: Array, spec: TensorSpec) -> Column:
    count, shape = len(array), known_shape(spec)
    if not prod(shape):
        return _without_values(count, shape, spec.dtype)
    flat: Any = getattr(array, "storage", array)
    if spec.dtype is bytes:
        strings = strings_of(items_of(flat) if shape else flat)
        starts, lengths = strings.starts.reshape(count, *shape), strings.lengths.reshape(count, *shape)
        return BytesColumn(strings.buffers, starts, lengths)
    extra = stored_type(spec.dtype)[1]
    values = numbers_of(items_of(flat) if shape or extra else flat)
    return DenseColumn(restored(values.reshape(count, *shape, *extra), spec.dtype))


def _without_values(count: int, shape: tuple[int, ...], dtype: Any) -> Column:
    if dtype is bytes:
        none = np.empty((count, *shape), np.int64)
        return BytesColumn((np.empty(0, np.uint8),), none, none)
    return DenseColumn(np.empty((count, *shape), dtype))


INT64 = np.dtype(np.int64)


def list_type(dtype: Any) -> Any:
    """Return the Arrow type of lists of values."""
    import pyarrow as pa

    return pa.large_list(fixed_type(TensorSpec((), dtype)))


def ragged_type(rank: int, dtype: Any) -> Any:
    """Return the Arrow type of arrays of one rank and different shapes."""
    import pyarrow as pa

    values = list_type(dtype)
    return values if rank == 1 else pa.struct([("values", values), ("shape", pa.list_(pa.int64(), rank))])


def _items_array(flat: np.ndarray, dtype: Any) -> Array:
    """Return a 1-D array of any dtype as the values of a list."""
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
    """Split a list array into one numpy array per list."""
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
    """Return the Arrow type of numbers, byte strings and arrays of different ranks."""
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


def sparse_type(dtype: Any) -> Any:
    import pyarrow as pa

    integers = list_type(INT64)
    return pa.struct([("indices", integers), ("values", list_type(dtype)), ("dense_shape", integers)])


def ragged_tensor_type(dtype: Any) -> Any:
    import pyarrow as pa

    integers = list_type(INT64)
    splits = [("row_splits", pa.large_list(integers)), ("int32_splits", pa.large_list(pa.bool_()))]
    return pa.struct([("values", list_type(dtype)), ("shape", integers), *splits])


def encode_sparse(rows: list[SparseTensor], dtype: Any) -> Array:
    return struct_array(
        sparse_type(dtype),
        lists_array([row.indices for row in rows], INT64),
        lists_array([row.values for row in rows], dtype),
        lists_array([row.dense_shape for row in rows], INT64),
    )


def decode_sparse(array: Array, dtype: Any) -> list[Any]:
    indices, values, shapes = array.flatten()
    parts = zip(split(indices, INT64), split(values, dtype), split(shapes, INT64), strict=True)
    return [SparseTensor(where.reshape(len(found), len(shape)), found, shape) for where, found, shape in parts]


def encode_ragged_tensors(rows: list[RaggedTensor], dtype: Any) -> Array:
    levels = [_levels(row) for row in rows]
    flat = [splits.astype(np.int64) for row in levels for splits in row]
    splits = list_array([len(row) for row in levels], lists_array(flat, INT64))
    narrow = [np.array([level.dtype == np.int32 for level in row], bool) for row in levels]
    shapes = [np.array(row.flat_values.shape, np.int64) for row in rows]
    values = lists_array([row.flat_values for row in rows], dtype)
    parts = (values, lists_array(shapes, INT64), splits, lists_array(narrow, np.dtype(bool)))
    return struct_array(ragged_tensor_type(dtype), *parts)


def _levels(row: RaggedTensor) -> list[np.ndarray]:
    inner = _levels(row.values) if isinstance(row.values, RaggedTensor) else []
    return [row.row_splits, *inner]


def decode_ragged_tensors(array: Array, dtype: Any) -> list[Any]:
    values, shapes, splits, narrow = array.flatten()
    offsets, flat = lists_of(splits)
    levels, ends = split(flat, INT64), offsets.tolist()
    found = []
    for i, (row, shape) in enumerate(zip(split(values, dtype), split(shapes, INT64), strict=True)):
        inner: Any = row.reshape(shape.tolist())
        kinds = numbers_of(lists_of(narrow.slice(i, 1))[1]).tolist()
        for level, int32 in zip(reversed(levels[ends[i] : ends[i + 1]]), reversed(kinds), strict=True):
            inner = RaggedTensor(inner, level.astype(np.int32) if int32 else level)
        found.append(inner)
    return found


def leaf_type(spec: LeafSpec) -> Any:
    """Return the Arrow type for a leaf of this spec. Raise InvalidTypeError if the leaf cannot be stored."""
    if isinstance(spec, TensorSpec):
        if spec.open_rank:
            return of_any_rank(spec.dtype)
        return fixed_type(spec) if spec.fixed else ragged_type(len(spec.shape), spec.dtype)
    if spec.value_type is SparseTensor:
        return sparse_type(spec.dtype)
    if spec.value_type is RaggedTensor:
        return ragged_tensor_type(spec.dtype)
    message = f"A {spec.value_type.__name__} inside an element cannot be stored."
    raise InvalidTypeError(message, hint="Store the elements of a nested data set: flat_map takes it apart.")


def encode(column: Column, spec: LeafSpec) -> Array:
    """Return the column as an array of `leaf_type(spec)`."""
    if isinstance(spec, TensorSpec):
        if spec.open_rank:
            return encode_any(column.values(), spec.dtype)
        if spec.fixed:
            return encode_fixed(column, spec)
        return encode_ragged(column.values(), len(spec.shape), spec.dtype)
    if spec.value_type is SparseTensor:
        return encode_sparse(column.values(), spec.dtype)
    return encode_ragged_tensors(column.values(), spec.dtype)


def decode(array: Array, spec: LeafSpec) -> Column:
    """Return the column for an array that `encode` returned."""
    if isinstance(spec, TensorSpec):
        if spec.open_rank:
            return column_of(decode_any(array, spec.dtype), any_rank=True) if len(array) else ListColumn([])
        if spec.fixed:
            return decode_fixed(array, spec)
        return ListColumn(decode_ragged(array, len(spec.shape), spec.dtype))
    if spec.value_type is SparseTensor:
        return ListColumn(decode_sparse(array, spec.dtype))
    return ListColumn(decode_ragged_tensors(array, spec.dtype))
