"""What the compiled parser wrote, as one column for each feature."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.block.tensors import RaggedTensor
from penstock.errors import Context, PenstockError, annotate
from penstock.io.assemble import partitioned
from penstock.io.columns import BytesValues, DenseValues, FlatValues, ParsedColumn, PartitionedValues
from penstock.io.expected import ANY_LENGTH, Expected
from penstock.io.expected import Output as Wanted
from penstock.io.features import FixedLenFeature, RaggedFeature
from penstock.io.kernels.example.table import SIZE, SPLITS
from penstock.io.tables import Output, Tables
from penstock.io.values import BYTES, FLOAT

Buffers = tuple[np.ndarray, ...]


def columns_of(
    expected: Expected, tables: Tables, output: Output, buffers: Buffers, which: np.ndarray | None
) -> dict[str, ParsedColumn]:
    """The columns; byte strings stay in the records' buffers, of which row i has number `which[i]`."""
    found: dict[str, ParsedColumn] = {}
    rows, bases, ints, floats = output.rows, output.bases, output.ints, output.floats
    for wanted, numbers in zip(expected.outputs, tables.numbers, strict=True):
        if numbers is None:
            found[wanted.name] = _column(wanted, expected, output, buffers, which, tables)
            continue
        entry, is_float, size, shape = numbers
        base = bases[entry]
        array = (floats if is_float else ints)[base : base + rows * size]
        found[wanted.name] = DenseValues(array if shape is None else array.reshape(rows, *shape))
    return found


def _column(
    wanted: Wanted, expected: Expected, output: Output, buffers: Buffers, which: np.ndarray | None, tables: Tables
) -> ParsedColumn:
    feature = wanted.feature
    values = _values(wanted.entry, expected, output, buffers, which, tables)
    if isinstance(feature, FixedLenFeature):
        assert isinstance(values, BytesValues)
        shape = (output.rows, *feature.shape)
        numbers = None if values.which is None else values.which.reshape(shape)
        return BytesValues(values.buffers, values.starts.reshape(shape), values.lengths.reshape(shape), numbers)
    flat = FlatValues(feature, values, _splits(wanted.entry, output))
    if isinstance(feature, RaggedFeature) and feature.partitions:
        return _partition(wanted, feature, flat, output)
    return flat


def _values(
    entry: int, expected: Expected, output: Output, buffers: Buffers, which: np.ndarray | None, tables: Tables
) -> np.ndarray | BytesValues:
    kind = expected.entries[entry].kind
    if kind != BYTES:
        return output.part(output.floats if kind == FLOAT else output.ints, entry)
    starts, lengths = output.part(output.starts, entry), output.part(output.lengths, entry)
    numbers = None if which is None else _numbers(which, entry, output)
    defaults = tables.bytes_defaults[entry]
    if not defaults or not (missing := starts < 0).any():
        return BytesValues(buffers, starts, lengths, numbers)
    return _with_defaults(BytesValues(buffers, starts, lengths, numbers), missing, defaults)


def _numbers(which: np.ndarray, entry: int, output: Output) -> np.ndarray:
    """The number of the buffer of every byte string of an entry."""
    size = output.table[entry, SIZE]
    return np.repeat(which, np.diff(_splits(entry, output)) if size == ANY_LENGTH else size)


def _with_defaults(values: BytesValues, missing: np.ndarray, defaults: list[bytes]) -> BytesValues:
    """Point the places the kernel marked as missing at the default strings."""
    starts, lengths = values.starts, values.lengths
    sizes = np.array([len(item) for item in defaults], np.int64)
    which_default = lengths[missing]
    lengths[missing] = sizes[which_default]
    starts[missing] = (np.cumsum(sizes) - sizes)[which_default]
    if not sizes.any():  # empty strings are anywhere, also in the records' buffers
        starts[missing] = 0
        return values
    which = np.zeros(len(starts), np.int32) if values.which is None else values.which
    which[missing] = len(values.buffers)
    joined = np.frombuffer(b"".join(defaults), np.uint8)
    return BytesValues((*values.buffers, joined), starts, lengths, which)


def _splits(entry: int, output: Output) -> np.ndarray:
    splits: np.ndarray = output.splits[output.table[entry, SPLITS]]
    return splits


def _partition(wanted: Wanted, feature: RaggedFeature, flat: FlatValues, output: Output) -> PartitionedValues:
    parts = [
        None if entry is None else (output.part(output.ints, entry), _splits(entry, output))
        for entry in wanted.partitions
    ]
    vector, splits = flat.vector(), flat.row_splits

    def divided(row: int) -> np.ndarray | RaggedTensor:
        own = [None if part is None else part[0][part[1][row] : part[1][row + 1]] for part in parts]
        return partitioned(vector[splits[row] : splits[row + 1]], feature, own, wanted.name)

    rows: list[Any] = []
    for row in range(output.rows):
        try:
            rows.append(divided(row))
        except PenstockError as error:
            annotate(error, Context(element=row))
            raise
    nothing = [None if part is None else part[0][:0] for part in parts]
    return PartitionedValues(feature, rows, partitioned(vector[:0], feature, nothing, wanted.name))
