"""Functions that select parts of tensors: slices, gather and scatter, masks, sorting."""

from __future__ import annotations

import builtins
from collections import namedtuple
from typing import Any

import numpy as np

import penstock as ps
from penstock.compat.dtypes import as_dtype
from penstock.compat.op import known, op
from penstock.compat.tf import rows as _rows
from penstock.compat.tf.arrays import _extents, _numbers, constant
from penstock.compat.values import array_of, is_ragged, lowered, whole
from penstock.errors import InvalidArgumentError
from penstock.trace.graph import NotTraceable
from penstock.trace.tracer import Tracer


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
    return np.take(array, _rows.below(at, array.shape[along]), along)


def _rows_of_constant(indices: Any, params: Any) -> Any:
    return _gathered(params, indices, 0, 0)


_taken = op("gather", block=_rows_of_constant)(_rows_of_constant)  # computes all indices of a Block at once


@known
def gather(
    params: Any, indices: Any, validate_indices: Any = None, axis: Any = None, batch_dims: int = 0, name: Any = None
) -> Any:
    """Return the rows with these indices."""
    table = array_of(params)
    if isinstance(lowered(indices), Tracer) and isinstance(table, np.ndarray) and not batch_dims and axis in (None, 0):
        return _taken(indices, table)
    return _gather(params, indices, validate_indices, axis, batch_dims)


@op("gather")
def _gather(params: Any, indices: Any, validate_indices: Any = None, axis: Any = None, batch_dims: int = 0) -> Any:
    rows, at, along = array_of(params), array_of(indices), batch_dims if axis is None else _numbers(axis)
    if is_ragged(rows, at):
        return _rows.gathered(rows, at, along, batch_dims, gather)
    return _gathered(rows, at, along, batch_dims)


@op("gather_nd")
def gather_nd(params: Any, indices: Any, batch_dims: int = 0) -> Any:
    """Return parts by indices along the first axes. The last axis of `indices` has the indices."""
    array, at = array_of(params), whole(indices)
    if is_ragged(array) and not batch_dims:
        return _rows.parts(array, at)
    array = whole(array)
    if batch_dims:
        return np.stack([gather_nd(one, own, batch_dims - 1) for one, own in zip(array, at, strict=True)])
    flat: Any = np.int64(0)
    for axis in range(at.shape[-1]):
        flat = flat * array.shape[axis] + _rows.below(at[..., axis], array.shape[axis])
    return np.take(array.reshape(-1, *array.shape[at.shape[-1] :]), flat, 0, mode="clip")


@op("boolean_mask", rule=lambda tensor, mask, axis=None: _masked_rule(tensor))
def boolean_mask(tensor: Any, mask: Any, axis: Any = None) -> Any:
    array, chosen, along = whole(tensor), np.asarray(mask, bool), _numbers(axis or 0)
    flat = array.reshape(*array.shape[:along], -1, *array.shape[along + chosen.ndim :])
    return np.compress(chosen.reshape(-1), flat, along)


def _masked_rule(spec: Any) -> Any:
    if not isinstance(spec, ps.TensorSpec) or len(spec.shape) != 1:
        raise NotTraceable("boolean_mask of more than a vector")
    return ps.TensorSpec((None,), spec.dtype)


@op("where", ragged=True, alike="x y")
def _where(condition: Any, x: Any, y: Any) -> Any:
    return np.where(condition, x, y)[()]


@op("where", rule=lambda condition: ps.TensorSpec((None, len(condition.shape)), np.int64))
def _where_true(condition: Any) -> Any:
    return _rows.places(array_of(condition))


@known
def where(condition: Any, x: Any = None, y: Any = None, name: Any = None) -> Any:
    """Return `x` where the condition is True, otherwise `y`. Without `x` and `y`, return the indices of True values."""
    return _where_true(condition) if x is None and y is None else _where(condition, x, y)


def _hot(indices: Any, *others: Any, **named: Any) -> Any:
    """Compute one_hot for Blocks along the last axis, if all other arguments are equal for all elements."""
    along = named.get("axis", others[3] if len(others) > 3 else None)
    if along not in (None, -1) or any(map(np.ndim, (*others, *named.values()))):
        return None
    return vars(one_hot)["__wrapped__"](indices, *others, **named)


@op("one_hot", block=_hot, ragged=True)
def one_hot(
    indices: Any, depth: Any, on_value: Any = None, off_value: Any = None, axis: Any = None, dtype: Any = None
) -> Any:
    """Return a row of zeros with a one at each index. Indices out of range give zeros only."""
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
    """Return each distinct value in the order of first occurrence, and for every element the index of its value."""
    values, at, _ = _unique(x)
    return Unique(constant(values), constant(at, out_idx))


def unique_with_counts(x: Any, out_idx: Any = "int32", name: Any = None) -> Any:
    """Return the results of `unique` and the count of each value."""
    values, at, counts = _unique(x)
    return UniqueWithCounts(constant(values), constant(at, out_idx), constant(counts, out_idx))


@op("tensor_scatter_nd_update")
def tensor_scatter_nd_update(tensor: Any, indices: Any, updates: Any) -> Any:
    """Return a copy of `tensor` with other values at `indices`."""
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


def _spans(begin: Any, end: Any, strides: Any, masks: tuple[int, ...]) -> tuple[Any, ...]:
    """Return the index expression of a `strided_slice`."""
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
    """Return `x[begin:end:strides]` for several axes. Bits of the masks mark omitted bounds."""
    masks = (begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    return whole(input_)[_spans(begin, end, strides, masks)]


@op("unravel_index")
def unravel_index(indices: Any, dims: Any) -> Any:
    """Return indices of a flattened array as indices of an array of shape `dims`, a row for each axis."""
    at = whole(indices)
    return np.stack(np.unravel_index(at, _extents(dims))).astype(at.dtype)


@known
def dynamic_partition(data: Any, partitions: Any, num_partitions: Any, name: Any = None) -> Any:
    """Return the rows of each partition number below `num_partitions`, as one tensor each."""
    count = int(num_partitions)
    return [boolean_mask(data, _equal_to(partitions, number)) for number in builtins.range(count)]


@op("equal", exact=True)
def _equal_to(values: Any, number: Any) -> Any:
    return whole(values) == number


@op("dynamic_stitch")
def dynamic_stitch(indices: Any, data: Any) -> Any:
    """Merge the rows of several arrays: row `i` of `data` goes to the place in `indices`."""
    places = [whole(at).reshape(-1) for at in indices]
    parts = [whole(rows) for rows in data]
    extra = parts[0].shape[np.ndim(whole(indices[0])) :]
    found = np.zeros((int(builtins.max((at.max(initial=-1) for at in places), default=-1)) + 1, *extra), parts[0].dtype)
    for at, rows in builtins.zip(places, parts, strict=True):
        found[at] = rows.reshape(-1, *extra)
    return found
