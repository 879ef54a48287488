"""The columns of a block of records, one for each feature.

The compiled parser writes them at once. Without it, the plain parser fills them record by record.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from penstock.block.tensors import RaggedTensor, SparseTensor
from penstock.errors import Context, InvalidArgumentError, PenstockError, annotate
from penstock.io.expected import ANY_LENGTH, Expected, Output, as_vector, partitioned, sparse_row
from penstock.io.features import FixedLenFeature, FixedLenSequenceFeature, RaggedFeature, VarLenFeature
from penstock.io.kernels.example import SIZE, SPLITS
from penstock.io.plain import parse_plain
from penstock.io.tables import KernelOutput, Tables
from penstock.io.values import BYTES, FLOAT


@dataclass(slots=True, eq=False)  # frozen instances take longer to create, and there are many
class DenseValues:
    """Numbers of a parsed `FixedLenFeature`.

    Attributes:
        array: int64 or float32 array of shape (rows, *shape).

    Example:
        >>> import numpy as np, penstock as ps
        >>> record = np.frombuffer(ps.io.encode_example({"x": [1, 2]}), np.uint8)
        >>> features = {"x": ps.io.FixedLenFeature((2,), np.int64)}
        >>> ps.io.parse_columns(record, np.array([0]), np.array([len(record)]), features)["x"].array
        array([[1, 2]])
    """

    array: np.ndarray

    def __len__(self) -> int:
        return len(self.array)

    def batched(self) -> np.ndarray:
        """Return the value of `parse_example`."""
        return self.array

    def singles(self) -> list[Any]:
        """Return the value of `parse_single_example` for each record."""
        return list(self.array)


@dataclass(frozen=True, slots=True, eq=False)
class BytesValues:
    """Byte strings of a parsed column, which stay in the buffers of the records.

    String `i` is `buffers[which[i]][starts[i] : starts[i] + lengths[i]]`.

    Attributes:
        buffers: The buffer of the records, and a second one with the default value if a record needs it.
        starts: Start of each string, int64 of shape (rows, *shape).
        lengths: Length of each string, int64 of shape (rows, *shape).
        which: Index of the buffer of each string, or None if there is one buffer.

    Example:
        >>> import numpy as np, penstock as ps
        >>> record = np.frombuffer(ps.io.encode_example({"x": b"ab"}), np.uint8)
        >>> features = {"x": ps.io.FixedLenFeature((), bytes)}
        >>> column = ps.io.parse_columns(record, np.array([0]), np.array([len(record)]), features)["x"]
        >>> column.lengths.tolist()
        [2]
    """

    buffers: tuple[np.ndarray, ...]
    starts: np.ndarray
    lengths: np.ndarray
    which: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.starts)

    def batched(self) -> np.ndarray:
        """Return the value of `parse_example`: an object array of `bytes`."""
        views = [buffer.data for buffer in self.buffers]
        flat = self.starts.reshape(-1)
        stops = (flat + self.lengths.reshape(-1)).tolist()
        which = [0] * len(stops) if self.which is None else self.which.reshape(-1).tolist()
        found = [bytes(views[w][a:b]) for w, a, b in zip(which, flat.tolist(), stops, strict=True)]
        return as_vector(found, BYTES).reshape(self.starts.shape)

    def singles(self) -> list[Any]:
        """Return the value of `parse_single_example` for each record."""
        strings = self.batched()
        return strings.tolist() if strings.ndim == 1 else list(strings)


@dataclass(frozen=True, slots=True, eq=False)
class FlatValues:
    """Values of a parsed feature of any length.

    Attributes:
        feature: The specification of the feature.
        values: int64 or float32 vector, or BytesValues, of the values of all rows.
        row_splits: int64 array of shape (rows + 1,). Row `i` has the values from `row_splits[i]` to `row_splits[i +
            1]`.

    Example:
        >>> import numpy as np, penstock as ps
        >>> record = np.frombuffer(ps.io.encode_example({"x": [1, 2]}), np.uint8)
        >>> features = {"x": ps.io.VarLenFeature(np.int64)}
        >>> column = ps.io.parse_columns(record, np.array([0]), np.array([len(record)]), features)["x"]
        >>> column.values.tolist(), column.row_splits.tolist()
        ([1, 2], [0, 2])
    """

    feature: VarLenFeature | RaggedFeature | FixedLenSequenceFeature
    values: np.ndarray | BytesValues
    row_splits: np.ndarray

    def __len__(self) -> int:
        return len(self.row_splits) - 1

    def vector(self) -> np.ndarray:
        """Return all values as a vector, with byte strings as `bytes`."""
        return self.values.batched() if isinstance(self.values, BytesValues) else self.values

    def batched(self) -> np.ndarray | SparseTensor | RaggedTensor:
        """Return the value of `parse_example`."""
        feature, vector = self.feature, self.vector()
        if isinstance(feature, RaggedFeature):
            return RaggedTensor(vector, self.row_splits.astype(feature.row_splits_dtype))
        lengths = np.diff(self.row_splits)
        if isinstance(feature, FixedLenSequenceFeature):
            steps = vector.reshape(-1, *feature.shape)
            splits = self.row_splits // (len(vector) // len(steps)) if len(steps) else self.row_splits
            return RaggedTensor(steps, splits).to_dense(feature.default_value)
        rows = np.repeat(np.arange(len(lengths)), lengths)
        places = np.arange(len(vector)) - np.repeat(self.row_splits[:-1], lengths)
        shape = np.array([len(lengths), lengths.max(initial=0)])
        return SparseTensor(np.stack([rows, places], axis=1), vector, shape)

    def singles(self) -> list[Any]:
        """Return the value of `parse_single_example` for each record."""
        vector = self.vector()
        rows = [vector[a:b] for a, b in pairwise(self.row_splits.tolist())]
        if isinstance(self.feature, RaggedFeature):
            return rows
        if isinstance(self.feature, FixedLenSequenceFeature):
            return [row.reshape(-1, *self.feature.shape) for row in rows]
        return [sparse_row(row) for row in rows]


@dataclass(frozen=True, slots=True, eq=False)
class PartitionedValues:
    """Values of a parsed `RaggedFeature` with partitions.

    Attributes:
        feature: The specification of the feature.
        rows: One array or RaggedTensor for each record.
        empty: An empty array or RaggedTensor of the same kind.

    Example:
        >>> import numpy as np, penstock as ps
        >>> feature = ps.io.RaggedFeature(np.int64, "x", partitions=[ps.io.RaggedFeature.RowLengths("lengths")])
        >>> record = np.frombuffer(ps.io.encode_example({"x": [1, 2, 3], "lengths": [2, 1]}), np.uint8)
        >>> ps.io.parse_columns(record, np.array([0]), np.array([len(record)]), {"x": feature})["x"].rows
        [RaggedTensor(values=array([1, 2, 3]), row_splits=array([0, 2, 3], dtype=int32))]
    """

    feature: RaggedFeature
    rows: list[np.ndarray | RaggedTensor]
    empty: np.ndarray | RaggedTensor

    def __len__(self) -> int:
        return len(self.rows)

    def batched(self) -> RaggedTensor:
        """Return the value of `parse_example`."""
        if self.rows:
            return RaggedTensor.stack(self.rows, self.feature.row_splits_dtype)
        return RaggedTensor(self.empty, np.zeros(1, self.feature.row_splits_dtype))

    def singles(self) -> list[Any]:
        """Return the value of `parse_single_example` for each record."""
        return list(self.rows)


ParsedColumn = DenseValues | BytesValues | FlatValues | PartitionedValues
"""Type of the columns that `parse_columns` returns."""


def plain_columns(
    buffers: tuple[np.ndarray, ...],
    which: np.ndarray | None,
    starts: np.ndarray,
    lengths: np.ndarray,
    expected: Expected,
) -> dict[str, ParsedColumn]:
    """Return the result of `parse_strings`, computed in plain Python."""
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
    """Return the error for a record outside of its buffer."""
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


Buffers = tuple[np.ndarray, ...]


def columns_of(
    expected: Expected, tables: Tables, output: KernelOutput, buffers: Buffers, which: np.ndarray | None
) -> dict[str, ParsedColumn]:
    """Return the columns. Byte strings stay in the records' buffers; row i is in buffer `which[i]`."""
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
    wanted: Output, expected: Expected, output: KernelOutput, buffers: Buffers, which: np.ndarray | None, tables: Tables
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
    entry: int, expected: Expected, output: KernelOutput, buffers: Buffers, which: np.ndarray | None, tables: Tables
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


def _numbers(which: np.ndarray, entry: int, output: KernelOutput) -> np.ndarray:
    """Return the buffer number of every byte string of an entry."""
    size = output.table[entry, SIZE]
    return np.repeat(which, np.diff(_splits(entry, output)) if size == ANY_LENGTH else size)


def _with_defaults(values: BytesValues, missing: np.ndarray, defaults: list[bytes]) -> BytesValues:
    """Set the positions that the kernel marked as missing to those of the default strings."""
    starts, lengths = values.starts, values.lengths
    sizes = np.array([len(item) for item in defaults], np.int64)
    which_default = lengths[missing]
    lengths[missing] = sizes[which_default]
    starts[missing] = (np.cumsum(sizes) - sizes)[which_default]
    if not sizes.any():  # an empty string may point anywhere, also into the records' buffers
        starts[missing] = 0
        return values
    which = np.zeros(len(starts), np.int32) if values.which is None else values.which
    which[missing] = len(values.buffers)
    joined = np.frombuffer(b"".join(defaults), np.uint8)
    return BytesValues((*values.buffers, joined), starts, lengths, which)


def _splits(entry: int, output: KernelOutput) -> np.ndarray:
    splits: np.ndarray = output.splits[output.table[entry, SPLITS]]
    return splits


def _partition(wanted: Output, feature: RaggedFeature, flat: FlatValues, output: KernelOutput) -> PartitionedValues:
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
