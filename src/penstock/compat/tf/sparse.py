"""`tf.sparse`: tensors that store only the values at given places."""

from __future__ import annotations

from typing import Any

import numpy as np

import penstock as ps
from penstock.compat.composites import SparseTensor
from penstock.compat.op import named, op
from penstock.compat.teaching import missing_in
from penstock.compat.values import whole
from penstock.errors import InvalidArgumentError

__all__ = ["SparseTensor"]


def _ordered(at: np.ndarray, values: np.ndarray, shape: Any) -> ps.SparseTensor:
    order = np.lexsort(at.T[::-1])
    return ps.SparseTensor(at[order], values[order], np.asarray(shape, np.int64))


@op(
    "sparse.to_dense", rule=lambda sp_input, *args, **kwargs: ps.TensorSpec(sp_input.shape, sp_input.dtype), ragged=True
)
def to_dense(sp_input: Any, default_value: Any = None, validate_indices: bool = True) -> Any:
    return sp_input.to_dense() if default_value is None else sp_input.to_dense(default_value)


@op("sparse.from_dense")
def from_dense(tensor: Any) -> Any:
    array = whole(tensor)
    at = np.argwhere(array != (b"" if array.dtype.hasobject else 0))
    return ps.SparseTensor(at, array[tuple(at.T)], np.asarray(array.shape, np.int64))


@op("sparse.reorder")
def reorder(sp_input: Any) -> Any:
    """Sort the values by their places, row by row."""
    return _ordered(sp_input.indices, sp_input.values, sp_input.dense_shape)


@op("sparse.retain")
def retain(sp_input: Any, to_retain: Any) -> Any:
    """Keep the values for which `to_retain` is True."""
    kept = whole(to_retain)
    return ps.SparseTensor(sp_input.indices[kept], sp_input.values[kept], sp_input.dense_shape)


@op("sparse.concat")
def concat(axis: Any, sp_inputs: Any, expand_nonconcat_dims: bool = False) -> Any:
    """Concatenate sparse tensors along an axis."""
    shapes = np.stack([tensor.dense_shape for tensor in sp_inputs])
    along = np.arange(shapes.shape[1]) == int(axis) % shapes.shape[1]
    if not expand_nonconcat_dims and (shapes != shapes[0])[:, ~along].any():
        message = f"tf.sparse.concat along axis {axis} needs equal other extents, got shapes {shapes.tolist()}."
        raise InvalidArgumentError(message, hint="expand_nonconcat_dims=True takes the largest extents.")
    starts = (np.cumsum(shapes, axis=0) - shapes) * along
    at = np.concatenate([tensor.indices + start for tensor, start in zip(sp_inputs, starts, strict=True)])
    values = np.concatenate([tensor.values for tensor in sp_inputs])
    return _ordered(at, values, np.where(along, shapes.sum(0), shapes.max(0)))


@op("sparse.slice")
def slice(sp_input: Any, start: Any, size: Any) -> Any:
    """Return the part from `start` on of at most `size` places along each axis."""
    low = whole(start, "int64")
    high = np.minimum(low + whole(size, "int64"), sp_input.dense_shape)
    kept = ((sp_input.indices >= low) & (sp_input.indices < high)).all(1)
    return ps.SparseTensor(sp_input.indices[kept] - low, sp_input.values[kept], np.maximum(high - low, 0))


@op("sparse.expand_dims")
def expand_dims(sp_input: Any, axis: Any = -1) -> Any:
    """Insert an axis of one place."""
    at = int(axis) % (len(sp_input.dense_shape) + 1)
    indices, shape = np.insert(sp_input.indices, at, 0, 1), np.insert(sp_input.dense_shape, at, 1)
    return ps.SparseTensor(indices, sp_input.values, shape)


@op("sparse.reduce_sum")
def reduce_sum(sp_input: Any, axis: Any = None, keepdims: Any = None) -> Any:
    """Return the sums along the given axes, by default of all values, as an array."""
    axes = None if axis is None else tuple(whole(axis).reshape(-1).tolist())
    return np.sum(sp_input.to_dense(), axes, sp_input.dtype, keepdims=bool(keepdims))


@op("sparse.to_indicator")
def to_indicator(sp_input: Any, vocab_size: Any) -> Any:
    """Return an array that is True at the numbers which the rows of the last axis have as values."""
    found = np.zeros((*sp_input.shape[:-1], int(vocab_size)), bool)
    found[(*sp_input.indices[:, :-1].T, sp_input.values)] = True
    return found


@op("sparse.fill_empty_rows")
def fill_empty_rows(sp_input: Any, default_value: Any) -> Any:
    """Put a value at the beginning of each empty row; return also which rows were empty."""
    empty = np.bincount(sp_input.indices[:, 0], minlength=len(sp_input)) == 0
    rows = np.flatnonzero(empty)
    added = np.zeros((len(rows), len(sp_input.dense_shape)), np.int64)
    added[:, 0] = rows
    values = np.concatenate([sp_input.values, np.full(len(rows), default_value, sp_input.values.dtype)])
    return _ordered(np.concatenate([sp_input.indices, added]), values, sp_input.dense_shape), empty


def _joined(name: str, function: Any) -> Any:
    @op(f"sparse.{name}")
    def call(sp_a: Any, sp_b: Any) -> Any:
        places = np.unique(np.concatenate([sp_a.indices, sp_b.indices]), axis=0)
        at = tuple(places.T)
        return ps.SparseTensor(places, function(sp_a.to_dense()[at], sp_b.to_dense()[at]), sp_a.dense_shape)

    return named(call, name, f"`{name}` of two sparse tensors, at the places of both.")


maximum, minimum, add = _joined("maximum", np.maximum), _joined("minimum", np.minimum), _joined("add", np.add)

_DENSE = "bincount reset_shape reduce_max softmax reshape transpose split sparse_dense_matmul segment_sum segment_mean"
_MISSING = dict.fromkeys(_DENSE.split(), "Write tf.sparse.to_dense(x), and the function of tf for arrays.")
__getattr__ = missing_in("tf.sparse", globals(), _MISSING)
