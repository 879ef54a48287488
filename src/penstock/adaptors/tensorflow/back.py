"""The elements of a tf.data.Dataset as penstock's: specs and values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from penstock.adaptors.framework import framework
from penstock.block.ragged_spec import RaggedTensorSpec
from penstock.block.spec import TensorSpec, ValueSpec
from penstock.block.structure import flatten
from penstock.block.tensors import RaggedTensor, SparseTensor
from penstock.errors import InvalidTypeError


def checked(dataset: Any) -> Any:
    """The module of TensorFlow, if this is one of its data sets."""
    tf = framework("tensorflow", "from_tf", "tensorflow")
    if isinstance(dataset, tf.data.Dataset):
        return tf
    message = f"from_tf takes a tf.data.Dataset, got {type(dataset).__name__}."
    raise InvalidTypeError(message, hint="Arrays go to from_tensor_slices, what is iterated over to from_generator.")


def signature(tf: Any, spec: Any) -> Any:
    """A nest of penstock's specs for one of TensorFlow's; None where values are no plain tensors: they show it."""
    found = _signature(tf, spec)
    return found if all(isinstance(leaf, TensorSpec) for leaf in flatten(found)[0]) else None


def _signature(tf: Any, spec: Any) -> Any:
    if isinstance(spec, tuple) and hasattr(spec, "_fields"):
        return type(spec)(*(_signature(tf, part) for part in spec))
    if isinstance(spec, tuple):
        return tuple(_signature(tf, part) for part in spec)
    if isinstance(spec, Mapping):
        return {name: _signature(tf, part) for name, part in spec.items()}
    if isinstance(spec, tf.TensorSpec):
        return TensorSpec(None if spec.shape.rank is None else spec.shape.as_list(), _dtype(tf, spec.dtype))
    if isinstance(spec, tf.RaggedTensorSpec) and spec.shape.rank is not None:
        splits = spec.row_splits_dtype.as_numpy_dtype
        return RaggedTensorSpec(spec.shape.as_list(), _dtype(tf, spec.dtype), splits)
    if isinstance(spec, tf.SparseTensorSpec):
        return ValueSpec(SparseTensor, _dtype(tf, spec.dtype))
    message = f"from_tf cannot take elements of {spec}."
    hint = "Make elements of nested data sets with flat_map; a ragged tensor needs a rank."
    raise InvalidTypeError(message, hint=hint)


def _dtype(tf: Any, dtype: Any) -> Any:
    return bytes if dtype == tf.string else np.dtype(dtype.as_numpy_dtype)


def elements(tf: Any, dataset: Any) -> Iterator[Any]:
    """Elements with numpy values."""
    for element in dataset:
        yield tf.nest.map_structure(lambda leaf: _value(tf, leaf), element)


def _value(tf: Any, value: Any) -> Any:
    if isinstance(value, tf.RaggedTensor):
        return RaggedTensor(_value(tf, value.values), value.row_splits.numpy())
    if isinstance(value, tf.SparseTensor):
        return SparseTensor(value.indices.numpy(), value.values.numpy(), value.dense_shape.numpy())
    return value.numpy()
