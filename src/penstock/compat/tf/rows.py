"""The ragged forms of functions of arrays: they work row by row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import penstock as ps
from penstock.compat.values import array_of, is_ragged, lowered, stacked
from penstock.errors import InvalidArgumentError


def rows_of(value: Any) -> list[Any]:
    """Return the rows of a tensor, as arrays and ragged tensors."""
    return [value[row] for row in range(len(value))]


def below(at: Any, extent: int) -> Any:
    """Check the indices of a `gather` along an axis of this extent, and return the indices."""
    if np.size(at) and (np.min(at) < 0 or np.max(at) >= extent):
        message = f"gather takes indices below {extent}, got {np.asarray(at).reshape(-1).tolist()!r:.60}."
        raise InvalidArgumentError(message)
    return at


def gathered(params: Any, at: Any, axis: int, batch_dims: int, gather: Callable[..., Any]) -> Any:
    """Return the rows at the given indices, if the rows or the indices are ragged."""
    if batch_dims:
        pairs = zip(rows_of(params), rows_of(at), strict=True)
        rows = [gather(row, numbers, None, axis - 1, batch_dims - 1) for row, numbers in pairs]
        return stacked(rows, at) if is_ragged(at) else np.stack(rows)
    if is_ragged(at):
        return ps.RaggedTensor(gather(params, at.values, None, axis), at.row_splits)
    if axis:
        return np.stack([gather(row, at, None, axis - 1) for row in rows_of(params)])
    if not np.ndim(below(at, len(params))):
        return params[int(at)]
    found = chosen(params, at)
    for extent in reversed(np.shape(at)[1:]):
        found = ps.RaggedTensor(found, np.arange(0, len(found) + 1, extent))
    return found


def chosen(params: Any, at: Any) -> ps.RaggedTensor:
    """Return the rows of these numbers, as a ragged tensor."""
    return stacked([params[row] for row in np.reshape(at, -1).tolist()], params)


def parts(params: ps.RaggedTensor, at: np.ndarray) -> Any:
    """Return the parts of a ragged tensor by the numbers along its first axes, as `gather_nd` does."""
    if at.ndim == 1:
        return parts(params, at[None])[0]
    found: list[Any] = []
    for numbers in at.reshape(-1, at.shape[-1]).tolist():
        part: Any = params
        for number in numbers:
            part = part[below(number, len(part))]
        found.append(part)
    return np.stack(found) if at.shape[-1] > params.ragged_rank else ps.RaggedTensor.stack(found)


def places(condition: Any) -> np.ndarray:
    """Return the indices at which a condition is True, one row for each."""
    if not is_ragged(condition):
        return np.argwhere(condition)
    each = [places(row) for row in rows_of(condition)]
    rows = np.repeat(np.arange(len(each)), list(map(len, each)))
    inner = np.concatenate(each) if each else np.empty((0, len(condition.shape) - 1), np.int64)
    return np.column_stack([rows, inner]).astype(np.int64)


def tiled(value: Any, times: Sequence[int]) -> Any:
    """Repeat a tensor along each axis."""
    if not is_ragged(value):
        return np.tile(value, times)
    return stacked([tiled(row, times[1:]) for row in rows_of(value)] * times[0], value)


def reversed_(value: Any, axes: Sequence[int]) -> Any:
    """Reverse a tensor along the given axes."""
    if not is_ragged(value):
        return np.flip(value, tuple(axes))
    inner = [axis - 1 for axis in axes if axis]
    rows = [reversed_(row, inner) for row in rows_of(value)]
    return stacked(rows[::-1] if 0 in axes else rows, value)


def by_rows(function: Callable[..., Any], value: ps.RaggedTensor, axis: int, *settings: Any) -> Any:
    """Apply a function along an axis, which is not the first, to each row of a ragged tensor."""
    below_first = axis + len(value.shape) - 1 if axis < 0 else axis - 1
    if below_first < 0:
        message = "Ragged tensors have no columns along axis 0."
        raise InvalidArgumentError(message, hint="Name the axis of the rows: axis=1, or axis=-1.")
    return stacked([lowered(function(row, below_first, *settings)) for row in rows_of(value)], value)


def squeezed(value: Any, axes: Any) -> Any:
    """Remove axes of extent 1 from a tensor."""
    if not is_ragged(value):
        return np.squeeze(value, None if axes == () else axes)[()]
    if axes is None:
        message = "squeeze of a ragged tensor needs an axis."
        raise InvalidArgumentError(message, hint="Name the axis of extent 1: tf.squeeze(x, axis=1).")
    rank, rows = len(value.shape), value
    for axis in sorted((at % rank for at in np.reshape(axes, -1).tolist()), reverse=True):
        rows = _without(rows, axis)
    return rows


def _without(value: Any, axis: int) -> Any:
    if not is_ragged(value):
        return np.squeeze(value, axis)
    if axis > 1:
        return ps.RaggedTensor(_without(value.values, axis - 1), value.row_splits)
    lengths = [len(value)] if axis == 0 else value.row_lengths.tolist()
    if any(length != 1 for length in lengths):
        raise InvalidArgumentError(f"squeeze removes axes of extent 1, got axis {axis} of the lengths {lengths!r:.60}.")
    return value.values if axis else value[0]


def joined(parts: Sequence[Any], axis: int) -> Any:
    """Stack tensors, some of which are ragged, along a new axis."""
    if axis and not is_ragged(*parts):
        return np.stack(parts, axis)
    if axis:
        return ps.RaggedTensor.stack([joined(row, axis - 1) for row in zip(*map(rows_of, parts), strict=True)])
    if is_ragged(*parts):
        parts = [part if is_ragged(part) else ps.RaggedTensor.stack(rows_of(part)) for part in parts]
    return ps.RaggedTensor.stack(parts)


def flat(value: Any) -> np.ndarray:
    """Return all values of a tensor as an array of one dimension."""
    if is_ragged(value):
        return value.flat_values
    return value.values if isinstance(value, ps.SparseTensor) else np.reshape(array_of(value), -1)


class DynamicRaggedShape:
    """The shape of a ragged tensor: an extent for each uniform axis, the lengths of the rows for each ragged axis."""

    def __init__(self, value: ps.RaggedTensor, dtype: Any) -> None:
        self._value, self._dtype = value, dtype

    @property
    def rank(self) -> int:
        return len(self._value.shape)

    def static_lengths(self) -> list[Any]:
        """Return the extents of uniform axes, and lists of lengths for ragged axes."""
        found: list[Any] = [len(self._value)]
        inner: Any = self._value
        while is_ragged(inner):
            found.append(inner.row_lengths.tolist())
            inner = inner.values
        return [*found, *inner.shape[1:]]

    def __getitem__(self, axis: int) -> Any:
        found = self.static_lengths()[axis]
        if isinstance(found, list):
            message = f"Axis {axis} of a ragged tensor has no single extent."
            raise InvalidArgumentError(message, hint="Write x.row_lengths(), or x.bounding_shape().")
        return array_of(found, self._dtype)

    def __repr__(self) -> str:
        return f"<DynamicRaggedShape lengths={self.static_lengths()}>"
