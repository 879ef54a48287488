"""Codec: nests of stored values as the flat entries of a tf.train.Example, in tfds's layout.

Names of nested features are joined by "/". A sequence is a list of its values. A sequence of sequences has all its
values under `<name>/ragged_flat_values`. The lengths of the inner sequences, from the outermost to the innermost
dimension, are under `<name>/ragged_row_lengths_0`, `…_1`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from penstock.block.tensors import RaggedTensor
from penstock.catalog.features.feature import Stored, StoredNest
from penstock.errors import DataLossError, InvalidArgumentError
from penstock.io import FixedLenFeature, FixedLenSequenceFeature, encode_example, parse_single_example
from penstock.io.values import ByteStrings

_FLAT, _LENGTHS = "ragged_flat_values", "ragged_row_lengths_"


class Codec:
    """Converts values of the form `stored` to a record, and back."""

    def __init__(self, stored: StoredNest) -> None:
        self._stored = stored
        self._leaves = dict(_flat(stored, ""))
        self._specs: dict[str, Any] = {}
        for name, leaf in self._leaves.items():
            self._specs.update(_specs(name, leaf))
        # In most data sets the parser returns the final values. Only the others need a conversion.
        self._changed = [name for name, leaf in self._leaves.items() if not _is_plain(leaf)]
        self._is_flat = isinstance(stored, Mapping) and list(stored) == list(self._leaves)

    def pack(self, values: Mapping[str, Any]) -> bytes:
        """Return a record of `values`."""
        entries: dict[str, Any] = {}
        for name, value in _flat(values, "", self._stored):
            leaf = self._leaves[name]
            if value is None and leaf.optional:
                continue
            if leaf.sequence_rank < 2:
                entries[name] = _values(_joined(value, leaf.sequence_rank), leaf)
                continue
            lengths: list[list[int]] = [[] for _ in range(leaf.sequence_rank - 1)]
            found: list[Any] = []
            _unravel(value, leaf, name, lengths, found)
            entries[f"{name}/{_FLAT}"] = _values(_joined(found, 1), leaf)
            for number, counted in enumerate(lengths):
                entries[f"{name}/{_LENGTHS}{number}"] = np.array(counted, np.int64)
        return encode_example(entries)

    def unpack(self, record: bytes) -> Any:
        """Return the nest of values in a record."""
        found = parse_single_example(record, self._specs)
        if self._is_flat and not self._changed:
            return found
        for name in self._changed:
            found[name] = _restored(name, self._leaves[name], found)
        return _nest(self._stored, "", found)


def _is_plain(leaf: Stored) -> bool:
    """Return True if the parser returns the final value."""
    same = leaf.dtype is bytes or leaf.dtype == leaf.wire_dtype
    return same and leaf.sequence_rank < 2 and (None not in leaf.shape or len(leaf.shape) == 1)


def _flat(values: Any, prefix: str, like: Any = None) -> Iterator[tuple[str, Any]]:
    like = values if like is None else like
    if isinstance(like, Mapping):
        for key, inner in like.items():
            part = values if inner is None else values[key]
            yield from _flat(part, f"{prefix}/{key}" if prefix else key, inner)
    else:
        yield prefix, values


def _nest(stored: StoredNest, prefix: str, values: Mapping[str, Any]) -> Any:
    if isinstance(stored, Stored):
        return values[prefix]
    return {key: _nest(inner, f"{prefix}/{key}" if prefix else key, values) for key, inner in stored.items()}


def _specs(name: str, leaf: Stored) -> dict[str, Any]:
    dtype = leaf.wire_dtype
    if leaf.sequence_rank > 1:
        inner = tuple(size for size in leaf.shape[leaf.sequence_rank :] if size is not None)
        if len(inner) < len(leaf.shape) - leaf.sequence_rank:
            raise _too_open(name, leaf)
        lengths = FixedLenSequenceFeature((), np.int64, allow_missing=True)
        rows = {f"{name}/{_LENGTHS}{number}": lengths for number in range(leaf.sequence_rank - 1)}
        return {**rows, f"{name}/{_FLAT}": FixedLenSequenceFeature(inner, dtype, allow_missing=True)}
    known = tuple(size for size in leaf.shape if size is not None)
    if None not in leaf.shape:
        return {name: FixedLenFeature(known, dtype, leaf.default)}
    if leaf.shape.count(None) > 1:
        raise _too_open(name, leaf)
    return {name: FixedLenSequenceFeature(known, dtype, allow_missing=True)}


def _too_open(name: str, leaf: Stored) -> InvalidArgumentError:
    message = f"feature {name!r} has more than one unknown size: {leaf.shape}."
    hint = 'Give the Tensor an encoding, "zlib" or "bytes", or make it a Sequence of Sequences.'
    return InvalidArgumentError(message, hint=hint)


def _joined(value: Any, rank: int) -> Any:
    if rank and isinstance(value, list):
        return np.stack(value) if value and isinstance(value[0], np.ndarray) else value
    return value


def _values(value: Any, leaf: Stored) -> Any:
    """Return the values of one entry for `encode_example`. An empty entry keeps its dtype."""
    if leaf.dtype is bytes:
        if isinstance(value, bytes):
            return value
        return ByteStrings(value.reshape(-1).tolist() if isinstance(value, np.ndarray) else value)
    array = np.asarray(value, leaf.dtype)
    if array.dtype == np.uint64:
        return array.view(np.int64)  # records have int64 only, so the bits are stored as int64
    return array.astype(leaf.wire_dtype)


def _unravel(value: Any, leaf: Stored, name: str, lengths: list[list[int]], found: list[Any], depth: int = 0) -> None:
    wanted = leaf.shape[depth]
    if wanted is not None and wanted != len(value):
        message = f"feature {name!r} must have {wanted} values in dimension {depth}, got {len(value)}."
        raise InvalidArgumentError(message, hint="Change the value, or the length in _info().")
    if depth:
        lengths[depth - 1].append(len(value))
    if depth == leaf.sequence_rank - 1:
        found.extend(value)
        return
    for part in value:
        _unravel(part, leaf, name, lengths, found, depth + 1)


def _restored(name: str, leaf: Stored, found: Mapping[str, Any]) -> Any:
    if leaf.sequence_rank < 2:
        value = found[name]
        if None in leaf.shape and len(leaf.shape) > 1:
            if not value.size:
                value = value.reshape([0 if size is None else size for size in leaf.shape])
            value = value.reshape([-1 if size is None and value.size else size or 0 for size in leaf.shape])
        return _cast(value, leaf)
    ragged: Any = _cast(found[f"{name}/{_FLAT}"], leaf)
    try:
        for number in reversed(range(leaf.sequence_rank - 1)):
            ragged = RaggedTensor.from_row_lengths(ragged, found[f"{name}/{_LENGTHS}{number}"])
    except InvalidArgumentError as error:
        message = f"the lengths of the rows of feature {name!r} do not add up to its values."
        raise DataLossError(message, hint="Prepare the data set again.") from error
    return ragged


def _cast(value: Any, leaf: Stored) -> Any:
    if leaf.dtype is bytes:
        return value
    array = np.asarray(value)
    if array.dtype == leaf.dtype:
        return value
    return (array.view(np.uint64) if leaf.dtype == np.uint64 else array.astype(leaf.dtype))[()]
