"""Parsing a block of records at once, straight from the buffer they were read into."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.block.tensors import RaggedTensor
from penstock.compiled import Compiled
from penstock.errors import Context, InvalidArgumentError, PenstockError, annotate
from penstock.io.assemble import partitioned
from penstock.io.columns import BytesValues, DenseValues, FlatValues, ParsedColumn, PartitionedValues
from penstock.io.expected import Expected, expect
from penstock.io.expected import Output as Wanted
from penstock.io.features import Feature, FixedLenFeature, RaggedFeature
from penstock.io.plain import parse_plain
from penstock.io.values import BYTES, FLOAT

if TYPE_CHECKING:
    from penstock.io.tables import Output, Tables


_KERNEL = Compiled("penstock.io.kernels.example")


def parse_columns(
    buffer: np.ndarray, starts: np.ndarray, lengths: np.ndarray, features: Mapping[str, Feature] | Expected
) -> dict[str, ParsedColumn]:
    """The features of the records `buffer[starts[i] : starts[i] + lengths[i]]`, one column for each.

    `buffer` is uint8, `starts` and `lengths` are int64 (rows,). Numbers are copied out of the buffer, byte strings stay
    in it. One call of a compiled function does the work and does not hold the GIL; the result is that of
    `parse_single_example` on every record.

    >>> from penstock.io.example import encode_example
    >>> from penstock.io.features import FixedLenFeature
    >>> record = np.frombuffer(encode_example({"label": 3}), np.uint8)
    >>> spec = {"label": FixedLenFeature((), np.int64)}
    >>> parse_columns(record, np.array([0, 0]), np.array([len(record)] * 2), spec)["label"].array
    array([3, 3])

    Raises what `parse_single_example` raises for the first record that is not as described, with its index as the
    error's `context.element`.
    """
    expected = features if isinstance(features, Expected) else expect(features)
    buffer = _readable(buffer)
    starts, lengths = np.ascontiguousarray(starts, np.int64), np.ascontiguousarray(lengths, np.int64)
    if starts.ndim != 1 or starts.shape != lengths.shape:
        message = f"starts and lengths must be vectors of one length, got shapes {starts.shape} and {lengths.shape}."
        raise InvalidArgumentError(message)
    if _KERNEL.ready() is None and all(isinstance(wanted.feature, FixedLenFeature) for wanted in expected.outputs):
        return _plain(buffer, starts, lengths, expected)
    tables, output = _run(buffer, starts, lengths, expected)
    return {wanted.name: _column(wanted, expected, output, buffer, tables) for wanted in expected.outputs}


def _plain(buffer: np.ndarray, starts: np.ndarray, lengths: np.ndarray, expected: Expected) -> dict[str, ParsedColumn]:
    """Record by record, while the kernel is being compiled."""
    rows = []
    for row, (start, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True)):
        try:
            rows.append(parse_plain(buffer[start : start + length].tobytes(), expected))
        except PenstockError as error:
            annotate(error, Context(element=row))
            raise
    found: dict[str, ParsedColumn] = {}
    for wanted in expected.outputs:
        feature = wanted.feature
        assert isinstance(feature, FixedLenFeature)
        values = [row[wanted.name] for row in rows]
        shape = (len(rows), *feature.shape)
        if feature.dtype is bytes:
            strings = [item for value in values for item in np.asarray(value, object).reshape(-1).tolist()]
            sizes = np.fromiter(map(len, strings), np.int64, len(strings)).reshape(shape)
            ends = np.cumsum(sizes.reshape(-1)).reshape(shape)
            found[wanted.name] = BytesValues((np.frombuffer(b"".join(strings), np.uint8),), ends - sizes, sizes)
        else:
            found[wanted.name] = DenseValues(np.array(values, feature.dtype).reshape(shape))
    return found


def _readable(buffer: np.ndarray) -> np.ndarray:
    """The buffer as a plain array that nobody writes to through it; the same object where it is one already."""
    if buffer.dtype != np.uint8 or buffer.ndim != 1 or not buffer.flags.c_contiguous:
        message = f"buffer must be a contiguous uint8 vector, got {buffer.dtype} of shape {buffer.shape}."
        raise InvalidArgumentError(message)
    if type(buffer) is np.ndarray and not buffer.flags.writeable:
        return buffer
    view = buffer.view(np.ndarray)
    view.setflags(write=False)
    return view


def _run(buffer: np.ndarray, starts: np.ndarray, lengths: np.ndarray, expected: Expected) -> tuple[Tables, Output]:
    kernel = _KERNEL.get()
    from penstock.io.tables import Output, tables_of

    tables = tables_of(expected)
    output = Output(tables, len(starts))
    order = np.full(kernel.REMEMBERED, -1, np.int64)
    spans = np.empty((len(expected.entries), 2), np.int64)
    row = 0
    while True:
        row, status, entry, needed = kernel.parse(
            buffer,
            starts,
            lengths,
            row,
            output.table,
            tables.words,
            tables.keys,
            tables.places,
            tables.int_defaults,
            tables.float_defaults,
            output.splits,
            output.ints,
            output.floats.view(np.uint32),
            output.starts,
            output.lengths,
            order,
            spans,
        )
        if status == kernel.DONE:
            break
        if status == kernel.REJECTED:
            raise _rejected(buffer, int(starts[row]), int(lengths[row]), row, expected)
        output.grow(entry, needed)
    if len(output.splits) and output.rows:
        for k, known in enumerate(tables.density):
            if known:
                tables.density[k] = max(known, output.count(k) / output.rows)
    return tables, output


def _rejected(buffer: np.ndarray, start: int, length: int, row: int, expected: Expected) -> PenstockError:
    """The error for a record the kernel refused: that of the plain parser, which refuses the same ones."""
    if start < 0 or length < 0 or start + length > len(buffer):
        message = f"Record {row} is said to be bytes {start} to {start + length} of a buffer of {len(buffer)}."
        return InvalidArgumentError(message)
    try:
        parse_plain(buffer[start : start + length].tobytes(), expected)
    except PenstockError as error:
        annotate(error, Context(element=row))
        return error
    message = f"the compiled parser refuses record {row}, the plain one does not"
    raise AssertionError(message)


def _column(wanted: Wanted, expected: Expected, output: Output, buffer: np.ndarray, tables: Tables) -> ParsedColumn:
    feature = wanted.feature
    values = _values(wanted.entry, expected, output, buffer, tables)
    if isinstance(feature, FixedLenFeature):
        shape = (output.rows, *feature.shape)
        if isinstance(values, np.ndarray):
            return DenseValues(values.reshape(shape))
        which = None if values.which is None else values.which.reshape(shape)
        return BytesValues(values.buffers, values.starts.reshape(shape), values.lengths.reshape(shape), which)
    flat = FlatValues(feature, values, _splits(wanted.entry, output))
    if isinstance(feature, RaggedFeature) and feature.partitions:
        return _partition(wanted, feature, flat, output)
    return flat


def _values(
    entry: int, expected: Expected, output: Output, buffer: np.ndarray, tables: Tables
) -> np.ndarray | BytesValues:
    kind = expected.entries[entry].kind
    if kind != BYTES:
        return output.part(output.floats if kind == FLOAT else output.ints, entry)
    starts, lengths = output.part(output.starts, entry), output.part(output.lengths, entry)
    defaults = tables.bytes_defaults[entry]
    if not defaults or not (missing := starts < 0).any():
        return BytesValues((buffer,), starts, lengths)
    return _with_defaults(buffer, starts, lengths, missing, defaults)


def _with_defaults(
    buffer: np.ndarray, starts: np.ndarray, lengths: np.ndarray, missing: np.ndarray, defaults: list[bytes]
) -> BytesValues:
    """Point the places the kernel marked as missing at the default strings."""
    sizes = np.array([len(item) for item in defaults], np.int64)
    which_default = lengths[missing]
    lengths[missing] = sizes[which_default]
    starts[missing] = (np.cumsum(sizes) - sizes)[which_default]
    if not sizes.any():  # empty strings are anywhere, also in the records' buffer
        starts[missing] = 0
        return BytesValues((buffer,), starts, lengths)
    joined = np.frombuffer(b"".join(defaults), np.uint8)
    return BytesValues((buffer, joined), starts, lengths, missing.astype(np.int32))


def _splits(entry: int, output: Output) -> np.ndarray:
    from penstock.io.kernels.example import SPLITS

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
