"""A block of records parsed one by one, while the kernel is being compiled: the columns that it would give."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.block.tensors import SparseTensor
from penstock.errors import Context, InvalidArgumentError, PenstockError, annotate
from penstock.io.assemble import as_vector, partitioned
from penstock.io.columns import BytesValues, DenseValues, FlatValues, ParsedColumn, PartitionedValues
from penstock.io.expected import Expected
from penstock.io.features import FixedLenFeature, RaggedFeature
from penstock.io.plain import parse_plain
from penstock.io.values import BYTES


def plain_columns(
    buffers: tuple[np.ndarray, ...],
    which: np.ndarray | None,
    starts: np.ndarray,
    lengths: np.ndarray,
    expected: Expected,
) -> dict[str, ParsedColumn]:
    """What `parse_strings` gives, in plain Python."""
    rows = []
    for row, (start, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True)):
        buffer = buffers[0 if which is None else int(which[row])]
        if start < 0 or length < 0 or start + length > len(buffer):
            raise outside(row, start, length, buffer)
        try:
            rows.append(parse_plain(buffer[start : start + length].tobytes(), expected))
        except PenstockError as error:
            annotate(error, Context(element=row))
            raise
    found: dict[str, ParsedColumn] = {}
    for wanted in expected.outputs:
        feature, values = wanted.feature, [row[wanted.name] for row in rows]
        kind = expected.entries[wanted.entry].kind
        if isinstance(feature, FixedLenFeature):
            found[wanted.name] = _fixed(feature, values)
        elif isinstance(feature, RaggedFeature) and feature.partitions:
            nothing = [None if part is None else np.empty(0, np.int64) for part in wanted.partitions]
            empty = partitioned(as_vector([], kind), feature, nothing, wanted.name)
            found[wanted.name] = PartitionedValues(feature, values, empty)
        else:
            vectors = [value.values if isinstance(value, SparseTensor) else value.reshape(-1) for value in values]
            splits = np.cumsum([0, *map(len, vectors)])
            flat = np.concatenate([as_vector([], kind), *vectors])
            found[wanted.name] = FlatValues(feature, _strings(flat, flat.shape) if kind == BYTES else flat, splits)
    return found


def outside(row: int, start: int, length: int, buffer: np.ndarray) -> InvalidArgumentError:
    """The error for a record that is not in its buffer."""
    message = f"Record {row} is said to be bytes {start} to {start + length} of a buffer of {len(buffer)}."
    return InvalidArgumentError(message)


def _fixed(feature: FixedLenFeature, values: list[Any]) -> DenseValues | BytesValues:
    shape = (len(values), *feature.shape)
    if feature.dtype is not bytes:
        return DenseValues(np.array(values, feature.dtype).reshape(shape))
    found = np.empty(shape, object)
    for i, value in enumerate(values):
        found[i] = value
    return _strings(found, shape)


def _strings(strings: np.ndarray, shape: tuple[int, ...]) -> BytesValues:
    flat = strings.reshape(-1).tolist()
    sizes = np.fromiter(map(len, flat), np.int64, len(flat))
    ends = np.cumsum(sizes)
    return BytesValues((np.frombuffer(b"".join(flat), np.uint8),), (ends - sizes).reshape(shape), sizes.reshape(shape))
