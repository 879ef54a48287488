"""Parsing a batch of serialized examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from penstock.errors import InvalidTypeError
from penstock.io import lift
from penstock.io.batch_check import check_batched
from penstock.io.blocks import parse_columns
from penstock.io.features import Feature
from penstock.trace.lift import lifted_by


@lifted_by(lift.batch)
def parse_example(serialized: Sequence[bytes] | np.ndarray, features: Mapping[str, Feature]) -> dict[str, Any]:
    """The features of a vector of serialized `tf.train.Example` messages, as described.

    A `FixedLenFeature` gives an array (batch, *shape); `VarLenFeature` a SparseTensor; `FixedLenSequenceFeature` an
    array padded to the longest example, (batch, steps, *shape); `RaggedFeature` a RaggedTensor. Byte strings stand in
    object arrays. What is accepted, and the meaning, is that of `parse_single_example`.

    >>> from penstock.io.example import encode_example
    >>> from penstock.io.features import FixedLenFeature
    >>> records = [encode_example({"label": i}) for i in range(3)]
    >>> parse_example(records, {"label": FixedLenFeature((), np.int64)})
    {'label': array([0, 1, 2])}

    Raises InvalidArgumentError where a feature is missing without default or has another type or number of values, and
    DataLossError for what is no such message; the error's `context.element` is the position in the batch.
    """
    expected = check_batched(features)
    buffer, starts, lengths = joined(serialized)
    columns = parse_columns(buffer, starts, lengths, expected)
    return {name: column.batched() for name, column in columns.items()}


def joined(serialized: Sequence[bytes] | np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(buffer, starts, lengths) of a vector of byte strings."""
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
