"""The plain parsers of one example and of one sequence example.

They define valid input and all errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from penstock.block.tensors import RaggedTensor, SparseTensor
from penstock.errors import InvalidArgumentError
from penstock.io.example import EXAMPLE, SEQUENCE_EXAMPLE, as_message, not_a_message, sequence_parts, steps_of
from penstock.io.expected import ANY_LENGTH, Entry, Expected, Output, as_vector, assemble, expect, partitioned
from penstock.io.features import Feature, FixedLenFeature, FixedLenSequenceFeature, RaggedFeature
from penstock.io.values import KIND_NAMES, NO_KIND
from penstock.io.wire import MalformedError, example_entries, feature_entries, read_feature


def parse_plain(data: bytes, expected: Expected) -> dict[str, Any]:
    """Parse one example, like `parse_single_example`, with checked descriptions."""
    try:
        places = example_entries(data)
        values = [read_entry(data, entry, places.get(entry.key)) for entry in expected.entries]
    except MalformedError as error:
        raise not_a_message(EXAMPLE, error) from None
    return {output.name: assemble(output, expected, values) for output in expected.outputs}


def read_entry(data: bytes, entry: Entry, place: tuple[int, int] | None) -> Any:
    """Return the values of one feature, after checks against its description."""
    kind, values = (NO_KIND, []) if place is None else read_feature(data, place[0], place[1], entry.kind)
    if kind == NO_KIND:
        if entry.default is None:
            message = f"Feature {entry.name!r} is required but could not be found."
            hint = "Check the spelling, or give the feature a default (default_value, or allow_missing=True)."
            raise InvalidArgumentError(message, hint=hint)
        return entry.default
    if kind != entry.kind:
        message = (
            f"Feature {entry.name!r}: data types don't match. "
            f"Expected type: {KIND_NAMES[entry.kind]}, actual type: {KIND_NAMES[kind]}."
        )
        raise InvalidArgumentError(
            message, hint=f"Describe it with dtype {KIND_NAMES[kind]}, and convert after parsing."
        )
    count = len(values)
    if entry.size not in (ANY_LENGTH, count):
        message = f"Feature {entry.name!r} has {count} values, and {entry.size} were expected by its shape."
        hint = "For lists of differing length use VarLenFeature, RaggedFeature or FixedLenSequenceFeature."
        raise InvalidArgumentError(message, hint=hint)
    if count % entry.stride:
        message = f"Feature {entry.name!r} has {count} values, not a multiple of the {entry.stride} of one step."
        raise InvalidArgumentError(message)
    return values


_Places = dict[bytes, tuple[int, int]]


def parse_single_sequence_example(
    serialized: bytes,
    context_features: Mapping[str, Feature] | None = None,
    sequence_features: Mapping[str, Feature] | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parse one serialized `tf.train.SequenceExample` message.

    Args:
        serialized: The serialized SequenceExample.
        context_features: Dict from names to specifications of the features of the context.
        sequence_features: Dict from names to specifications of the feature lists.

    Returns:
        A pair of dicts: the context, parsed as by `parse_single_example`, and the feature lists. Of these, a
        `FixedLenSequenceFeature` becomes an array of shape (steps, *shape), a `VarLenFeature` a SparseTensor of shape
        (steps, longest), and a `RaggedFeature` a RaggedTensor of shape (steps, None).

    Raises:
        InvalidArgumentError: If a feature is missing, or if a step has another type or number of values.
        DataLossError: If `serialized` is not a SequenceExample.

    Example:
        >>> from penstock.io.features import VarLenFeature
        >>> from penstock.io.example import encode_sequence_example
        >>> record = encode_sequence_example({"id": 7}, {"frames": [[1, 2], [3, 4], [5, 6]]})
        >>> context, lists = parse_single_sequence_example(
        ...     record, {"id": FixedLenFeature((), np.int64)}, {"frames": FixedLenSequenceFeature((2,), np.int64)})
        >>> context, lists["frames"].tolist()
        ({'id': np.int64(7)}, [[1, 2], [3, 4], [5, 6]])
    """
    if not context_features and not sequence_features:
        message = "Neither context_features nor sequence_features were given: nothing would be parsed."
        raise InvalidArgumentError(message)
    data = as_message(serialized)
    context = expect(context_features) if context_features else None
    lists = _expect_lists(sequence_features) if sequence_features else None
    try:
        features, feature_lists = _places(data)
        values = [read_entry(data, entry, features.get(entry.key)) for entry in context.entries] if context else []
        steps = _steps(data, lists, feature_lists) if lists else []
    except MalformedError as error:
        raise not_a_message(SEQUENCE_EXAMPLE, error) from None
    return (
        {output.name: assemble(output, context, values) for output in context.outputs} if context else {},
        {output.name: _assemble_list(output, lists, steps) for output in lists.outputs} if lists else {},
    )


def _expect_lists(features: Mapping[str, Feature]) -> Expected:
    expected = expect(features)
    for output in expected.outputs:
        if isinstance(output.feature, FixedLenFeature):
            message = f"Feature list {output.name!r} cannot be described by FixedLenFeature."
            hint = "FixedLenSequenceFeature describes steps of one shape; FixedLenFeature belongs into the context."
            raise InvalidArgumentError(message, hint=hint)
    return expected


def _places(data: bytes) -> tuple[_Places, _Places]:
    features: _Places = {}
    feature_lists: _Places = {}
    for tag, start, stop in sequence_parts(data):
        feature_entries(data, start, stop, features if tag == 0x0A else feature_lists)
    return features, feature_lists


def _steps(data: bytes, lists: Expected, places: _Places) -> list[list[np.ndarray]]:
    """Return the values of every step of every feature list."""
    whole = {output.entry for output in lists.outputs if isinstance(output.feature, FixedLenSequenceFeature)}
    return [_read_steps(data, e, places.get(e.key), whole=i in whole) for i, e in enumerate(lists.entries)]


def _read_steps(data: bytes, entry: Entry, place: tuple[int, int] | None, *, whole: bool) -> list[np.ndarray]:
    """Return the values of every step of one list.

    With `whole`, each step must exist and have a fixed number of values.
    """
    if place is None:
        if entry.default is None:
            message = f"Feature list {entry.name!r} is required but could not be found."
            hint = "Check the spelling, or describe it with allow_missing=True."
            raise InvalidArgumentError(message, hint=hint)
        return []
    size, default = (entry.stride, None) if whole else (ANY_LENGTH, entry.default)
    step = Entry(entry.name, entry.key, entry.kind, size, 1, default)
    found = []
    for i, (start, stop) in enumerate(steps_of(data, *place)):
        try:
            found.append(as_vector(read_entry(data, step, (start, stop)), entry.kind))
        except InvalidArgumentError as error:
            message = f"Step {i} of feature list {entry.name!r}: {error.message}"
            raise InvalidArgumentError(message, hint=error.hint) from None
    return found


def _assemble_list(output: Output, expected: Expected, steps: list[list[np.ndarray]]) -> Any:
    feature = output.feature
    kind = expected.entries[output.entry].kind
    rows = steps[output.entry]
    flat = np.concatenate(rows) if rows else as_vector([], kind)
    if isinstance(feature, FixedLenSequenceFeature):
        return flat.reshape(len(rows), *feature.shape)
    if isinstance(feature, RaggedFeature):
        return _ragged(output, feature, rows, flat, steps)
    lengths = np.array([len(row) for row in rows], np.int64)
    places = np.arange(len(flat)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    indices = np.stack([np.repeat(np.arange(len(rows)), lengths), places], axis=1)
    return SparseTensor(indices, flat, np.array([len(rows), lengths.max(initial=0)]))


def _ragged(
    output: Output, feature: RaggedFeature, rows: list[np.ndarray], flat: np.ndarray, steps: list[list[np.ndarray]]
) -> RaggedTensor:
    if not feature.partitions:
        lengths = np.array([len(row) for row in rows], feature.row_splits_dtype)
        return RaggedTensor.from_row_lengths(flat, lengths)
    parts = [None if entry is None else steps[entry] for entry in output.partitions]
    for part in parts:
        if part is not None and len(part) != len(rows):
            message = f"Feature list {output.name!r} has {len(rows)} steps, and one of its partitions {len(part)}."
            raise InvalidArgumentError(message)
    divided = [
        partitioned(row, feature, [None if part is None else part[i] for part in parts], output.name)
        for i, row in enumerate(rows)
    ]
    if divided:
        return RaggedTensor.stack(divided, feature.row_splits_dtype)
    nothing = [None if part is None else np.empty(0, np.int64) for part in parts]
    return RaggedTensor(partitioned(flat, feature, nothing, output.name), np.zeros(1, feature.row_splits_dtype))
