"""TensorFlow: a penstock data set as a tf.data.Dataset, and the elements of a tf.data.Dataset for penstock."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from penstock.adaptors.conversion import called, column_names
from penstock.block.spec import RaggedTensorSpec, SparseTensorSpec, TensorSpec, ValueSpec, spec_of
from penstock.block.structure import flatten
from penstock.block.tensors import RaggedTensor, SparseTensor
from penstock.errors import InvalidTypeError, optional_package
from penstock.plan.node import INFINITE_CARDINALITY


def to_tf(passes: Callable[[], Iterator[Any]], spec: Any, cardinality: int, *, seen: bool) -> Any:
    """Return a tf.data.Dataset that begins an iteration whenever it is iterated over. Byte strings are tf.string.

    If the spec is taken from one element (`seen`), the first dimension of other elements may differ.
    """
    tf = optional_package("tensorflow", "to_tf", "tensorflow")
    leaves, structure = flatten(spec)
    if _with_dataclass(structure):
        message = "tf.data has no elements that are dataclasses."
        raise InvalidTypeError(message, hint="Make a dict or a named tuple of them with map(), as dataclasses.asdict.")
    names = column_names(structure)
    if any(isinstance(leaf, RaggedTensorSpec) and leaf.shape is None for leaf in leaves):  # an element shows the rank
        leaves, seen = [spec_of(leaf) for leaf in structure.flatten(next(passes()))], True
    specs = [_spec(tf, name, leaf, seen=seen) for name, leaf in zip(names, leaves, strict=True)]
    plain = all(isinstance(leaf, TensorSpec) for leaf in leaves)

    def elements() -> Iterator[Any]:
        for element in passes():
            yield element if plain else structure.build([_tf_value(tf, leaf) for leaf in structure.flatten(element)])

    found = tf.data.Dataset.from_generator(elements, output_signature=structure.build(specs))
    if cardinality >= 0:
        return found.apply(tf.data.experimental.assert_cardinality(cardinality))
    if cardinality == INFINITE_CARDINALITY:
        return found.apply(tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY))
    return found


def _with_dataclass(structure: Any) -> bool:
    kind = structure.kind
    odd = kind is not None and not issubclass(kind, (tuple, Mapping))
    return odd or any(_with_dataclass(child) for child in structure.children)


def _tf_dtype(tf: Any, name: str, dtype: Any) -> Any:
    if dtype is bytes:
        return tf.string
    try:
        return tf.as_dtype(dtype)
    except TypeError as error:
        message = f"{called(name)} has dtype {dtype}, which TensorFlow does not have."
        raise InvalidTypeError(message, hint="Convert it with map(), as value.astype(np.int64).") from error


def _spec(tf: Any, name: str, spec: Any, *, seen: bool) -> Any:
    if not isinstance(spec, ValueSpec):
        found, dtype = spec.as_value(), _tf_dtype(tf, name, spec.dtype)
        shape = (None, *found.shape[1:]) if seen and found.shape else found.shape
        if isinstance(found, TensorSpec):
            return tf.TensorSpec(shape, dtype)
        if isinstance(found, RaggedTensorSpec):
            return tf.RaggedTensorSpec(shape, dtype, found.ragged_rank, found.row_splits_dtype)
        return tf.SparseTensorSpec(None if seen else shape, dtype)
    message = f"{called(name)} is a data set, which tf.data cannot take from here."
    raise InvalidTypeError(message, hint="Make elements of it before: flat_map(lambda window: window.batch(8)).")


def _tf_value(tf: Any, value: Any) -> Any:
    if isinstance(value, RaggedTensor):
        return _ragged(tf, value)
    if isinstance(value, SparseTensor):
        return tf.SparseTensor(value.indices, value.values, value.dense_shape)
    return value


def _ragged(tf: Any, value: Any) -> Any:
    if not isinstance(value, RaggedTensor):
        return tf.constant(value)
    return tf.RaggedTensor.from_row_splits(_ragged(tf, value.values), value.row_splits, validate=False)


def checked(dataset: Any) -> Any:
    """Return the module of TensorFlow if `dataset` is one of its data sets."""
    tf = optional_package("tensorflow", "from_tf", "tensorflow")
    if isinstance(dataset, tf.data.Dataset):
        return tf
    message = f"from_tf takes a tf.data.Dataset, got {type(dataset).__name__}."
    raise InvalidTypeError(message, hint="Arrays go to from_tensor_slices, what is iterated over to from_generator.")


def signature(tf: Any, spec: Any) -> Any:
    """Return penstock's specs for a nest of TensorFlow's specs, or None if some values are no plain tensors.

    The elements show the specs of other values.
    """
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
        return TensorSpec(None if spec.shape.rank is None else spec.shape.as_list(), _numpy_dtype(tf, spec.dtype))
    if isinstance(spec, tf.RaggedTensorSpec) and spec.shape.rank is not None:
        splits = spec.row_splits_dtype.as_numpy_dtype
        return RaggedTensorSpec(spec.shape.as_list(), _numpy_dtype(tf, spec.dtype), splits, spec.ragged_rank)
    if isinstance(spec, tf.SparseTensorSpec):
        shape = None if spec.shape.rank is None else spec.shape.as_list()
        return SparseTensorSpec(shape, _numpy_dtype(tf, spec.dtype))
    message = f"from_tf cannot take elements of {spec}."
    hint = "Make elements of nested data sets with flat_map; a ragged tensor needs a rank."
    raise InvalidTypeError(message, hint=hint)


def _numpy_dtype(tf: Any, dtype: Any) -> Any:
    return bytes if dtype == tf.string else np.dtype(dtype.as_numpy_dtype)


def elements(tf: Any, dataset: Any) -> Iterator[Any]:
    """Yield the elements with numpy values."""
    for element in dataset:
        yield tf.nest.map_structure(lambda leaf: _own_value(tf, leaf), element)


def _own_value(tf: Any, value: Any) -> Any:
    if isinstance(value, tf.RaggedTensor):
        return RaggedTensor(_own_value(tf, value.values), value.row_splits.numpy())
    if isinstance(value, tf.SparseTensor):
        return SparseTensor(value.indices.numpy(), value.values.numpy(), value.dense_shape.numpy())
    return value.numpy()
