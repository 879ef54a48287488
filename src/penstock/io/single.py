"""Parsing one serialized example."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.io import lift
from penstock.io.example import as_message
from penstock.io.expected import expect
from penstock.io.features import Feature
from penstock.io.plain import parse_plain
from penstock.trace.lift import lifted_by


@lifted_by(lift.single)
def parse_single_example(serialized: bytes, features: Mapping[str, Feature]) -> dict[str, Any]:
    """The features of one serialized `tf.train.Example`, as described.

    A scalar `FixedLenFeature` gives a numpy scalar or `bytes`, any other an array of its shape; `VarLenFeature` a
    SparseTensor; `FixedLenSequenceFeature` an array (steps, *shape); `RaggedFeature` a vector, or a RaggedTensor with
    partitions. Features that were not asked for are passed over; of features with one name the last counts.

    >>> import numpy as np
    >>> from penstock.io.example import encode_example
    >>> from penstock.io.features import FixedLenFeature
    >>> record = encode_example({"label": 3, "size": [2.0, 0.5]})
    >>> parse_single_example(record, {"label": FixedLenFeature((), np.int64), "size": FixedLenFeature(2, np.float32)})
    {'label': np.int64(3), 'size': array([2. , 0.5], dtype=float32)}

    Raises InvalidArgumentError, naming the feature, where one is missing without default or has another type or number
    of values; DataLossError where `serialized` is no such message. The result depends on nothing else.
    """
    return parse_plain(as_message(serialized), expect(features))
