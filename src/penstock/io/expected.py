"""Expected: a dict of feature descriptions, checked once and turned into what the parsers work with."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.io.features import (
    Feature,
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    UniformRowLength,
    VarLenFeature,
    kind_of,
)
from penstock.io.values import BYTES, FLOAT, INT64, KIND_NAMES

ANY_LENGTH = -1

_FEATURES = (FixedLenFeature, VarLenFeature, FixedLenSequenceFeature, RaggedFeature)


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A feature to read from the record: its name there, the kind of its values and how many there must be.

    `size` is the number of values or ANY_LENGTH; `stride` divides the number. `default` stands in for a missing
    feature: None where missing is an error, else a flat array of `size` values (none for ANY_LENGTH).
    """

    name: str
    key: bytes
    kind: int
    size: int
    stride: int
    default: np.ndarray | None


@dataclass(frozen=True, slots=True, eq=False)
class Output:
    """A result: the entry with the values, and those of the partitions (None for uniform ones)."""

    name: str
    feature: Feature
    entry: int
    partitions: tuple[int | None, ...] = ()


@dataclass(frozen=True, eq=False)
class Expected:
    """All entries to read and the results to make of them. `tables` is the compiled parser's own, made when needed."""

    entries: tuple[Entry, ...]
    outputs: tuple[Output, ...]
    tables: list[Any] = field(default_factory=list)


def expect(features: Mapping[str, Feature]) -> Expected:
    """What `features` ask for; the same descriptions give the same object.

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
    """The index of an equal entry, or of `entry` after adding it: ragged features may share their parts."""
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
