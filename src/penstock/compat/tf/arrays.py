"""Functions that make, reshape, join and split tensors, from TensorFlow's top level."""

from __future__ import annotations

import builtins
import time as _time
from collections.abc import Callable
from typing import Any

import numpy as np

import penstock as ps
from penstock.compat.dtypes import as_dtype
from penstock.compat.op import known, op, through
from penstock.compat.operands import _reading
from penstock.compat.tf import rows as _rows
from penstock.compat.values import Tensor, Value, array_of, is_ragged, lowered, raised, whole
from penstock.errors import InvalidArgumentError
from penstock.trace.graph import NotTraceable
from penstock.trace.items import distance
from penstock.trace.tracer import Tracer

newaxis = None
_cast = through(ps.image.cast, first=array_of, ragged=True)


@op("cast", exact=True)
def _cast_bfloat16(x: Any, dtype: Any) -> Any:
    return np.asarray(x).astype(as_dtype(dtype).dtype)[()]


@known
def cast(x: Any, dtype: Any, name: Any = None) -> Any:
    """Return the same numbers in another dtype. Floats are truncated towards zero when they become integers."""
    wanted = as_dtype(dtype)
    if isinstance(x, ps.SparseTensor):
        return raised(x).with_values(cast(raised(x).values, wanted))
    if "bfloat16" in (wanted.name, getattr(getattr(x, "dtype", None), "name", None)):
        return _cast_bfloat16(x if hasattr(x, "dtype") else convert_to_tensor(x), wanted)
    return _cast(x, wanted)


@op("saturate_cast")
def saturate_cast(value: Any, dtype: Any) -> Any:
    """Cast a value, and replace values out of range by the nearest possible value."""
    array, wanted = whole(value), as_dtype(dtype).dtype
    if wanted.kind in "iu":
        limits = np.iinfo(wanted)
        if array.dtype.kind == "f":
            array = np.nan_to_num(np.trunc(array.astype(np.float64)), nan=0.0)
        return np.clip(array, max(limits.min, -(2**53)), min(limits.max, 2**53)).astype(wanted)[()]
    return array.astype(wanted)[()]


def _numbers(value: Any) -> Any:
    """Return a shape, or a list of axes, as Python integers."""
    if isinstance(value, (int, np.integer)):
        return int(value)
    return tuple(int(item) for item in np.asarray(value).reshape(-1).tolist())


def _extents(value: Any) -> tuple[int, ...]:
    found = _numbers(value)
    return found if isinstance(found, tuple) else (found,)


def _axis(axis: Any) -> Any:
    return None if axis is None else _numbers(axis)


def inside(axis: Any) -> Any:
    """Return the axis of an element as an axis of a Block."""
    return axis + 1 if axis >= 0 else axis


def _converted(value: Any, dtype: Any, shape: Any) -> Any:
    array = whole(value, dtype)
    if shape is not None:
        wanted = _extents(shape)
        array = np.full(wanted, array, array.dtype) if array.size == 1 else array.reshape(wanted)
    return array if array.ndim else array[()]


@op("constant")
def constant(value: Any, dtype: Any = None, shape: Any = None) -> Any:
    """Return a value as a tensor: Python's integers become int32, floats float32, text bytes.

    >>> constant([1, 2]).dtype
    tf.int32
    """
    return _converted(value, dtype, shape)


@op("convert_to_tensor")
def convert_to_tensor(value: Any, dtype: Any = None, dtype_hint: Any = None, preferred_dtype: Any = None) -> Any:
    return array_of(value, dtype)


@op("identity", exact=True)
def identity(input: Any) -> Any:
    return array_of(input)


stop_gradient = identity


def _like(value: Any, dtype: Any) -> Any:
    return np.asarray(value).dtype if dtype is None else as_dtype(dtype).dtype


def _full(shape: Any, value: Any, dtype: Any) -> Any:
    wanted = as_dtype(dtype)
    filler = b"" if wanted.name == "string" else value
    return np.full(_extents(shape), filler, wanted.dtype)[()]


@op("zeros")
def zeros(shape: Any, dtype: Any = "float32") -> Any:
    return _full(shape, 0, dtype)


@op("ones")
def ones(shape: Any, dtype: Any = "float32") -> Any:
    return _full(shape, 1, dtype)


@op("zeros_like", ragged=True)
def zeros_like(input: Any, dtype: Any = None) -> Any:
    array = whole(input)
    return _full(array.shape, 0, _like(array, dtype))


@op("ones_like", ragged=True)
def ones_like(input: Any, dtype: Any = None) -> Any:
    array = whole(input)
    return _full(array.shape, 1, _like(array, dtype))


def _fill_rule(dims: Any, value: Any) -> Any:
    """Return the spec of `fill`. Extents are known if they are equal for all elements."""
    if isinstance(dims, ps.TensorSpec):
        if len(dims.shape) != 1 or dims.shape[0] is None:
            raise NotTraceable("fill of a shape whose rank differs between elements")
        dims = [None] * dims.shape[0]
    elif isinstance(dims, (np.ndarray, int, np.integer)):
        dims = _extents(dims)
    shape = [None if part is None or isinstance(part, ps.TensorSpec) else int(part) for part in dims]
    if isinstance(value, ps.TensorSpec):
        return ps.TensorSpec(shape, value.dtype)
    made = whole(value)
    return ps.TensorSpec(shape, bytes if made.dtype.hasobject else made.dtype)


@op("fill", rule=_fill_rule)
def fill(dims: Any, value: Any) -> Any:
    """Return an array of shape `dims` in which every value is `value`."""
    filler = whole(value)
    return np.full(_extents(dims), filler, filler.dtype)[()]


@op("eye")
def eye(num_rows: Any, num_columns: Any = None, batch_shape: Any = None, dtype: Any = "float32") -> Any:
    found = np.eye(int(num_rows), None if num_columns is None else int(num_columns), dtype=as_dtype(dtype).dtype)
    return found if batch_shape is None else np.broadcast_to(found, (*_extents(batch_shape), *found.shape)).copy()


def _range_rule(start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None) -> Any:
    known = next((part.dtype for part in (start, limit, delta) if isinstance(part, ps.TensorSpec)), np.int32)
    return ps.TensorSpec((None,), known if dtype is None else dtype)


@known
def range(start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: Any = None) -> Any:
    """Return the numbers from `start` in steps of `delta`: int32 for Python's integers, float32 for floats."""
    first, last = lowered(start), lowered(limit)
    if type(first) is type(last) is Tracer and type(delta) is int and delta == 1 and dtype is None:
        length = distance(first.builder.equations, first.ref, last.ref)
        if length is not None and first.dtype == last.dtype and first.dtype in (np.int32, np.int64) and not first.ndim:
            return raised(first + np.arange(builtins.max(length, 0), dtype=first.dtype))
    return _range(start, limit, delta, dtype)


@op("range", rule=_range_rule)
def _range(start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None) -> Any:
    first, last = (0, start) if limit is None else (start, limit)
    parts = [whole(part) for part in (first, last, delta)]
    given = [a.dtype for a, part in zip(parts, (first, last, delta), strict=True) if hasattr(part, "dtype")]
    wanted = as_dtype(dtype).dtype if dtype is not None else given[0] if given else np.result_type(*parts)
    wanted = np.dtype(np.float32) if wanted == np.float64 and not given and dtype is None else wanted
    return np.arange(*(part.item() for part in parts)).astype(wanted)


@op("linspace")
def linspace(start: Any, stop: Any, num: Any, axis: int = 0) -> Any:
    low = array_of(start)
    found = np.linspace(low, array_of(stop), int(num), axis=axis)
    return found.astype(np.asarray(low).dtype if np.asarray(low).dtype.kind == "f" else np.float64)


def _shape_of(value: Any, out_type: Any) -> Any:
    if isinstance(value, ps.SparseTensor):
        return np.asarray(value.shape, out_type)
    return np.asarray(np.shape(array_of(value)), out_type)


@op("shape")
def _shape(input: Any, out_type: Any) -> Any:
    return _shape_of(input, as_dtype(out_type).dtype)


@known
def _shape_call(input: Any, out_type: Any = "int32", name: Any = None) -> Any:
    """Return the shape as an int32 vector. The known shape of a tracer is a constant."""
    if isinstance(input, ps.RaggedTensor):
        return _rows.DynamicRaggedShape(array_of(input), out_type)
    spec = getattr(lowered(input), "spec", None)  # for a Tracer
    if isinstance(spec, ps.TensorSpec) and None not in (spec.shape or (None,)):
        return constant(np.asarray(spec.shape, as_dtype(out_type).dtype))
    return _shape(input, out_type)


shape = _shape_call


@op("size")
def size(input: Any, out_type: Any = "int32") -> Any:
    value = array_of(input)
    count = np.prod(value.shape) if isinstance(value, ps.SparseTensor) else np.size(_rows.flat(value))
    return as_dtype(out_type).dtype.type(count)


@op("rank")
def rank(input: Any) -> Any:
    return np.int32(len(getattr(array_of(input), "shape", ())))


def _wide(array: Any, shape: Any) -> Any:
    differs = np.ndim(shape) > 1 or (isinstance(shape, (list, tuple)) and any(map(np.ndim, shape)))
    return None if differs or not array.shape[0] else array.reshape(array.shape[0], *_extents(shape))


def _reshaped_rule(tensor: Any, shape: Any) -> Any:
    if isinstance(shape, ps.TensorSpec):
        (length,) = shape.shape or ()
        shape = [shape] * (length or 0)
    wanted = [None if isinstance(part, ps.TensorSpec) else int(part) for part in np.ravel(np.asarray(shape, object))]
    if -1 in wanted:
        rest: Any = [extent for extent in wanted if extent != -1]
        known = None not in rest and 0 not in rest and tensor.fixed
        wanted[wanted.index(-1)] = int(np.prod(tensor.shape)) // int(np.prod(rest)) if known else None
    return ps.TensorSpec(wanted, tensor.dtype)


@op("reshape", rule=_reshaped_rule, block=_wide)
def reshape(tensor: Any, shape: Any) -> Any:
    """Return the same numbers in another shape. One extent may be -1."""
    array = array_of(tensor)
    return np.reshape(array.flat_values if is_ragged(array) else array, _extents(shape))[()]


@op("expand_dims", block=lambda input, axis: np.expand_dims(input, inside(_numbers(axis))))  # noqa: A006
def expand_dims(input: Any, axis: Any) -> Any:
    array, at = array_of(input), _numbers(axis)
    if isinstance(array, ps.RaggedTensor):
        return _expanded(array, at + len(array.shape) + 1 if at < 0 else at)
    return np.expand_dims(array, at)


def _expanded(ragged: Any, at: int) -> Any:
    if at == 0:
        return ps.RaggedTensor.from_row_lengths(ragged, [len(ragged)])
    if at == 1:
        return ps.RaggedTensor(ragged, np.arange(len(ragged) + 1))
    inner = ragged.values
    deeper = isinstance(inner, ps.RaggedTensor)
    return ps.RaggedTensor(_expanded(inner, at - 1) if deeper else np.expand_dims(inner, at - 1), ragged.row_splits)


def _squeezed_rule(spec: Any, axis: Any = None, squeeze_dims: Any = None) -> Any:
    wanted = squeeze_dims if axis is None else axis
    if not isinstance(spec, ps.TensorSpec) or (wanted is None and None in spec.shape):
        raise NotTraceable("squeeze of a value whose shape differs between elements, without an axis")
    rank = len(spec.shape)
    axes = [at for at in builtins.range(rank) if spec.shape[at] == 1] if wanted is None else _extents(wanted)
    gone = {at % rank for at in axes if -rank <= at < rank and spec.shape[at] in (None, 1)}
    if len(gone) != len(axes):
        raise NotTraceable("squeeze of an axis that is not there, or is no single one")
    return ps.TensorSpec([extent for at, extent in enumerate(spec.shape) if at not in gone], spec.dtype)


@op("squeeze", rule=_squeezed_rule)
def squeeze(input: Any, axis: Any = None, squeeze_dims: Any = None) -> Any:
    wanted = squeeze_dims if axis is None else axis
    return _rows.squeezed(array_of(input), None if wanted is None else _numbers(wanted))


def _transposed(a: Any, perm: Any = None, conjugate: bool = False) -> Any:
    axes = tuple(builtins.range(a.ndim - 1))[::-1] if perm is None else _extents(perm)
    return np.transpose(a, (0, *(inside(axis) for axis in axes)))


@op("transpose", block=_transposed)
def transpose(a: Any, perm: Any = None, conjugate: bool = False) -> Any:
    found = np.transpose(array_of(a), None if perm is None else _extents(perm))
    return np.conj(found) if conjugate else found


def _joined(function: Callable[..., Any], values: Any, axis: Any) -> Any:
    """Apply a joining function to Blocks. Returns None if dtypes or dimensions differ, as with a constant."""
    if not isinstance(values, (tuple, list)) or not all(isinstance(part, np.ndarray) for part in values):
        return None
    kinds = {(part.ndim, part.dtype) for part in values}
    return function(values, inside(_numbers(axis))) if len(kinds) == 1 else None


@op("stack", alike="values", block=lambda values, axis=0: _joined(np.stack, values, axis))
def stack(values: Any, axis: Any = 0) -> Any:
    """Stack values of one shape along a new axis."""
    parts = [array_of(part) for part in values] if isinstance(values, (list, tuple)) else []
    if is_ragged(*parts):
        return _rows.joined(parts, int(axis) % (len(parts[0].shape) + 1))
    return np.stack([whole(value) for value in values], _numbers(axis))


@op("concat", alike="values", block=lambda values, axis: _joined(np.concatenate, values, axis))
def concat(values: Any, axis: Any) -> Any:
    """Concatenate values along an existing axis."""
    if not isinstance(values, np.ndarray) and any(isinstance(part, ps.RaggedTensor) for part in values):
        return _concat_ragged([array_of(part) for part in values], axis)
    parts = [values] if isinstance(values, np.ndarray) else [whole(value) for value in values]
    return np.concatenate(parts, _numbers(axis))


def _concat_ragged(parts: list[Any], axis: Any) -> Any:
    """Concatenate ragged tensors along their rows or within each row."""
    rows = list(map(_rows.rows_of, parts))
    if int(axis) == 0:
        return ps.RaggedTensor.stack([row for part in rows for row in part])
    rank = builtins.max(len(part.shape) for part in parts if is_ragged(part))
    if int(axis) % rank != 1 or len({len(part) for part in rows}) != 1:
        message = f"concat of ragged tensors of {' and '.join(str(len(part)) for part in rows)} rows with axis={axis}."
        raise InvalidArgumentError(message, hint="axis=0 sets rows below each other, axis=1 those of as many rows.")
    return ps.RaggedTensor.stack([np.concatenate(row) for row in builtins.zip(*rows, strict=True)])


@op("unstack")
def unstack(value: Any, num: Any = None, axis: Any = 0) -> Any:
    array = array_of(value)
    return tuple(part[()] for part in np.moveaxis(array, _numbers(axis), 0))


@op("split")
def split(value: Any, num_or_size_splits: Any, axis: Any = 0, num: Any = None) -> Any:
    """Split an array into a number of equal parts, or into parts of these sizes. One size may be -1."""
    array, at, wanted = array_of(value), _numbers(axis), _numbers(num_or_size_splits)
    if is_ragged(array) and at == 0:
        rows = split(np.arange(len(array)), num_or_size_splits)
        return tuple(_rows.chosen(array, np.asarray(part)) for part in rows)
    array = whole(array)
    if isinstance(wanted, int):
        return tuple(np.split(array, wanted, at))
    sizes = list(wanted)
    if -1 in sizes:
        sizes[sizes.index(-1)] = array.shape[at] - sum(sizes) - 1
    if sum(sizes) != array.shape[at]:
        raise InvalidArgumentError(f"split into {sizes} of {array.shape[at]} rows.")
    return tuple(np.split(array, np.cumsum(sizes)[:-1], at))


@op("tile")
def tile(input: Any, multiples: Any) -> Any:
    return _rows.tiled(array_of(input), _extents(multiples))


@op("repeat")
def repeat(input: Any, repeats: Any, axis: Any = None) -> Any:
    return np.repeat(array_of(input), _numbers(repeats), _axis(axis))


@op("reverse")
def reverse(tensor: Any, axis: Any) -> Any:
    value = array_of(tensor)
    return _rows.reversed_(value, [at % len(value.shape) for at in _extents(axis)])


@op("roll")
def roll(input: Any, shift: Any, axis: Any) -> Any:
    return np.roll(array_of(input), _numbers(shift), _numbers(axis))


@op("broadcast_to")
def broadcast_to(input: Any, shape: Any) -> Any:
    return np.broadcast_to(array_of(input), _extents(shape)).copy()


@op("pad")
def pad(tensor: Any, paddings: Any, mode: str = "CONSTANT", constant_values: Any = 0) -> Any:
    """Add values before and after each axis: constant, REFLECT or SYMMETRIC."""
    array = whole(tensor)
    widths = np.asarray(paddings).reshape(-1, 2).tolist()
    if mode.upper() != "CONSTANT":
        return np.pad(array, widths, mode.lower())  # type: ignore[call-overload]
    filler = b"" if array.dtype.hasobject and constant_values == 0 else constant_values
    return np.pad(array, widths, constant_values=filler)


@op("meshgrid")
def meshgrid(*args: Any, indexing: str = "xy") -> Any:
    return list(np.meshgrid(*map(array_of, args), indexing=indexing))  # type: ignore[call-overload]


@op("bitcast")
def bitcast(input: Any, type: Any) -> Any:
    return whole(input).view(as_dtype(type).dtype)[()]


@known
def get_static_value(tensor: Any, partial: bool = False) -> Any:
    """Return the value as numpy has it, or None if it is not known before the elements come."""
    return None if isinstance(lowered(tensor), Tracer) else array_of(tensor)


@known
def timestamp(name: Any = None) -> Any:
    """Return the seconds since 1970 as float64."""
    if _reading.builder is not None:
        raise NotTraceable("it asks for the time")
    return convert_to_tensor(np.float64(_time.time()))


def is_tensor(x: Any) -> bool:
    """Return True if a value is a tensor."""
    return isinstance(x, (Tensor, ps.RaggedTensor, ps.SparseTensor))


def _of_shape(x: Any, shape: Any, *, rows: bool = False) -> Any:
    array = array_of(x)
    if shape is None:
        return array
    found = np.shape(array)[rows:]
    if len(found) != len(shape) or any(one not in (None, extent) for one, extent in zip(shape, found, strict=True)):
        message = f"The value has shape {found}, and {tuple(shape)} was expected."
        raise InvalidArgumentError(message, hint="tf.reshape(x, shape) changes the shape of a value.")
    return array


def _ensured_rule(x: Any, shape: Any) -> Any:
    wanted = x.shape if shape is None else shape
    return ps.TensorSpec([one if two is None else two for one, two in zip(x.shape, wanted, strict=True)], x.dtype)


@op("ensure_shape", rule=_ensured_rule, block=lambda x, shape: _of_shape(x, shape, rows=True))
def ensure_shape(x: Any, shape: Any) -> Any:
    """Return the value, or raise InvalidArgumentError for another shape. None is any extent, or any shape."""
    return _of_shape(x, shape)


def _set_shape(tensor: Value, shape: Any) -> None:
    """Check that this is the shape of the value. In a function of a data set, the tensor then has the shape."""
    checked = ensure_shape(tensor, shape)
    if type(tensor._value) is Tracer:
        object.__setattr__(tensor, "_value", checked._value)


Value.set_shape = _set_shape  # type: ignore[attr-defined]
