"""Parsing of serialized examples: one example, a batch, or a block of records in the buffer of a reader.

A function that parses each element runs over whole Blocks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.block.column import BytesColumn, Column, DenseColumn, ListColumn, column_of, used_numbers
from penstock.block.leaf import as_leaf
from penstock.block.spec import LeafSpec, RaggedTensorSpec, SparseTensorSpec, TensorSpec
from penstock.errors import Context, InvalidArgumentError, InvalidTypeError, PenstockError, annotate
from penstock.io.columns import BytesValues, DenseValues, ParsedColumn, outside, plain_columns
from penstock.io.example import as_message
from penstock.io.expected import Expected, expect
from penstock.io.features import Feature, FixedLenFeature, FixedLenSequenceFeature, VarLenFeature
from penstock.io.kernels.example import NO_MEMORY, NO_ROOM
from penstock.io.plain import parse_plain
from penstock.native.library import Kernels
from penstock.trace.graph import Allocate, NotTraceable, Primitive
from penstock.trace.lift import byte_string, lifted_by
from penstock.trace.tracer import Tracer, bind

if TYPE_CHECKING:
    from penstock.io.tables import KernelOutput, Tables

_KERNEL = Kernels("penstock.io.kernels.example.parse")


def parse_columns(
    buffer: np.ndarray, starts: np.ndarray, lengths: np.ndarray, features: Mapping[str, Feature] | Expected
) -> dict[str, ParsedColumn]:
    """Parse serialized Examples that lie in one buffer, one column for each feature.

    Numbers are copied from the buffer. Byte strings stay in it. One compiled call does the work without the GIL. The
    values are those of `parse_single_example` for every record.

    Args:
        buffer: uint8 vector of all records.
        starts: Start of each record in the buffer, int64 of shape (rows,).
        lengths: Length of each record, int64 of shape (rows,).
        features: Dict from names to feature specifications.

    Returns:
        A dict from names to `DenseValues`, `BytesValues`, `FlatValues` or `PartitionedValues`.

    Raises:
        InvalidArgumentError: If a feature is missing, or has another type or number of values. `error.context.element`
            is the index of the first such record.
        DataLossError: If a record is not an Example.

    Example:
        >>> from penstock.io.example import encode_example
        >>> from penstock.io.features import FixedLenFeature
        >>> record = np.frombuffer(encode_example({"label": 3}), np.uint8)
        >>> spec = {"label": FixedLenFeature((), np.int64)}
        >>> parse_columns(record, np.array([0, 0]), np.array([len(record)] * 2), spec)["label"].array
        array([3, 3])
    """
    expected = features if isinstance(features, Expected) else expect(features)
    starts, lengths = np.asarray(starts), np.asarray(lengths)
    if starts.ndim != 1 or starts.shape != lengths.shape:
        message = f"starts and lengths must be vectors of one length, got shapes {starts.shape} and {lengths.shape}."
        raise InvalidArgumentError(message)
    return parse_strings((buffer,), None, starts, lengths, expected)


def parse_strings(
    buffers: tuple[np.ndarray, ...],
    which: np.ndarray | None,
    starts: np.ndarray,
    lengths: np.ndarray,
    expected: Expected,
) -> dict[str, ParsedColumn]:
    """Parse records in several buffers, like `parse_columns`.

    Record i is in buffer `which[i]`, or in the first for None.

    Byte strings with a fixed description stay in the buffers and keep them alive. If the records are spread over more
    than eight buffers and more than one buffer per four records, they are copied into one buffer.
    """
    starts, lengths = np.ascontiguousarray(starts, np.int64), np.ascontiguousarray(lengths, np.int64)
    if which is not None and _scattered(which, expected):
        buffer, starts, lengths = BytesColumn(buffers, starts, lengths, which).packed()
        buffers, which = (buffer,), None
    buffers = tuple(map(_readable, buffers))
    kernel = _KERNEL.loaded()
    if kernel is None:
        return plain_columns(buffers, which, starts, lengths, expected)
    from penstock.io.columns import columns_of
    from penstock.io.tables import KernelOutput, tables_of

    tables = tables_of(expected)
    output = KernelOutput(tables, len(starts))
    addresses = np.array([buffer.__array_interface__["data"][0] for buffer in buffers], np.int64)
    sizes = np.array([buffer.size for buffer in buffers], np.int64)
    numbers = np.zeros(len(starts), np.int32) if which is None else np.ascontiguousarray(which, np.int32)
    row = _run(kernel, (addresses, sizes, numbers, starts, lengths), tables, output)
    if row < len(starts):
        number = 0 if which is None else int(which[row])
        raise _rejected(buffers[number], int(starts[row]), int(lengths[row]), row, expected)
    _learn(tables, output)
    return columns_of(expected, tables, output, buffers, which)


def _scattered(which: np.ndarray, expected: Expected) -> bool:
    """Return True if byte strings stay in the records, and the records are spread over many buffers."""
    if not any(isinstance(one.feature, FixedLenFeature) and one.feature.dtype is bytes for one in expected.outputs):
        return False
    return len(used_numbers(which)) > max(8, len(which) // 4)


def _readable(buffer: np.ndarray) -> np.ndarray:
    """Return the buffer as a plain read-only array. If it is one already, return the same object."""
    if buffer.dtype != np.uint8 or buffer.ndim != 1 or not buffer.flags.c_contiguous:
        message = f"buffer must be a contiguous uint8 vector, got {buffer.dtype} of shape {buffer.shape}."
        raise InvalidArgumentError(message)
    if type(buffer) is np.ndarray and not buffer.flags.writeable:
        return buffer
    view = buffer.view(np.ndarray)
    view.setflags(write=False)
    return view


def _run(kernel: ModuleType, records: Sequence[np.ndarray], tables: Tables, output: KernelOutput) -> int:
    """Parse the records into `output`. Return the number of records before the first invalid record."""
    memory, notes = NO_MEMORY.copy(), tables.no_notes.copy()
    defaults = tables.int_defaults, tables.float_defaults
    done = 0
    while True:
        values = output.ints, output.floats.view(np.uint32), output.starts, output.lengths
        done, status, entry, needed = kernel.parse(
            *(*records, done, output.table, tables.keys, tables.places, *defaults),
            *(output.splits, *values, memory, notes),
        )
        if status != NO_ROOM:
            return int(done)
        output.grow(entry, needed)


def _learn(tables: Tables, output: KernelOutput) -> None:
    """Remember the number of values in lists, to guess the memory of the next block."""
    if tables.lists and output.rows:
        for k, known in enumerate(tables.density):
            if known:
                tables.density[k] = max(known, output.count(k) / output.rows)


def _rejected(buffer: np.ndarray, start: int, length: int, row: int, expected: Expected) -> PenstockError:
    """Return the error for a record that the kernel has refused. The plain parser raises it."""
    if start < 0 or length < 0 or start + length > len(buffer):
        return outside(row, start, length, buffer)
    try:
        parse_plain(buffer[start : start + length].tobytes(), expected)
    except PenstockError as error:
        annotate(error, Context(element=row))
        return error
    message = f"the compiled parser refuses record {row}, the plain one does not"
    raise AssertionError(message)


def check_batched(features: Mapping[str, Feature]) -> Expected:
    """Return `expect(features)`, after checks that apply only to batches."""
    expected = expect(features)
    for output in expected.outputs:
        if isinstance(output.feature, FixedLenSequenceFeature) and not output.feature.allow_missing:
            message = f"FixedLenSequenceFeature {output.name!r} needs allow_missing=True in a batch."
            hint = "A batch is padded to its longest example, and a missing feature is one of length 0."
            raise InvalidArgumentError(message, hint=hint)
    return expected


def single(serialized: Tracer, features: Mapping[str, Feature]) -> dict[str, Tracer]:
    """Return a tracer for `parse_single_example`."""
    expected = expect(features)
    found = bind(PARSE_SINGLE, [serialized], {"expected": expected})
    return {output.name: value for output, value in zip(expected.outputs, found, strict=True)}


def batch(serialized: Tracer, features: Mapping[str, Feature]) -> dict[str, Tracer]:
    """Return a tracer for `parse_example`."""
    expected = check_batched(features)
    found = bind(PARSE_BATCH, [serialized], {"expected": expected})
    return {output.name: value for output, value in zip(expected.outputs, found, strict=True)}


def _spec_of(feature: Feature) -> TensorSpec | SparseTensorSpec | RaggedTensorSpec:
    """Return the spec of a feature in one example."""
    if isinstance(feature, FixedLenFeature):
        return TensorSpec(feature.shape, feature.dtype)
    if isinstance(feature, FixedLenSequenceFeature):
        return TensorSpec((None, *feature.shape), feature.dtype)
    if isinstance(feature, VarLenFeature):
        return SparseTensorSpec((None,), feature.dtype)
    return RaggedTensorSpec(None if feature.partitions else (None,), feature.dtype)


def _single_rule(specs: Sequence[Any], params: Mapping[str, Any]) -> list[LeafSpec]:
    byte_string(specs[0])
    return [_spec_of(output.feature).as_value() for output in params["expected"].outputs]


def _single_run(
    operands: Sequence[Any], params: Mapping[str, Any], rows: int, allocate: Allocate | None
) -> list[Column]:
    column = operands[0] if isinstance(operands[0], BytesColumn) else BytesColumn.from_values(operands[0].values())
    return [_column(values, (rows,)) for values in _parsed(column, params["expected"]).values()]


def _parsed(column: BytesColumn, expected: Expected) -> dict[str, ParsedColumn]:
    which = None if column.which is None else column.which.reshape(-1)
    buffers = column.buffers or (np.empty(0, np.uint8),)
    return parse_strings(buffers, which, column.starts.reshape(-1), column.lengths.reshape(-1), expected)


PARSE_SINGLE = Primitive("io.parse_single_example", _single_rule, _single_run, fresh=True)


def _batch_rule(specs: Sequence[Any], params: Mapping[str, Any]) -> list[LeafSpec]:
    spec = specs[0]
    if not isinstance(spec, TensorSpec) or spec.dtype is not bytes or len(spec.shape) != 1:
        msg = "parse_example of what is not a vector of byte strings"
        raise NotTraceable(msg)
    return [_spec_of(output.feature).batched(spec.shape[0]) for output in params["expected"].outputs]


def _batch_run(
    operands: Sequence[Any], params: Mapping[str, Any], rows: int, allocate: Allocate | None
) -> list[Column]:
    column, expected = operands[0], params["expected"]
    if isinstance(column, BytesColumn) and _all_dense(expected):
        return [_column(values, column.starts.shape) for values in _parsed(column, expected).values()]
    batches = []
    for row in range(rows):
        parsed = _parsed(_batch(column, row), expected)
        batches.append([as_leaf(values.batched()) for values in parsed.values()])
    return [column_of(list(values)) for values in zip(*batches, strict=True)]


def _batch(column: Column, row: int) -> BytesColumn:
    """Return the byte strings of one batch. A ListColumn has batches of different sizes."""
    if isinstance(column, BytesColumn):
        return column.slice(row, row + 1)
    assert isinstance(column, ListColumn)
    return BytesColumn.from_values(column.items[row].tolist())


PARSE_BATCH = Primitive("io.parse_example", _batch_rule, _batch_run, fresh=True)


def _all_dense(expected: Expected) -> bool:
    return all(isinstance(output.feature, FixedLenFeature) for output in expected.outputs)


def _column(values: ParsedColumn, rows: tuple[int, ...]) -> Column:
    """Return a column of `rows` elements. With two extents, its elements are batches."""
    if isinstance(values, DenseValues):
        return DenseColumn(values.array.reshape(*rows, *values.array.shape[1:]))
    if isinstance(values, BytesValues):
        shape = (*rows, *values.starts.shape[1:])
        which = None if values.which is None else np.asarray(values.which, np.int32).reshape(shape)
        return BytesColumn(values.buffers, values.starts.reshape(shape), values.lengths.reshape(shape), which)
    return column_of([as_leaf(value) for value in values.singles()])


@lifted_by(batch)
def parse_example(serialized: Sequence[bytes] | np.ndarray, features: Mapping[str, Feature]) -> dict[str, Any]:
    """Parse a batch of serialized `tf.train.Example` messages.

    Args:
        serialized: Vector of byte strings.
        features: Dict from names to feature specifications.

    Returns:
        A dict from names to values. A `FixedLenFeature` becomes an array of shape (batch, *shape), a `VarLenFeature` a
        SparseTensor, a `FixedLenSequenceFeature` an array of shape (batch, steps, *shape) that is padded to the longest
        example, and a `RaggedFeature` a RaggedTensor. Byte strings are in object arrays.

    Raises:
        InvalidArgumentError: If a feature without a default value is missing, or has another type or number of values.
            `error.context.element` is the position in the batch.
        DataLossError: If a byte string is not an Example.

    Example:
        >>> from penstock.io.example import encode_example
        >>> from penstock.io.features import FixedLenFeature
        >>> records = [encode_example({"label": i}) for i in range(3)]
        >>> parse_example(records, {"label": FixedLenFeature((), np.int64)})
        {'label': array([0, 1, 2])}
    """
    expected = check_batched(features)
    buffer, starts, lengths = joined(serialized)
    columns = parse_columns(buffer, starts, lengths, expected)
    return {name: column.batched() for name, column in columns.items()}


def joined(serialized: Sequence[bytes] | np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (buffer, starts, lengths) of a vector of byte strings."""
    if isinstance(serialized, (bytes, str)) or (isinstance(serialized, np.ndarray) and serialized.ndim != 1):
        shape = "a single one" if isinstance(serialized, (bytes, str)) else f"shape {serialized.shape}"
        message = f"parse_example takes a vector of serialized examples, got {shape}."
        raise InvalidTypeError(message, hint="Use parse_single_example for one, or batch first.")
    records = serialized.tolist() if isinstance(serialized, np.ndarray) else list(serialized)
    for record in records:
        if not isinstance(record, (bytes, bytearray, memoryview)):
            message = f"A serialized example is bytes, got {type(record).__name__}."
            raise InvalidTypeError(message)
    lengths = np.fromiter(map(len, records), np.int64, len(records))
    return np.frombuffer(b"".join(records), np.uint8), np.cumsum(lengths) - lengths, lengths


@lifted_by(single)
def parse_single_example(serialized: bytes, features: Mapping[str, Feature]) -> dict[str, Any]:
    """Parse one serialized `tf.train.Example` message.

    Features without a specification are ignored. If two features have the same name, the last one is parsed.

    Args:
        serialized: The serialized Example.
        features: Dict from names to feature specifications.

    Returns:
        A dict from names to values. A `FixedLenFeature` of shape () becomes a numpy scalar or `bytes`, any other an
        array of its shape, a `VarLenFeature` a SparseTensor, a `FixedLenSequenceFeature` an array of shape (steps,
        *shape), and a `RaggedFeature` a vector or, with partitions, a RaggedTensor.

    Raises:
        InvalidArgumentError: If a feature without a default value is missing, or has another type or number of values.
        DataLossError: If `serialized` is not an Example.

    Example:
        >>> import numpy as np
        >>> from penstock.io.example import encode_example
        >>> from penstock.io.features import FixedLenFeature
        >>> record = encode_example({"label": 3, "size": [2.0, 0.5]})
        >>> features = {"label": FixedLenFeature((), np.int64), "size": FixedLenFeature(2, np.float32)}
        >>> parse_single_example(record, features)
        {'label': np.int64(3), 'size': array([2. , 0.5], dtype=float32)}
    """
    return parse_plain(as_message(serialized), expect(features))
