"""Sparse and ragged tensors as Arrow structs of lists and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.block.arrow_lists import INT64, list_type, lists_array, split, struct_array
from penstock.block.arrow_values import Array, list_array, lists_of, numbers_of
from penstock.block.tensors import RaggedTensor, SparseTensor


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
