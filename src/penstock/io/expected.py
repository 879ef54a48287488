"""Expected: a dict of feature descriptions in the form that parsers use. It is checked once.

`assemble` builds a user's result from the values of a feature.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from penstock.block.tensors import RaggedTensor, SparseTensor
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.io.features import (
    Feature,
    FixedLenFeature,
    FixedLenSequenceFeature,
    Partition,
    RaggedFeature,
    RowLengths,
    RowLimits,
    RowSplits,
    RowStarts,
    UniformRowLength,
    VarLenFeature,
    kind_of,
)
from penstock.io.values import BYTES, FLOAT, INT64, KIND_NAMES

ANY_LENGTH = -1

_FEATURES = (FixedLenFeature, VarLenFeature, FixedLenSequenceFeature, RaggedFeature)


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A feature to read from the record: its name, the kind and the number of its values.

    `size` is the number of values or ANY_LENGTH; `stride` divides the number. `default` replaces a missing feature. It
    is None if a missing feature is an error, else a flat array of `size` values (none for ANY_LENGTH).
    """

    name: str
    key: bytes
    kind: int
    size: int
    stride: int
    default: np.ndarray | None


@dataclass(frozen=True, slots=True, eq=False)
class Output:
    """A result: the entry with the values, and the entries of the partitions (None for uniform ones)."""

    name: str
    feature: Feature
    entry: int
    partitions: tuple[int | None, ...] = ()


@dataclass(frozen=True, eq=False)
class Expected:
    """All entries to read, and the results to build from them.

    `tables` belongs to the compiled parser, and is built on first use.
    """

    entries: tuple[Entry, ...]
    outputs: tuple[Output, ...]
    tables: list[Any] = field(default_factory=list)


def expect(features: Mapping[str, Feature]) -> Expected:
    """Return the checked form of `features`. Equal descriptions return the same object.

    >>> [entry.name for entry in expect({"label": FixedLenFeature((), np.int64)}).entries]
    ['label']

    Raises InvalidTypeError or InvalidArgumentError, naming the feature, for anything but a dict of descriptions.
    """
    if not isinstance(features, Mapping):
        message = f"features must be a dict from names to descriptions, got {type(features).__name__}."
        raise InvalidTypeError(message, hint='Write {"label": io.FixedLenFeature((), np.int64)}.')
    try:
        return _expect(tuple(features.items()))
    except TypeError:
        _check(features)
        raise


def _check(features: Mapping[Any, Any]) -> None:
    if not features:
        message = "features is empty: nothing would be parsed."
        raise InvalidArgumentError(message)
    for name, feature in features.items():
        if not isinstance(name, str):
            message = f"The name of a feature is text, got {name!r}."
            raise InvalidTypeError(message)
        if not isinstance(feature, _FEATURES):
            message = f"Feature {name!r} must be described by one of io's features, got {feature!r}."
            hint = "They are FixedLenFeature, VarLenFeature, FixedLenSequenceFeature and RaggedFeature."
            raise InvalidTypeError(message, hint=hint)


@lru_cache(maxsize=256)
def _expect(items: tuple[tuple[str, Feature], ...]) -> Expected:
    _check(dict(items))
    entries: dict[str, tuple[int, Entry]] = {}
    outputs = []
    for name, feature in items:
        if isinstance(feature, RaggedFeature):
            value = _add(entries, _ragged_entry(feature.value_key or name, kind_of(feature)))
            parts = [
                None if isinstance(part, UniformRowLength) else _add(entries, _ragged_entry(part.key, INT64))
                for part in feature.partitions
            ]
            outputs.append(Output(name, feature, value, tuple(parts)))
        else:
            outputs.append(Output(name, feature, _add(entries, _entry(name, feature))))
    return Expected(tuple(entry for _, entry in entries.values()), tuple(outputs))


def _entry(name: str, feature: FixedLenFeature | VarLenFeature | FixedLenSequenceFeature) -> Entry:
    kind, key = kind_of(feature), name.encode()
    if isinstance(feature, FixedLenFeature):
        size = math.prod(feature.shape)
        return Entry(name, key, kind, size, 1, None if feature.default_value is None else _flat_default(feature))
    nothing = _nothing(kind)
    if isinstance(feature, VarLenFeature):
        return Entry(name, key, kind, ANY_LENGTH, 1, nothing)
    default = nothing if feature.allow_missing else None
    return Entry(name, key, kind, ANY_LENGTH, math.prod(feature.shape), default)


def _nothing(kind: int) -> np.ndarray:
    return np.empty(0, {BYTES: object, FLOAT: np.float32, INT64: np.int64}[kind])


def _flat_default(feature: FixedLenFeature) -> np.ndarray:
    if isinstance(feature.default_value, bytes):
        single = np.empty(1, object)
        single[0] = feature.default_value
        return single
    return np.asarray(feature.default_value).reshape(-1)


def _ragged_entry(name: str, kind: int) -> Entry:
    return Entry(name, name.encode(), kind, ANY_LENGTH, 1, _nothing(kind))


def _add(entries: dict[str, tuple[int, Entry]], entry: Entry) -> int:
    """Return the index of an equal entry, or add `entry`. Ragged features may share their partitions."""
    index, known = entries.setdefault(entry.name, (len(entries), entry))
    if known is entry:
        return index
    if (known.kind, known.size, known.stride) != (entry.kind, entry.size, entry.stride) or known.default is None:
        message = f"Feature {entry.name!r} is asked for in two ways: as {_words(known)} and as {_words(entry)}."
        raise InvalidArgumentError(message, hint="Parse it once, and derive the other form from the result.")
    return index


def _words(entry: Entry) -> str:
    count = "any number" if entry.size == ANY_LENGTH else str(entry.size)
    return f"{count} of {KIND_NAMES[entry.kind]}"


_NUMPY = {BYTES: np.dtype(object), FLOAT: np.dtype(np.float32)}
_INT64 = np.dtype(np.int64)
_MOST_ROWS = 1 << 24  # limit for row ids, so that a damaged number does not allocate huge arrays


def as_vector(values: Any, kind: int) -> np.ndarray:
    """Return values of one kind as a vector: int64, float32, or object with `bytes`."""
    if isinstance(values, np.ndarray):
        return values
    if kind != BYTES:
        return np.array(values, _NUMPY.get(kind, _INT64))
    found = np.empty(len(values), object)
    found[:] = values
    return found


def assemble(output: Output, expected: Expected, values: Sequence[Any]) -> Any:
    """Return the result for one example. `values` has the values of every entry.

    Raises InvalidArgumentError if the partitions of a ragged feature do not fit.
    """
    feature = output.feature
    entry = expected.entries[output.entry]
    found = values[output.entry]
    if isinstance(feature, FixedLenFeature) and not feature.shape:
        return found[0] if entry.kind == BYTES else _scalar(found, entry)
    vector = as_vector(found, entry.kind)
    if not vector.flags.writeable:  # a default or a view of the record: the user needs a separate array
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
    """Return the values of one example as a sparse vector without gaps."""
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
            # check before the cast, which could turn an invalid number into a valid one
            divided = RaggedTensor(found, splits)
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
    """Return the row splits of any partition. The caller checks them."""
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
        return np.array([-1])  # an invalid partition, which the caller refuses
    return np.searchsorted(rows, np.arange(int(rows[-1]) + 2)).astype(np.int64)
