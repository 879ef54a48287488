"""Arrays of one shape, and scalars, as Arrow arrays and back."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from penstock.block.arrow_values import (
    Array,
    fixed_array,
    items_of,
    numbers_array,
    numbers_of,
    restored,
    stored,
    stored_type,
    strings_array,
    strings_of,
)
from penstock.block.column import BytesColumn, Column, DenseColumn
from penstock.block.spec import TensorSpec


def fixed_type(spec: TensorSpec) -> Any:
    """The Arrow type that holds values of a spec without None."""
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
    """The shape of a spec without None."""
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
