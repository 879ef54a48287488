"""From the values of a feature to the result a user sees, for one example."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.block.tensors import RaggedTensor, SparseTensor
from penstock.errors import InvalidArgumentError
from penstock.io.expected import Entry, Expected, Output
from penstock.io.features import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    Partition,
    RaggedFeature,
    RowLengths,
    RowLimits,
    RowSplits,
    RowStarts,
    UniformRowLength,
)
from penstock.io.values import BYTES, FLOAT

_NUMPY = {BYTES: np.dtype(object), FLOAT: np.dtype(np.float32)}
_INT64 = np.dtype(np.int64)
_MOST_ROWS = 1 << 24  # that row ids may imply: a damaged number must not allocate by its size


def as_vector(values: Any, kind: int) -> np.ndarray:
    """Values of one kind as a vector: int64, float32, or object with `bytes`."""
    if isinstance(values, np.ndarray):
        return values
    if kind != BYTES:
        return np.array(values, _NUMPY.get(kind, _INT64))
    found = np.empty(len(values), object)
    found[:] = values
    return found


def assemble(output: Output, expected: Expected, values: Sequence[Any]) -> Any:
    """The result for one example; `values` holds the values of every entry.

    Raises InvalidArgumentError where the parts of a ragged feature do not fit together.
    """
    feature = output.feature
    entry = expected.entries[output.entry]
    found = values[output.entry]
    if isinstance(feature, FixedLenFeature) and not feature.shape:
        return found[0] if entry.kind == BYTES else _scalar(found, entry)
    vector = as_vector(found, entry.kind)
    if not vector.flags.writeable:  # a default, or a view of the record: the user gets an array of their own
        vector = vector.copy()
    if isinstance(feature, FixedLenFeature):
        return vector.reshape(feature.shape)
    if isinstance(feature, FixedLenSequenceFeature):
        return vector.reshape(-1, *feature.shape)
    if isinstance(feature, RaggedFeature):
        parts = [None if i is None else as_vector(values[i], expected.entries[i].kind) for i in output.partitions]
        return partitioned(vector, feature, parts, output.name)
    return sparse_row(vector)


def _scalar(found: Any, entry: Entry) -> Any:
    return found[0] if isinstance(found, np.ndarray) else _NUMPY.get(entry.kind, _INT64).type(found[0])


def sparse_row(vector: np.ndarray) -> SparseTensor:
    """The values of one example as a sparse vector without gaps."""
    return SparseTensor(np.arange(len(vector))[:, None], vector, np.array([len(vector)]))


def partitioned(
    vector: np.ndarray, feature: RaggedFeature, parts: Sequence[np.ndarray | None], name: str
) -> np.ndarray | RaggedTensor:
    """Divide `vector` by the partitions, the innermost first."""
    found: np.ndarray | RaggedTensor = vector
    for partition, part in zip(reversed(feature.partitions), reversed(parts), strict=True):
        if isinstance(partition, UniformRowLength):
            found = _uniform(found, partition.length, feature, name)
            continue
        assert part is not None
        splits = _splits(partition, part, len(found))
        try:
            divided = RaggedTensor(found, splits)  # checked before a cast could wrap a wild number into a fitting one
            found = RaggedTensor(divided.values, splits.astype(feature.row_splits_dtype))
        except InvalidArgumentError as error:
            message = f"Feature {name!r}: {partition} does not divide its {len(found)} values. {error.message}"
            raise InvalidArgumentError(message) from None
    return found


def _uniform(
    values: np.ndarray | RaggedTensor, length: int, feature: RaggedFeature, name: str
) -> np.ndarray | RaggedTensor:
    if len(values) % length:
        message = f"Feature {name!r}: {len(values)} values cannot be divided into rows of {length}."
        raise InvalidArgumentError(message)
    if isinstance(values, RaggedTensor):
        return RaggedTensor(values, np.arange(0, len(values) + 1, length).astype(feature.row_splits_dtype))
    return values.reshape(-1, length, *values.shape[1:])


def _splits(partition: Partition, part: np.ndarray, count: int) -> np.ndarray:
    """Row splits from any way of giving them; whether they fit is checked by the caller."""
    zero = np.zeros(1, np.int64)
    if isinstance(partition, RowSplits):
        return part if len(part) else zero
    if isinstance(partition, RowLengths):
        return np.concatenate([zero, np.cumsum(part)])
    if isinstance(partition, RowStarts):
        return np.concatenate([part, [count]])
    if isinstance(partition, RowLimits):
        return np.concatenate([zero, part])
    return _splits_from_row_ids(part, count)


def _splits_from_row_ids(rows: np.ndarray, count: int) -> np.ndarray:
    if not len(rows):
        return np.zeros(1, np.int64)
    if len(rows) != count or (rows[1:] < rows[:-1]).any() or rows[0] < 0 or rows[-1] > _MOST_ROWS:
        return np.array([-1])  # not a division: refused with the caller's words
    return np.searchsorted(rows, np.arange(int(rows[-1]) + 2)).astype(np.int64)
