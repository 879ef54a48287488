"""Tensors made, reshaped, joined, and taken apart: what TensorFlow has at its top level for arrays."""

from __future__ import annotations

import builtins
import time as _time
from collections import namedtuple
from typing import Any

import numpy as np

import penstock as ps
from penstock.compat.dtypes import as_dtype
from penstock.compat.op import _reading, known, op, through
from penstock.compat.stand_ins import SymbolicTensor
from penstock.compat.values import array_of, whole
from penstock.errors import InvalidArgumentError
from penstock.trace.graph import NotTraceable
from penstock.trace.tracer import Tracer

newaxis = None
_cast = through(ps.image.cast, first=array_of, ragged=True)


@op("cast", exact=True)
def _cast_bfloat16(x: Any, dtype: Any) -> Any:
    return np.asarray(x).astype(as_dtype(dtype).dtype)[()]


@known
def cast(x: Any, dtype: Any, name: Any = None) -> Any:
    """The same numbers in another dtype; floats are cut off towards zero where they become integers."""
    wanted = as_dtype(dtype)
    if "bfloat16" in (wanted.name, getattr(getattr(x, "dtype", None), "name", None)):
        return _cast_bfloat16(x if hasattr(x, "dtype") else convert_to_tensor(x), wanted)
    return _cast(x, wanted)


def _numbers(value: Any) -> Any:
    """A shape, or a list of axes, in Python's integers."""
    if isinstance(value, (int, np.integer)):
        return int(value)
    return tuple(int(item) for item in np.asarray(value).reshape(-1).tolist())


def _extents(value: Any) -> tuple[int, ...]:
    found = _numbers(value)
    return found if isinstance(found, tuple) else (found,)


def _axis(axis: Any) -> Any:
    return None if axis is None else _numbers(axis)


def inside(axis: Any) -> Any:
    """An axis of an element, in the array of a Block of them."""
    return axis + 1 if axis >= 0 else axis


def _converted(value: Any, dtype: Any, shape: Any) -> Any:
    array = whole(value, dtype)
    if shape is not None:
        wanted = _extents(shape)
        array = np.full(wanted, array, array.dtype) if array.size == 1 else array.reshape(wanted)
    return array if array.ndim else array[()]


@op("constant")
def constant(value: Any, dtype: Any = None, shape: Any = None) -> Any:
    """A value as a tensor: Python's integers become int32, floats float32, text bytes.

    >>> constant([1, 2]).dtype
    dtype('int32')
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


@op("zeros_like")
def zeros_like(input: Any, dtype: Any = None) -> Any:
    array = whole(input)
    return _full(array.shape, 0, _like(array, dtype))


@op("ones_like")
def ones_like(input: Any, dtype: Any = None) -> Any:
    array = whole(input)
    return _full(array.shape, 1, _like(array, dtype))


def _fill_rule(dims: Any, value: Any) -> Any:
    """The extents are known where they are the same for every element."""
    if isinstance(dims, ps.TensorSpec):
        if len(dims.shape) != 1 or dims.shape[0] is None:
            message = "fill of a shape whose rank differs between elements"
            raise NotTraceable(message)
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
    """An array of `dims` that holds `value` everywhere."""
    filler = whole(value)
    return np.full(_extents(dims), filler, filler.dtype)[()]


@op("eye")
def eye(num_rows: Any, num_columns: Any = None, batch_shape: Any = None, dtype: Any = "float32") -> Any:
    found = np.eye(int(num_rows), None if num_columns is None else int(num_columns), dtype=as_dtype(dtype).dtype)
    return found if batch_shape is None else np.broadcast_to(found, (*_extents(batch_shape), *found.shape)).copy()


def _range_rule(start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None) -> Any:
    known = next((part.dtype for part in (start, limit, delta) if isinstance(part, ps.TensorSpec)), np.int32)
    return ps.TensorSpec((None,), known if dtype is None else dtype)


@op("range", rule=_range_rule)
def range(start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None) -> Any:
    """The numbers from `start` in steps of `delta`; int32 for Python's integers, float32 for its floats."""
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
    if isinstance(value, (ps.RaggedTensor, ps.SparseTensor)):
        return np.asarray(value.shape, out_type)
    return np.asarray(np.shape(array_of(value)), out_type)


@op("shape")
def _shape(input: Any, out_type: Any) -> Any:
    return _shape_of(input, as_dtype(out_type).dtype)


def _shape_call(input: Any, out_type: Any = "int32", name: Any = None) -> Any:
    """The shape as a vector, int32; of a stand-in whose shape is known it is the same for all elements."""
    if (
        isinstance(input, Tracer)
        and isinstance(input.spec, ps.TensorSpec)
        and None not in (input.spec.shape or (None,))
    ):
        return constant(np.asarray(input.spec.shape, as_dtype(out_type).dtype))
    return _shape(input, out_type)


known(_shape_call)
shape = _shape_call


@op("size")
def size(input: Any, out_type: Any = "int32") -> Any:
    return as_dtype(out_type).dtype.type(np.size(array_of(input)))


@op("rank")
def rank(input: Any) -> Any:
    return np.int32(np.ndim(array_of(input)))


def _wide(array: Any, shape: Any) -> Any:
    return array.reshape(array.shape[0], *_extents(shape)) if array.shape[0] else None


@op("reshape", block=_wide)
def reshape(tensor: Any, shape: Any) -> Any:
    """The same numbers in another shape; one extent may be -1."""
    return np.reshape(array_of(tensor), _extents(shape))[()]


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
        message = "squeeze of a value whose shape differs between elements, without an axis"
        raise NotTraceable(message)
    rank = len(spec.shape)
    axes = [at for at in builtins.range(rank) if spec.shape[at] == 1] if wanted is None else _extents(wanted)
    gone = {at % rank for at in axes if -rank <= at < rank and spec.shape[at] in (None, 1)}
    if len(gone) != len(axes):
        message = "squeeze of an axis that is not there, or is no single one"
        raise NotTraceable(message)
    return ps.TensorSpec([extent for at, extent in enumerate(spec.shape) if at not in gone], spec.dtype)


@op("squeeze", rule=_squeezed_rule)
def squeeze(input: Any, axis: Any = None, squeeze_dims: Any = None) -> Any:
    wanted = squeeze_dims if axis is None else axis
    return np.squeeze(array_of(input), None if wanted is None else _numbers(wanted) or None)[()]


def _transposed(a: Any, perm: Any = None, conjugate: bool = False) -> Any:
    axes = tuple(builtins.range(a.ndim - 1))[::-1] if perm is None else _extents(perm)
    return np.transpose(a, (0, *(inside(axis) for axis in axes)))


@op("transpose", block=_transposed)
def transpose(a: Any, perm: Any = None, conjugate: bool = False) -> Any:
    found = np.transpose(array_of(a), None if perm is None else _extents(perm))
    return np.conj(found) if conjugate else found


def _alike(values: Any) -> list[np.ndarray]:
    """Values of one dtype: Python's numbers take that of the tensors beside them."""
    parts = list(values)
    known = next((np.asarray(part).dtype for part in parts if hasattr(part, "dtype")), None)
    if known is None:
        arrays = [whole(part) for part in parts]
        common = np.result_type(*arrays) if arrays and not arrays[0].dtype.hasobject else None
        if common == np.float64:  # of Python's floats and integers
            common = np.dtype(np.float32)
        return arrays if common is None else [part.astype(common) for part in arrays]
    return [whole(part, None if hasattr(part, "dtype") else known) for part in parts]


def _stacked(values: Any, axis: Any = 0) -> Any:
    parts = list(values) if isinstance(values, (tuple, list)) else [values]
    if not all(isinstance(part, np.ndarray) and part.shape == parts[0].shape for part in parts):
        return None
    return np.stack(parts, inside(_numbers(axis))) if len({part.dtype for part in parts}) == 1 else None


@op("stack")
def stack(values: Any, axis: Any = 0) -> Any:
    """Values of one shape side by side along a new axis."""
    return np.stack(_alike(values), _numbers(axis))


@op("concat")
def concat(values: Any, axis: Any) -> Any:
    """Values one after the other along an axis that they have."""
    if not isinstance(values, np.ndarray) and any(isinstance(part, ps.RaggedTensor) for part in values):
        return _concat_ragged(
            [part if isinstance(part, ps.RaggedTensor) else list(whole(part)) for part in values], axis
        )
    parts = [values] if isinstance(values, np.ndarray) else _alike(values)
    return np.concatenate(parts, _numbers(axis))


def _concat_ragged(parts: list[Any], axis: Any) -> Any:
    """Ragged tensors below each other, or row beside row."""
    rows = [[part[row] for row in builtins.range(len(part))] for part in parts]
    if int(axis) == 0:
        return ps.RaggedTensor.stack([row for part in rows for row in part])
    if int(axis) != 1 or len({len(part) for part in rows}) != 1:
        message = f"concat of ragged tensors of {' and '.join(str(len(part)) for part in rows)} rows with axis={axis}."
        raise InvalidArgumentError(message, hint="axis=0 sets rows below each other, axis=1 those of as many rows.")
    return ps.RaggedTensor.stack([np.concatenate(row) for row in builtins.zip(*rows, strict=True)])


@op("unstack")
def unstack(value: Any, num: Any = None, axis: Any = 0) -> Any:
    array = array_of(value)
    return tuple(part[()] for part in np.moveaxis(array, _numbers(axis), 0))


@op("split")
def split(value: Any, num_or_size_splits: Any, axis: Any = 0, num: Any = None) -> Any:
    """An array in parts: so many of one size, or of these sizes, one of which may be -1."""
    array, at, wanted = array_of(value), _numbers(axis), _numbers(num_or_size_splits)
    if isinstance(wanted, int):
        return tuple(np.split(array, wanted, at))
    sizes = list(wanted)
    if -1 in sizes:
        sizes[sizes.index(-1)] = array.shape[at] - sum(sizes) - 1
    if sum(sizes) != array.shape[at]:
        message = f"split into {sizes} of {array.shape[at]} rows."
        raise InvalidArgumentError(message)
    return tuple(np.split(array, np.cumsum(sizes)[:-1], at))


@op("tile")
def tile(input: Any, multiples: Any) -> Any:
    return np.tile(array_of(input), _extents(multiples))


@op("repeat")
def repeat(input: Any, repeats: Any, axis: Any = None) -> Any:
    return np.repeat(array_of(input), _numbers(repeats), _axis(axis))


@op("reverse")
def reverse(tensor: Any, axis: Any) -> Any:
    return np.flip(array_of(tensor), _extents(axis))


@op("roll")
def roll(input: Any, shift: Any, axis: Any) -> Any:
    return np.roll(array_of(input), _numbers(shift), _numbers(axis))


@op("broadcast_to")
def broadcast_to(input: Any, shape: Any) -> Any:
    return np.broadcast_to(array_of(input), _extents(shape)).copy()


@op("pad")
def pad(tensor: Any, paddings: Any, mode: str = "CONSTANT", constant_values: Any = 0) -> Any:
    """Rows added in front of and behind each axis: constant, REFLECT or SYMMETRIC."""
    array = whole(tensor)
    widths = np.asarray(paddings).reshape(-1, 2).tolist()
    if mode.upper() != "CONSTANT":
        return np.pad(array, widths, mode.lower())  # type: ignore[call-overload]
    filler = b"" if array.dtype.hasobject and constant_values == 0 else constant_values
    return np.pad(array, widths, constant_values=filler)


@op("slice")
def slice(input_: Any, begin: Any, size: Any) -> Any:
    array, starts, sizes = array_of(input_), _extents(begin), _extents(size)
    for start, extent, held in zip(starts, sizes, array.shape, strict=True):
        if start < 0 or extent < -1 or start + builtins.max(extent, 0) > held:
            message = f"slice from {list(starts)} of size {list(sizes)} reaches out of a value of {list(array.shape)}."
            raise InvalidArgumentError(message)
    return array[
        tuple(
            builtins.slice(start, None if extent == -1 else start + extent)
            for start, extent in zip(starts, sizes, strict=True)
        )
    ]


def _gathered(array: Any, at: Any, along: int, batch_dims: int) -> Any:
    if batch_dims:
        return np.stack([_gathered(a, i, along - 1, batch_dims - 1) for a, i in zip(array, at, strict=True)])
    extent = array.shape[along]
    if np.size(at) and (np.min(at) < 0 or np.max(at) >= extent):
        message = f"gather takes numbers below {extent}, got {np.asarray(at).reshape(-1).tolist()!r:.60}."
        raise InvalidArgumentError(message)
    return np.take(array, at, along)


@op("gather")
def gather(params: Any, indices: Any, validate_indices: Any = None, axis: Any = None, batch_dims: int = 0) -> Any:
    """Rows by their numbers."""
    return _gathered(array_of(params), array_of(indices), batch_dims if axis is None else _numbers(axis), batch_dims)


@op("gather_nd")
def gather_nd(params: Any, indices: Any, batch_dims: int = 0) -> Any:
    at = whole(indices)
    return whole(params)[tuple(np.moveaxis(at, -1, 0))]


@op("boolean_mask", rule=lambda tensor, mask, axis=None: _masked_rule(tensor))
def boolean_mask(tensor: Any, mask: Any, axis: Any = None) -> Any:
    array, chosen, along = whole(tensor), np.asarray(mask, bool), _numbers(axis or 0)
    flat = array.reshape(*array.shape[:along], -1, *array.shape[along + chosen.ndim :])
    return np.compress(chosen.reshape(-1), flat, along)


def _masked_rule(spec: Any) -> Any:
    if not isinstance(spec, ps.TensorSpec) or len(spec.shape) != 1:
        message = "boolean_mask of more than a vector"
        raise NotTraceable(message)
    return ps.TensorSpec((None,), spec.dtype)


@op("where")
def _where(condition: Any, x: Any, y: Any) -> Any:
    first, second = _alike([x, y])
    return np.where(condition, first, second)[()]


@op("where", rule=lambda condition: ps.TensorSpec((None, len(condition.shape)), np.int64))
def _where_true(condition: Any) -> Any:
    return np.argwhere(array_of(condition))


def where(condition: Any, x: Any = None, y: Any = None, name: Any = None) -> Any:
    """`x` where the condition holds and `y` elsewhere; with the condition alone the places where it holds."""
    return _where_true(condition) if x is None and y is None else _where(condition, x, y)


known(where)


@op("one_hot")
def one_hot(
    indices: Any, depth: Any, on_value: Any = None, off_value: Any = None, axis: Any = None, dtype: Any = None
) -> Any:
    """A row of zeros with a one in the place of each index; numbers out of range have none."""
    at = whole(indices)
    if at.dtype.kind not in "iu":
        message = f"one_hot takes whole numbers as indices; these are {at.dtype}."
        raise InvalidArgumentError(message, hint="Write tf.cast(indices, tf.int32).")
    given = next((np.asarray(value).dtype for value in (on_value, off_value) if hasattr(value, "dtype")), None)
    wanted = as_dtype(dtype).dtype if dtype is not None else given or np.dtype(np.float32)
    if dtype is None and given is None and (on_value is not None or off_value is not None):
        wanted = whole(on_value if on_value is not None else off_value).dtype
    found = np.where(
        at[..., None] == np.arange(int(depth)),
        1 if on_value is None else on_value,
        0 if off_value is None else off_value,
    ).astype(wanted)
    return found if axis in (None, -1) else np.moveaxis(found, -1, _numbers(axis))


@op("sequence_mask", rule=lambda lengths, maxlen=None, dtype="bool": _sequence_rule(lengths, maxlen, dtype))
def sequence_mask(lengths: Any, maxlen: Any = None, dtype: Any = "bool") -> Any:
    counts = whole(lengths)
    most = int(counts.max()) if maxlen is None else int(maxlen)
    return (np.arange(most) < counts[..., None]).astype(as_dtype(dtype).dtype)


def _sequence_rule(lengths: Any, maxlen: Any, dtype: Any) -> Any:
    fixed = maxlen is not None and not isinstance(maxlen, ps.TensorSpec)
    return ps.TensorSpec((*lengths.shape, int(maxlen) if fixed else None), as_dtype(dtype).dtype)


Unique = namedtuple("Unique", ["y", "idx"])
UniqueWithCounts = namedtuple("UniqueWithCounts", ["y", "idx", "count"])


def _unique(x: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    array = whole(x)
    values, first, inverse, counts = np.unique(array, return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(first, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return values[order], place[inverse.reshape(-1)], counts[order]


def unique(x: Any, out_idx: Any = "int32", name: Any = None) -> Any:
    """Each value once, in the order in which they come first, and for every element the number of its value."""
    values, at, _ = _unique(x)
    return Unique(constant(values), constant(at, out_idx))


def unique_with_counts(x: Any, out_idx: Any = "int32", name: Any = None) -> Any:
    """As `unique`, and how often each value comes."""
    values, at, counts = _unique(x)
    return UniqueWithCounts(constant(values), constant(at, out_idx), constant(counts, out_idx))


@op("tensor_scatter_nd_update")
def tensor_scatter_nd_update(tensor: Any, indices: Any, updates: Any) -> Any:
    """A copy of `tensor` with other values in the places `indices`."""
    found = np.array(array_of(tensor))
    found[tuple(np.moveaxis(whole(indices), -1, 0))] = array_of(updates)
    return found


tensor_scatter_update = tensor_scatter_nd_update


@op("tensor_scatter_nd_add")
def tensor_scatter_nd_add(tensor: Any, indices: Any, updates: Any) -> Any:
    found = np.array(array_of(tensor))
    np.add.at(found, tuple(np.moveaxis(whole(indices), -1, 0)), array_of(updates))
    return found


@op("scatter_nd")
def scatter_nd(indices: Any, updates: Any, shape: Any) -> Any:
    values = whole(updates)
    found = np.zeros(_extents(shape), values.dtype)
    np.add.at(found, tuple(np.moveaxis(whole(indices), -1, 0)), values)
    return found


@op("meshgrid")
def meshgrid(*args: Any, indexing: str = "xy") -> Any:
    return list(np.meshgrid(*map(array_of, args), indexing=indexing))  # type: ignore[call-overload]


@op("sort")
def sort(values: Any, axis: int = -1, direction: str = "ASCENDING") -> Any:
    found = np.sort(array_of(values), axis, kind="stable")
    return np.flip(found, axis) if direction == "DESCENDING" else found


@op("argsort")
def argsort(values: Any, axis: int = -1, direction: str = "ASCENDING", stable: bool = False) -> Any:
    array = whole(values)
    if direction == "DESCENDING":
        array = np.flip(array, axis)
        found = np.flip(array.shape[axis] - 1 - np.argsort(array, axis, kind="stable"), axis)
    else:
        found = np.argsort(array, axis, kind="stable")
    return found.astype(np.int32)


@op("bitcast")
def bitcast(input: Any, type: Any) -> Any:
    return whole(input).view(as_dtype(type).dtype)[()]


def _spans(begin: Any, end: Any, strides: Any, masks: tuple[int, ...]) -> tuple[Any, ...]:
    """What stands in the brackets of the slice that `strided_slice` describes."""
    begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask = masks
    starts, stops = _extents(begin), _extents(end)
    steps = (1,) * len(starts) if strides is None else _extents(strides)
    spans: list[Any] = []
    for place, (start, stop, step) in enumerate(builtins.zip(starts, stops, steps, strict=True)):
        bit = 1 << place
        if ellipsis_mask & bit:
            spans.append(Ellipsis)
        elif new_axis_mask & bit:
            spans.append(None)
        elif shrink_axis_mask & bit:
            spans.append(start)
        else:
            spans.append(builtins.slice(None if begin_mask & bit else start, None if end_mask & bit else stop, step))
    return tuple(spans)


@op("strided_slice")
def strided_slice(
    input_: Any,
    begin: Any,
    end: Any,
    strides: Any = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
) -> Any:
    """`x[begin:end:strides]` for several axes; bits of the masks say where a bound is left out."""
    masks = (begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    return whole(input_)[_spans(begin, end, strides, masks)]


@op("unravel_index")
def unravel_index(indices: Any, dims: Any) -> Any:
    """Numbers in the flattened array as places in one of shape `dims`: a row for each of its axes."""
    at = whole(indices)
    return np.stack(np.unravel_index(at, _extents(dims))).astype(at.dtype)


def dynamic_partition(data: Any, partitions: Any, num_partitions: Any, name: Any = None) -> Any:
    """The rows of each number below `num_partitions`, a tensor for each."""
    count = int(num_partitions)
    return [boolean_mask(data, _equal_to(partitions, number)) for number in builtins.range(count)]


@op("equal", exact=True)
def _equal_to(values: Any, number: Any) -> Any:
    return whole(values) == number


known(dynamic_partition)


@op("dynamic_stitch")
def dynamic_stitch(indices: Any, data: Any) -> Any:
    """One array of the rows of several: row `i` of `data` goes to the place that `indices` has for it."""
    places = [whole(at).reshape(-1) for at in indices]
    parts = [whole(rows) for rows in data]
    extra = parts[0].shape[np.ndim(whole(indices[0])) :]
    found = np.zeros((int(builtins.max((at.max(initial=-1) for at in places), default=-1)) + 1, *extra), parts[0].dtype)
    for at, rows in builtins.zip(places, parts, strict=True):
        found[at] = rows.reshape(-1, *extra)
    return found


def get_static_value(tensor: Any, partial: bool = False) -> Any:
    """The value as numpy has it; None for what is not known before the elements come."""
    return None if isinstance(tensor, Tracer) else array_of(tensor)


known(get_static_value)


@known
def timestamp(name: Any = None) -> Any:
    """Seconds since 1970, float64."""
    if _reading.builder is not None:
        message = "it asks for the time"
        raise NotTraceable(message)
    return convert_to_tensor(np.float64(_time.time()))


def is_tensor(x: Any) -> bool:
    """Whether a value is a tensor already."""
    from penstock.compat.values import Tensor, Text

    return isinstance(x, (Tensor, Text, SymbolicTensor, ps.RaggedTensor, ps.SparseTensor))


def _of_shape(x: Any, shape: Any, *, rows: bool = False) -> Any:
    array = array_of(x)
    if shape is None:
        return array
    found = np.shape(array)[rows:]
    if len(found) != len(shape) or any(one not in (None, extent) for one, extent in zip(shape, found, strict=True)):
        message = f"The value has shape {found}, and {tuple(shape)} was expected."
        raise InvalidArgumentError(message)
    return array


@op("ensure_shape", block=lambda x, shape: _of_shape(x, shape, rows=True))
def ensure_shape(x: Any, shape: Any) -> Any:
    """The value itself; raises InvalidArgumentError for another shape. None is any extent in it, or any shape."""
    return _of_shape(x, shape)
