"""tf.train.Example and tf.train.SequenceExample without protobuf: dicts of features to bytes and back.

Messages, from tensorflow/core/example/{example,feature}.proto:

    Example  { Features features = 1 }
    Features { map<string, Feature> feature = 1 }
    Feature  { oneof { BytesList bytes_list = 1, FloatList float_list = 2, Int64List int64_list = 3 } }
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from penstock.errors import DataLossError, InvalidTypeError
from penstock.io.values import BYTES, FLOAT, INT64, NO_KIND, ByteStrings, as_values
from penstock.io.wire import (
    MalformedError,
    ValueLists,
    delimited,
    encode_varint,
    encode_varints,
    feature_entries,
    read_list,
    skip,
    span,
    varint,
)

EXAMPLE = "tf.train.Example"


def encode_example(features: Mapping[str, Any]) -> bytes:
    """Serialize a dict of features as a `tf.train.Example`.

    Integers and booleans become int64, floats float32, and strings their UTF-8 bytes. Lists and arrays are flattened.
    Features are written in the order of the dict, so equal dicts give equal bytes.

    Args:
        features: Dict from names to values.

    Returns:
        The serialized Example.

    Raises:
        InvalidTypeError: If a value is not a number, string, byte string, or list or array of them.
        InvalidArgumentError: If an integer does not fit int64.

    Example:
        >>> encode_example({"label": 3}).hex()
        '0a100a0e0a056c6162656c12051a030a0103'
    """
    parts, size = _features(features)
    return b"".join([b"\x0a", encode_varint(size), *parts])


def decode_example(serialized: bytes) -> dict[str, np.ndarray | list[bytes]]:
    """Decode all features of a serialized `tf.train.Example`.

    Use `parse_single_example` to read features of known shape and dtype. If two features have the same name, the last
    one is returned.

    Args:
        serialized: The serialized Example.

    Returns:
        A dict from names to int64 vectors, float32 vectors or lists of byte strings. A feature without a kind is an
        empty list.

    Raises:
        DataLossError: If `serialized` is not an Example.

    Example:
        >>> decode_example(encode_example({"label": 3, "name": "cat"}))
        {'label': array([3]), 'name': [b'cat']}
    """
    data = as_message(serialized)
    try:
        found: dict[str, np.ndarray | list[bytes]] = {}
        at = 0
        while at < len(data):
            tag, at = varint(data, at, len(data))
            if tag == 0x0A:
                start, at = span(data, at, len(data))
                found.update(decode_features(data, start, at))
            else:
                at = skip(data, at, len(data), tag)
    except MalformedError as error:
        raise not_a_message(EXAMPLE, error) from None
    return found


class Example:
    """A `tf.train.Example`, with protobuf's names for the conversions.

    Args:
        features: Dict from names to values, as for `encode_example`.

    Attributes:
        features: The dict.

    Example:
        >>> Example.FromString(Example({"label": 3}).SerializeToString()).features
        {'label': array([3])}
    """

    __slots__ = ("features",)

    def __init__(self, features: Mapping[str, Any] | None = None) -> None:
        self.features: dict[str, Any] = dict(features or {})

    def SerializeToString(self) -> bytes:
        """Return the serialized message; see `encode_example`."""
        return encode_example(self.features)

    @classmethod
    def FromString(cls, serialized: bytes) -> Example:
        """Return the message in `serialized`; see `decode_example`."""
        return cls(decode_example(serialized))

    def __repr__(self) -> str:
        return f"Example({self.features!r})"


def encode_features(features: Mapping[str, Any]) -> bytes:
    """Return the content of a `Features` message."""
    return b"".join(_features(features)[0])


def encode_feature(value: Any, name: str) -> bytes:
    """Return the content of a `Feature` message."""
    return b"".join(_feature(value, name)[0])


def _features(features: Mapping[str, Any]) -> tuple[list[bytes], int]:
    """Return the content of a `Features` message in pieces, and its size. Joining them once copies an image once."""
    parts: list[bytes] = []
    total = 0
    for name, value in features.items():
        if not isinstance(name, str):
            message = f"The name of a feature is text, got {name!r}."
            raise InvalidTypeError(message)
        content, size = _feature(value, name)
        head = delimited(0x0A, name.encode()) + b"\x12" + encode_varint(size)
        head = b"\x0a" + encode_varint(len(head) + size) + head
        parts.append(head)
        parts += content
        total += len(head) + size
    return parts, total


def _feature(value: Any, name: str) -> tuple[list[bytes], int]:
    """Return the content of a `Feature` message in pieces, and its size."""
    if type(value) is bytes:
        inner = b"\x0a" + encode_varint(len(value))
        head = b"\x0a" + encode_varint(len(inner) + len(value)) + inner
        return [head, value], len(head) + len(value)
    kind, values = as_values(value, name)
    if kind == NO_KIND:
        return [], 0
    if kind == BYTES:
        content = b"".join([b"\x0a" + encode_varint(len(item)) + item for item in values.tolist()])
        head = b"\x0a" + encode_varint(len(content))
        return [head, content], len(head) + len(content)
    if not len(values):
        return [delimited(kind << 3 | 2, b"")], 2
    packed = values.astype("<f4").tobytes() if kind == FLOAT else encode_varints(values)
    content = delimited(kind << 3 | 2, delimited(0x0A, packed))
    return [content], len(content)


def decode_features(data: bytes, at: int, stop: int) -> dict[str, np.ndarray | list[bytes]]:
    """Return the features in data[at:stop], the content of a `Features` message."""
    entries: dict[bytes, tuple[int, int]] = {}
    feature_entries(data, at, stop, entries)
    return {name_of(key): decode_feature(data, start, end) for key, (start, end) in entries.items()}


def name_of(key: bytes) -> str:
    """Return the name of a feature. protobuf accepts only UTF-8."""
    try:
        return key.decode()
    except UnicodeDecodeError:
        message = f"the name {key!r} is not UTF-8"
        raise MalformedError(message) from None


def decode_feature(data: bytes, at: int, stop: int) -> np.ndarray | list[bytes]:
    """Return the values in data[at:stop], the content of a `Feature` message."""
    kind, lists = NO_KIND, ValueLists()
    while at < stop:
        tag, at = varint(data, at, stop)
        if tag in (0x0A, 0x12, 0x1A):
            if tag >> 3 != kind:
                kind, lists = tag >> 3, ValueLists()
            start, at = span(data, at, stop)
            read_list(data, start, at, kind, lists)
        else:
            at = skip(data, at, stop, tag)
    if kind == NO_KIND:
        return []
    if kind == BYTES:
        return ByteStrings(lists.joined(BYTES))
    return np.array(lists.joined(kind), np.int64 if kind == INT64 else np.float32)


def as_message(serialized: Any) -> bytes:
    """Return the bytes of one message. Raises InvalidTypeError for other values."""
    if isinstance(serialized, bytes):
        return serialized
    if isinstance(serialized, (bytearray, memoryview)):
        return bytes(serialized)
    message = f"A serialized message is bytes, got {type(serialized).__name__}."
    raise InvalidTypeError(message, hint="parse_example takes a batch of them, parse_single_example one.")


def not_a_message(wanted: str, error: MalformedError) -> DataLossError:
    message = f"The record is not a serialized {wanted}: {error}."
    hint = "Is the data stored in another form (decode it yourself), or was the file damaged before it was checksummed?"
    return DataLossError(message, hint=hint)


# Messages, from tensorflow/core/example/{example,feature}.proto; `Features` and `Feature` are those of `Example`:
#
#     SequenceExample { Features context = 1, FeatureLists feature_lists = 2 }
#     FeatureLists    { map<string, FeatureList> feature_list = 1 }
#     FeatureList     { repeated Feature feature = 1 }

SEQUENCE_EXAMPLE = "tf.train.SequenceExample"

Steps = list[np.ndarray | list[bytes]]


def encode_sequence_example(context: Mapping[str, Any], feature_lists: Mapping[str, Iterable[Any]]) -> bytes:
    """Serialize a context and lists of steps as a `tf.train.SequenceExample`.

    Both dicts keep their order, so equal dicts give equal bytes.

    Args:
        context: Dict from names to values, as for `encode_example`.
        feature_lists: Dict from names to sequences with one value for each step.

    Returns:
        The serialized SequenceExample.

    Raises:
        InvalidTypeError: If a value is not a number, string, byte string, or list or array of them.
        InvalidArgumentError: If an integer does not fit int64.

    Example:
        >>> record = encode_sequence_example({"length": 2}, {"words": [["a", "b"], ["c"]]})
        >>> decode_sequence_example(record)
        ({'length': array([2])}, {'words': [[b'a', b'b'], [b'c']]})
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
    """Decode all features of a serialized `tf.train.SequenceExample`.

    Args:
        serialized: The serialized SequenceExample.

    Returns:
        A pair of the context and the feature lists, both dicts. The values are those of `decode_example`.

    Raises:
        DataLossError: If `serialized` is not a SequenceExample.

    Example:
        >>> record = encode_sequence_example({"length": 2}, {"words": [["a", "b"], ["c"]]})
        >>> decode_sequence_example(record)[1]
        {'words': [[b'a', b'b'], [b'c']]}
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
    """A `tf.train.SequenceExample`, with protobuf's names for the conversions.

    Args:
        context: Dict from names to values, as for `encode_example`.
        feature_lists: Dict from names to sequences with one value for each step.

    Attributes:
        context: The dict of the context.
        feature_lists: The dict of the sequences.

    Example:
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
        """Return the serialized message; see `encode_sequence_example`."""
        return encode_sequence_example(self.context, self.feature_lists)

    @classmethod
    def FromString(cls, serialized: bytes) -> SequenceExample:
        """Return the message in `serialized`; see `decode_sequence_example`."""
        return cls(*decode_sequence_example(serialized))

    def __repr__(self) -> str:
        return f"SequenceExample({self.context!r}, {self.feature_lists!r})"


def sequence_parts(data: bytes) -> list[tuple[int, int, int]]:
    """Return (tag, start, end) of the contexts (0x0A) and feature lists (0x12) in a serialized `SequenceExample`."""
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
    """Return (start, end) of every `Feature` in data[at:stop], the content of a `FeatureList`."""
    found = []
    while at < stop:
        tag, at = varint(data, at, stop)
        if tag == 0x0A:
            start, at = span(data, at, stop)
            found.append((start, at))
        else:
            at = skip(data, at, stop, tag)
    return found
