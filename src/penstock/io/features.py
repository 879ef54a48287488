"""Descriptions of the features in a serialized example, for parsers.

Fields and meaning are those of tf.io. Descriptions are frozen, and checked when they are created. They compare and hash
by content. `dtype` is one of the three kinds of a feature: bytes (or str), np.int64, np.float32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from penstock.block.spec import as_dtype, dtype_name
from penstock.errors import InvalidArgumentError, InvalidTypeError, PenstockError
from penstock.io.values import BYTES, FLOAT, INT64, NO_KIND, as_values

_KINDS = {bytes: BYTES, np.dtype(np.float32): FLOAT, np.dtype(np.int64): INT64}


class _ByContent:
    """Equality and hash of a description.

    The key is computed once, because parsers look up descriptions in every call.
    """

    __slots__ = ()

    key: tuple[Any, ...]

    def __eq__(self, other: object) -> bool:
        return self is other or (type(self) is type(other) and self.key == other.key)

    def __hash__(self) -> int:
        return hash(self.key)


@dataclass(frozen=True, eq=False)
class FixedLenFeature(_ByContent):
    """Specification of a feature that has the same shape in every example.

    In a single example, it becomes a numpy scalar or `bytes` if the shape is (), and otherwise an array of this shape.
    In a batch, it becomes an array of shape (batch, *shape).

    Args:
        shape: Shape of the feature.
        dtype: int64, float32 or bytes.
        default_value: Value of a missing feature. By default, a missing feature is an error.

    Raises:
        InvalidArgumentError: If a dimension is unknown, or if the default value has another size.
        InvalidTypeError: If `dtype` is another dtype.

    Example:
        >>> FixedLenFeature((2,), np.float32, default_value=[0, 0.5])
        FixedLenFeature(shape=(2,), dtype=float32, default_value=[0.0, 0.5])
    """

    shape: tuple[int, ...]
    dtype: Any
    default_value: Any = None
    key: tuple[Any, ...] = field(init=False, repr=False)

    def __init__(self, shape: Sequence[int] | int, dtype: Any, default_value: Any = None) -> None:
        object.__setattr__(self, "shape", _shape(shape, "FixedLenFeature"))
        object.__setattr__(self, "dtype", _dtype(dtype, "FixedLenFeature"))
        default = None if default_value is None else _default(default_value, self.dtype, self.shape)
        object.__setattr__(self, "default_value", default)
        object.__setattr__(self, "key", (self.shape, dtype_name(self.dtype), _content(default)))

    def __repr__(self) -> str:
        return f"FixedLenFeature(shape={self.shape}, dtype={dtype_name(self.dtype)}{_default_text(self.default_value)})"


@dataclass(frozen=True, eq=False)
class VarLenFeature(_ByContent):
    """Specification of a feature with any number of values, which becomes a SparseTensor.

    Args:
        dtype: int64, float32 or bytes.

    Raises:
        InvalidTypeError: If `dtype` is another dtype.

    Example:
        >>> VarLenFeature(bytes)
        VarLenFeature(dtype=bytes)
    """

    dtype: Any
    key: tuple[Any, ...] = field(init=False, repr=False)

    def __init__(self, dtype: Any) -> None:
        object.__setattr__(self, "dtype", _dtype(dtype, "VarLenFeature"))
        object.__setattr__(self, "key", (dtype_name(self.dtype),))

    def __repr__(self) -> str:
        return f"VarLenFeature(dtype={dtype_name(self.dtype)})"


@dataclass(frozen=True, eq=False)
class FixedLenSequenceFeature(_ByContent):
    """Specification of a feature with any number of steps of the same shape.

    In a single example, it becomes an array of shape (steps, *shape). In a batch, it is padded to the longest example.

    Args:
        shape: Shape of a step.
        dtype: int64, float32 or bytes.
        allow_missing: If True, a missing feature has no steps. If False, it is an error. `parse_example` needs True.
            Default: False.
        default_value: Value of the padding, a scalar. Default: 0 or b"".

    Raises:
        InvalidArgumentError: If a dimension is unknown or 0, or if the default value is not a scalar.
        InvalidTypeError: If `dtype` is another dtype.

    Example:
        >>> FixedLenSequenceFeature((2,), np.int64, allow_missing=True)
        FixedLenSequenceFeature(shape=(2,), dtype=int64, allow_missing=True)
    """

    shape: tuple[int, ...]
    dtype: Any
    allow_missing: bool = False
    default_value: Any = None
    key: tuple[Any, ...] = field(init=False, repr=False)

    def __init__(
        self,
        shape: Sequence[int] | int,
        dtype: Any,
        allow_missing: bool = False,
        default_value: Any = None,
    ) -> None:
        object.__setattr__(self, "shape", _shape(shape, "FixedLenSequenceFeature"))
        if math.prod(self.shape) == 0:
            message = f"FixedLenSequenceFeature needs at least one value per step, got shape {self.shape}."
            raise InvalidArgumentError(message)
        object.__setattr__(self, "dtype", _dtype(dtype, "FixedLenSequenceFeature"))
        object.__setattr__(self, "allow_missing", bool(allow_missing))
        default = None if default_value is None else _default(default_value, self.dtype, ())
        object.__setattr__(self, "default_value", default)
        content = _content(default)
        object.__setattr__(self, "key", (self.shape, dtype_name(self.dtype), self.allow_missing, content))

    def __repr__(self) -> str:
        return (
            f"FixedLenSequenceFeature(shape={self.shape}, dtype={dtype_name(self.dtype)}, "
            f"allow_missing={self.allow_missing}{_default_text(self.default_value)})"
        )


class RowSplits(NamedTuple):
    """Rows defined by row splits: 0, …, number of values."""

    key: str


class RowLengths(NamedTuple):
    """Rows defined by their lengths."""

    key: str


class RowStarts(NamedTuple):
    """Rows defined by their starts."""

    key: str


class RowLimits(NamedTuple):
    """Rows defined by their ends."""

    key: str


class ValueRowIds(NamedTuple):
    """Rows defined by the row of each value, in ascending order."""

    key: str


class UniformRowLength(NamedTuple):
    """Rows of one fixed length."""

    length: int


Partition = RowSplits | RowLengths | RowStarts | RowLimits | ValueRowIds | UniformRowLength


@dataclass(frozen=True, eq=False)
class RaggedFeature(_ByContent):
    """Specification of a feature with any number of values, which other features divide into rows.

    Without partitions, it becomes a vector in a single example, and a RaggedTensor in a batch. Each partition adds a
    ragged dimension, except uniform partitions at the end, which reshape.

    Args:
        dtype: int64, float32 or bytes.
        value_key: Name of the feature with the values. Default: the name of this feature.
        partitions: Partitions from the outermost to the innermost: `RaggedFeature.RowSplits(key)`, `.RowLengths`,
            `.RowStarts`, `.RowLimits`, `.ValueRowIds` or `.UniformRowLength(length)`.
        row_splits_dtype: int32 or int64. Default: int32.
        validate: Accepted for tf.io's sake. Partitions that do not fit are always an error.

    Raises:
        InvalidTypeError: If `dtype` is another dtype.

    Example:
        >>> RaggedFeature(np.int64, value_key="v", partitions=[RaggedFeature.RowLengths("n")])
        RaggedFeature(dtype=int64, value_key='v', partitions=(RowLengths(key='n'),))
    """

    RowSplits: ClassVar[type[RowSplits]] = RowSplits
    RowLengths: ClassVar[type[RowLengths]] = RowLengths
    RowStarts: ClassVar[type[RowStarts]] = RowStarts
    RowLimits: ClassVar[type[RowLimits]] = RowLimits
    ValueRowIds: ClassVar[type[ValueRowIds]] = ValueRowIds
    UniformRowLength: ClassVar[type[UniformRowLength]] = UniformRowLength

    dtype: Any
    value_key: str | None = None
    partitions: tuple[Partition, ...] = ()
    row_splits_dtype: Any = np.int32
    validate: bool = False
    key: tuple[Any, ...] = field(init=False, repr=False)

    def __init__(
        self,
        dtype: Any,
        value_key: str | None = None,
        partitions: Sequence[Partition] = (),
        row_splits_dtype: Any = np.int32,
        validate: bool = False,
    ) -> None:
        object.__setattr__(self, "dtype", _dtype(dtype, "RaggedFeature"))
        if value_key is not None and (not isinstance(value_key, str) or not value_key):
            message = f"value_key must be the name of a feature or None, got {value_key!r}."
            raise InvalidArgumentError(message)
        if not isinstance(partitions, (list, tuple)):
            message = f"partitions must be a list of partitions, got {type(partitions).__name__}."
            raise InvalidTypeError(message)
        for partition in partitions:
            _check_partition(partition)
        splits = np.dtype(row_splits_dtype)
        if splits not in (np.dtype(np.int32), np.dtype(np.int64)):
            message = f"row_splits_dtype must be int32 or int64, got {splits}."
            raise InvalidArgumentError(message)
        object.__setattr__(self, "value_key", value_key)
        object.__setattr__(self, "partitions", tuple(partitions))
        object.__setattr__(self, "row_splits_dtype", splits)
        object.__setattr__(self, "validate", bool(validate))
        named = tuple((type(partition).__name__, *partition) for partition in partitions)
        object.__setattr__(self, "key", (dtype_name(self.dtype), value_key, named, splits.name))

    def __repr__(self) -> str:
        parts = [f"dtype={dtype_name(self.dtype)}"]
        if self.value_key is not None:
            parts.append(f"value_key={self.value_key!r}")
        if self.partitions:
            parts.append(f"partitions={self.partitions}")
        return f"RaggedFeature({', '.join(parts)})"


Feature = FixedLenFeature | VarLenFeature | FixedLenSequenceFeature | RaggedFeature


def kind_of(feature: Feature) -> int:
    """Return the list kind of tf.train.Feature that stores the values: BYTES, FLOAT or INT64."""
    return _KINDS[feature.dtype]


def _shape(shape: Any, what: str) -> tuple[int, ...]:
    if isinstance(shape, (int, np.integer)):
        shape = (shape,)
    try:
        extents = tuple(shape)
    except TypeError as error:
        message = f"The shape of {what} must be a sequence of integers, got {shape!r}."
        raise InvalidTypeError(message) from error
    for extent in extents:
        if not isinstance(extent, (int, np.integer)) or extent < 0:
            message = f"All dimensions of {what} must be known, got shape {shape!r}."
            hint = "For lists of differing length use VarLenFeature, RaggedFeature or FixedLenSequenceFeature."
            raise InvalidArgumentError(message, hint=hint)
    return tuple(int(extent) for extent in extents)


def _dtype(dtype: Any, what: str) -> Any:
    problem: PenstockError | None = None
    try:
        found = as_dtype(dtype)
    except InvalidTypeError as error:
        found, problem = None, error
    if found not in _KINDS:
        given = dtype if found is None else dtype_name(found)
        message = f"The dtype of {what} must be bytes, np.int64 or np.float32, got {given}."
        hint = "These are the kinds of values an example stores; convert after parsing."
        raise InvalidTypeError(message, hint=hint) from problem
    return found


def _default(value: Any, dtype: Any, shape: tuple[int, ...]) -> Any:
    kind, values = as_values(value, "default_value")
    wanted = _KINDS[dtype]
    if kind == INT64 and wanted == FLOAT:
        kind, values = FLOAT, values.astype(np.float32)
    if kind not in (wanted, NO_KIND):
        message = f"default_value={value!r} does not fit dtype {dtype_name(dtype)}."
        raise InvalidTypeError(message)
    if len(values) != math.prod(shape):
        message = f"default_value has {len(values)} values, and shape {shape} needs {math.prod(shape)}."
        raise InvalidArgumentError(message, hint="Give a default for every value.")
    shaped = values.astype(object if dtype is bytes else dtype).reshape(shape)
    shaped.setflags(write=False)
    return shaped if shape else shaped[()]


def _content(default: Any) -> Any:
    """Return a default in a form that compares by its bits."""
    if default is None or isinstance(default, bytes):
        return default
    return tuple(default.reshape(-1).tolist()) if default.dtype == object else default.tobytes()


def _default_text(default: Any) -> str:
    if default is None:
        return ""
    return f", default_value={default if isinstance(default, bytes) else default.tolist()!r}"


def _check_partition(partition: Any) -> None:
    if isinstance(partition, UniformRowLength):
        if not isinstance(partition.length, (int, np.integer)) or partition.length < 1:
            message = f"UniformRowLength needs a length of at least 1, got {partition.length!r}."
            raise InvalidArgumentError(message)
    elif isinstance(partition, (RowSplits, RowLengths, RowStarts, RowLimits, ValueRowIds)):
        if not isinstance(partition.key, str):
            message = f"{type(partition).__name__} needs the name of a feature, got {partition.key!r}."
            raise InvalidTypeError(message)
    else:
        message = f"A partition is RaggedFeature.RowSplits(key) or one of its siblings, got {partition!r}."
        raise InvalidTypeError(message)
