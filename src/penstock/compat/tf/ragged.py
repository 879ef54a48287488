"""`tf.ragged`: arrays whose rows differ in length."""

from __future__ import annotations

from typing import Any

import numpy as np

import penstock as ps
from penstock.compat.dtypes import as_dtype
from penstock.compat.op import known, op
from penstock.compat.teaching import missing_in
from penstock.compat.values import array_of, lowered, raised, whole
from penstock.errors import InvalidArgumentError


def _rank(rows: Any) -> int:
    """Return the depth of nested lists."""
    return 1 + max((_rank(row) for row in rows), default=0) if isinstance(rows, (list, tuple)) else np.ndim(rows)


def _of_lists(rows: Any, ragged_rank: int, dtype: Any, splits: Any) -> Any:
    flat = [item for row in rows for item in row]
    inner = whole(flat, dtype) if ragged_rank == 1 else _of_lists(flat, ragged_rank - 1, dtype, splits)
    return ps.RaggedTensor.from_row_lengths(inner, np.array([len(row) for row in rows], splits))


def constant(
    pylist: Any,
    dtype: Any = None,
    ragged_rank: Any = None,
    inner_shape: Any = None,
    name: Any = None,
    row_splits_dtype: Any = "int64",
) -> Any:
    """Return nested lists of different lengths as a RaggedTensor. A list without lists becomes an array.

    >>> constant([[[1], [2, 3]], []]).shape
    TensorShape([2, None, None])
    """
    deep = _rank(pylist) - 1 if ragged_rank is None else int(ragged_rank)
    if deep < 1:
        return raised(whole(list(pylist), dtype))
    return raised(_of_lists(pylist, deep, dtype, as_dtype(row_splits_dtype).dtype))


def stack(values: Any, axis: Any = 0, name: Any = None) -> Any:
    """Stack arrays with different first extents as the rows of a RaggedTensor."""
    if int(axis) != 0:
        message = f"tf.ragged.stack takes axis=0, got axis={axis!r}."
        raise InvalidArgumentError(
            message, hint="tf.concat([...], axis=1) sets the rows of ragged tensors side by side."
        )
    parts = [array_of(value) for value in values]
    if any(isinstance(part, ps.RaggedTensor) for part in parts):
        return raised(ps.RaggedTensor.stack(parts))
    return raised(ps.RaggedTensor.stack([whole(part) for part in parts], np.int32))


@op("ragged.range")
def range(starts: Any, limits: Any = None, deltas: Any = 1, dtype: Any = None, row_splits_dtype: Any = "int64") -> Any:
    """Return the numbers from each start to each limit as the rows of a RaggedTensor.

    >>> range([3, 0], [5, 2]).to_list()
    [[3, 4], [0, 1]]
    """
    first, last = (0, starts) if limits is None else (starts, limits)
    parts = [whole(part, dtype) for part in (first, last, deltas)]
    wanted = np.result_type(*(part.dtype for part in parts))
    starting, ending, steps = np.broadcast_arrays(*(part.reshape(-1) for part in parts))
    if not steps.all():
        raise InvalidArgumentError("Requires delta != 0")
    rows = [np.arange(*row).astype(wanted) for row in zip(starting, ending, steps, strict=True)]
    return ps.RaggedTensor.stack(rows, as_dtype(row_splits_dtype).dtype) if rows else ps.RaggedTensor(
        np.empty(0, wanted), np.zeros(1, np.int64))  # fmt: skip


@op("ragged.boolean_mask")
def boolean_mask(data: Any, mask: Any) -> Any:
    """Return the values where the mask is True, in their rows."""
    rows, kept = array_of(data), array_of(mask)
    if not isinstance(rows, ps.RaggedTensor):
        rows = ps.RaggedTensor.stack(list(whole(rows)))
    if not isinstance(kept, ps.RaggedTensor):
        kept = ps.RaggedTensor.stack(list(whole(kept)))
    flat, chosen = rows.values, np.asarray(kept.values, bool)
    lengths = [int(part.sum()) for part in np.split(chosen, kept.row_splits[1:-1])] if len(kept) else []
    return ps.RaggedTensor.from_row_lengths(np.asarray(flat)[chosen], lengths)


@known
def map_flat_values(op: Any, *args: Any, **kwargs: Any) -> Any:
    """Apply `op` to the flat values of ragged tensors, and keep their rows."""
    ragged = next(arg for arg in (*args, *kwargs.values()) if isinstance(arg, ps.RaggedTensor))
    flat = [arg.flat_values if isinstance(arg, ps.RaggedTensor) else arg for arg in args]
    named = {key: arg.flat_values if isinstance(arg, ps.RaggedTensor) else arg for key, arg in kwargs.items()}
    return raised(ragged).with_flat_values(lowered(op(*flat, **named)))


__getattr__ = missing_in("tf.ragged", globals())
