"""One leaf of a Block as an Arrow array and back, exactly: the spec says the form, so that all Blocks share a schema.

| spec | Arrow |
|---|---|
| a scalar | its own type; `bytes` as large_binary, complex as a fixed-size list of two |
| a fixed shape | arrow.fixed_shape_tensor; of byte strings a fixed-size list; null where it holds no values |
| a shape with None | large_list; beyond rank 1 a struct of the values and the shape |
| an open rank | a struct of the values and the shape, which is a list |
| SparseTensor, RaggedTensor | structs of lists |
"""

from __future__ import annotations

from typing import Any

from penstock.block.arrow_fixed import decode_fixed, encode_fixed, fixed_type
from penstock.block.arrow_lists import decode_any, decode_ragged, encode_any, encode_ragged, of_any_rank, ragged_type
from penstock.block.arrow_tensors import (
    decode_ragged_tensors,
    decode_sparse,
    encode_ragged_tensors,
    encode_sparse,
    ragged_tensor_type,
    sparse_type,
)
from penstock.block.arrow_values import Array
from penstock.block.column import Column, ListColumn, column_of
from penstock.block.spec import LeafSpec, TensorSpec
from penstock.block.tensors import RaggedTensor, SparseTensor
from penstock.errors import InvalidTypeError


def leaf_type(spec: LeafSpec) -> Any:
    """The Arrow type that holds a leaf of this spec. Raises InvalidTypeError for a leaf that cannot be stored."""
    if isinstance(spec, TensorSpec):
        if spec.open_rank:
            return of_any_rank(spec.dtype)
        return fixed_type(spec) if spec.fixed else ragged_type(len(spec.shape), spec.dtype)
    if spec.kind is SparseTensor:
        return sparse_type(spec.dtype)
    if spec.kind is RaggedTensor:
        return ragged_tensor_type(spec.dtype)
    message = f"A {spec.kind.__name__} inside an element cannot be stored."
    raise InvalidTypeError(message, hint="Store the elements of a nested data set: flat_map takes it apart.")


def encode(column: Column, spec: LeafSpec) -> Array:
    """The column as an array of `leaf_type(spec)`."""
    if isinstance(spec, TensorSpec):
        if spec.open_rank:
            return encode_any(column.values(), spec.dtype)
        if spec.fixed:
            return encode_fixed(column, spec)
        return encode_ragged(column.values(), len(spec.shape), spec.dtype)
    if spec.kind is SparseTensor:
        return encode_sparse(column.values(), spec.dtype)
    return encode_ragged_tensors(column.values(), spec.dtype)


def decode(array: Array, spec: LeafSpec) -> Column:
    """The inverse of `encode`."""
    if isinstance(spec, TensorSpec):
        if spec.open_rank:
            return column_of(decode_any(array, spec.dtype), any_rank=True) if len(array) else ListColumn([])
        if spec.fixed:
            return decode_fixed(array, spec)
        return ListColumn(decode_ragged(array, len(spec.shape), spec.dtype))
    if spec.kind is SparseTensor:
        return ListColumn(decode_sparse(array, spec.dtype))
    return ListColumn(decode_ragged_tensors(array, spec.dtype))
