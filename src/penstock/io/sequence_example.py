"""tf.train.SequenceExample without protobuf: a context and lists of steps, to bytes and back.

Messages, from tensorflow/core/example/{example,feature}.proto; `Features` and `Feature` are those of `Example`:

    SequenceExample { Features context = 1, FeatureLists feature_lists = 2 }
    FeatureLists    { map<string, FeatureList> feature_list = 1 }
    FeatureList     { repeated Feature feature = 1 }
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from penstock.errors import InvalidTypeError
from penstock.io.example import (
    as_message,
    decode_feature,
    decode_features,
    encode_feature,
    encode_features,
    name_of,
    not_a_message,
)
from penstock.io.message import feature_entries
from penstock.io.wire import MalformedError, delimited, skip, span, varint

SEQUENCE_EXAMPLE = "tf.train.SequenceExample"

Steps = list[np.ndarray | list[bytes]]


def encode_sequence_example(context: Mapping[str, Any], feature_lists: Mapping[str, Iterable[Any]]) -> bytes:
    """A context and lists of steps as a serialized `tf.train.SequenceExample`.

    `context` is a dict of features as for `encode_example`; every value of `feature_lists` is a sequence with one
    feature per step. Both keep their order, so equal inputs give equal bytes.

    >>> record = encode_sequence_example({"length": 2}, {"words": [["a", "b"], ["c"]]})
    >>> decode_sequence_example(record)
    ({'length': array([2])}, {'words': [[b'a', b'b'], [b'c']]})

    Raises InvalidTypeError and InvalidArgumentError as `encode_example` does.
    """
    lists = []
    for name, steps in feature_lists.items():
        if isinstance(steps, (bytes, str)) or not isinstance(steps, Iterable):
            message = f"Feature list {name!r} is a sequence with one feature per step, got {type(steps).__name__}."
            raise InvalidTypeError(message)
        content = b"".join([delimited(0x0A, encode_feature(step, name)) for step in steps])
        lists.append(delimited(0x0A, delimited(0x0A, name.encode()) + delimited(0x12, content)))
    return delimited(0x0A, encode_features(context)) + delimited(0x12, b"".join(lists))


def decode_sequence_example(serialized: bytes) -> tuple[dict[str, np.ndarray | list[bytes]], dict[str, Steps]]:
    """(context, feature lists) of a serialized `tf.train.SequenceExample`, decoded as by `decode_example`.

    Raises DataLossError for bytes that are no such message.
    """
    data = as_message(serialized)
    context: dict[str, np.ndarray | list[bytes]] = {}
    lists: dict[str, Steps] = {}
    try:
        for tag, start, stop in sequence_parts(data):
            if tag == 0x0A:
                context.update(decode_features(data, start, stop))
                continue
            entries: dict[bytes, tuple[int, int]] = {}
            feature_entries(data, start, stop, entries)
            for key, (first, last) in entries.items():
                lists[name_of(key)] = [decode_feature(data, a, b) for a, b in steps_of(data, first, last)]
    except MalformedError as error:
        raise not_a_message(SEQUENCE_EXAMPLE, error) from None
    return context, lists


class SequenceExample:
    """A `tf.train.SequenceExample` as an object: two dicts, with protobuf's names for the conversions.

    >>> record = SequenceExample({"id": 7}, {"x": [1.0, 2.0]}).SerializeToString()
    >>> SequenceExample.FromString(record).feature_lists
    {'x': [array([1.], dtype=float32), array([2.], dtype=float32)]}
    """

    __slots__ = ("context", "feature_lists")

    def __init__(
        self, context: Mapping[str, Any] | None = None, feature_lists: Mapping[str, Iterable[Any]] | None = None
    ) -> None:
        self.context: dict[str, Any] = dict(context or {})
        self.feature_lists: dict[str, Any] = dict(feature_lists or {})

    def SerializeToString(self) -> bytes:
        """The serialized message; see `encode_sequence_example`."""
        return encode_sequence_example(self.context, self.feature_lists)

    @classmethod
    def FromString(cls, serialized: bytes) -> SequenceExample:
        """The message that `serialized` holds; see `decode_sequence_example`."""
        return cls(*decode_sequence_example(serialized))

    def __repr__(self) -> str:
        return f"SequenceExample({self.context!r}, {self.feature_lists!r})"


def sequence_parts(data: bytes) -> list[tuple[int, int, int]]:
    """(tag, start, end) of the contexts (0x0A) and feature lists (0x12) in a serialized `SequenceExample`."""
    found = []
    at, stop = 0, len(data)
    while at < stop:
        tag, at = varint(data, at, stop)
        if tag in (0x0A, 0x12):
            start, at = span(data, at, stop)
            found.append((tag, start, at))
        else:
            at = skip(data, at, stop, tag)
    return found


def steps_of(data: bytes, at: int, stop: int) -> list[tuple[int, int]]:
    """(start, end) of every `Feature` in data[at:stop], the content of a `FeatureList`."""
    found = []
    while at < stop:
        tag, at = varint(data, at, stop)
        if tag == 0x0A:
            start, at = span(data, at, stop)
            found.append((start, at))
        else:
            at = skip(data, at, stop, tag)
    return found
