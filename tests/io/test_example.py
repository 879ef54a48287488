"""Encoding and decoding of Example and SequenceExample."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import io
from penstock.errors import DataLossError, InvalidArgumentError, InvalidTypeError
from penstock.io.wire import encode_varint, encode_varints, packed_varints

INT64 = np.iinfo(np.int64)


@pytest.mark.parametrize(
    ("value", "feature"),
    [  # what protobuf serializes for the Feature
        ([1], "1a030a0101"),
        (0, "1a030a0100"),
        (-1, "1a0c0a0affffffffffffffffff01"),
        ([300, 2], "1a050a03ac0202"),
        (True, "1a030a0101"),
        (1.5, "12060a040000c03f"),
        ([b"a", b""], "0a050a01610a00"),
        ("é", "0a040a02c3a9"),
        ([], ""),
        (np.zeros(0, np.float32), "1200"),
        (np.zeros(0, np.int64), "1a00"),
    ],
)
def test_bytes_are_protobufs(value, feature):
    content = bytes.fromhex(feature)
    entry = b"\x0a\x01k\x12" + bytes([len(content)]) + content
    message = b"\x0a" + bytes([len(entry)]) + entry
    assert io.encode_example({"k": value}) == b"\x0a" + bytes([len(message)]) + message


def test_features_keep_the_dicts_order():
    assert list(io.decode_example(io.encode_example({"b": 1, "a": 2, "": 3}))) == ["b", "a", ""]


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (np.uint8([1, 255]), np.int64([1, 255])),
        (np.bool_(True), np.int64([1])),
        ([True, 2], np.int64([1, 2])),
        (np.float64([[0.5], [1e300]]), np.float32([0.5, np.inf])),
        ([1, 2.5], np.float32([1, 2.5])),
        (np.arange(4).reshape(2, 2), np.int64([0, 1, 2, 3])),
        (INT64.min, np.int64([INT64.min])),
        (np.float16(0.5), np.float32([0.5])),
    ],
)
def test_numbers(value, found):
    decoded = io.decode_example(io.encode_example({"x": value}))["x"]
    assert decoded.dtype == found.dtype
    assert decoded.tolist() == found.tolist()


@pytest.mark.parametrize(
    "value", [b"ab", "ab", ["ab"], [bytearray(b"ab")], np.array(["ab"]), np.array([b"ab"], object), np.bytes_(b"ab")]
)
def test_byte_strings(value):
    assert io.decode_example(io.encode_example({"x": value})) == {"x": [b"ab"]}


@pytest.mark.parametrize(
    "value", [2**63, [7, 2**63 + 1024], [7, np.uint64(2**63)], [1, -(2**63) - 1], np.uint64([2**63]), 2**70]
)
def test_integers_beyond_int64(value):
    with pytest.raises(InvalidArgumentError, match="of feature 'x' does not fit int64"):
        io.encode_example({"x": value})


@pytest.mark.parametrize(
    "value", [None, [b"a", 1], [1, "a"], 1j, object(), [None], np.datetime64("2020-01-01"), {1: 2}]
)
def test_what_is_no_feature(value):
    with pytest.raises(InvalidTypeError, match="'x'"):
        io.encode_example({"x": value})


def test_lists_of_differing_length():
    with pytest.raises(InvalidArgumentError, match="nested lists of differing length"):
        io.encode_example({"x": [[1], [2, 3]]})


def test_names_are_text():
    with pytest.raises(InvalidTypeError, match="name of a feature is text"):
        io.encode_example({1: 2})


@given(st.lists(st.integers(INT64.min, INT64.max), max_size=80))
def test_varints(values):
    array = np.array(values, np.int64)
    spelled = encode_varints(array)
    assert spelled == b"".join(encode_varint(value % 2**64) for value in values)
    assert np.array_equal(packed_varints(spelled, 0, len(spelled)), array)


def test_classes():
    example = io.Example({"a": 1})
    assert example.SerializeToString() == io.encode_example({"a": 1})
    assert repr(io.Example.FromString(example.SerializeToString())) == "Example({'a': array([1])})"
    sequence = io.SequenceExample({"a": 1}, {"s": [[1], []]})
    assert sequence.SerializeToString() == io.encode_sequence_example({"a": 1}, {"s": [[1], []]})
    found = io.SequenceExample.FromString(sequence.SerializeToString())
    assert [part.__class__ for part in found.feature_lists["s"]] == [np.ndarray, list]  # of no kind


EMPTY = {"bytes": "0a00", "floats": "1200", "integers": "1a00", "nothing": ""}


@pytest.mark.parametrize("content", EMPTY.values(), ids=EMPTY)
def test_an_empty_feature_keeps_its_kind(content):
    """Decoded and encoded again it is the same message, in an Example, a context and a step."""
    feature = b"\x12" + bytes([len(content) // 2]) + bytes.fromhex(content)
    features = b"\x0a" + bytes([len(feature) + 3]) + b"\x0a\x01k" + feature
    example = b"\x0a" + bytes([len(features)]) + features
    assert io.encode_example(io.decode_example(example)) == example
    steps = (b"\x0a" + feature[1:]) * 2
    lists = b"\x0a\x01k\x12" + bytes([len(steps)]) + steps
    sequence = example + bytes([0x12, len(lists) + 2, 0x0A, len(lists)]) + lists
    assert io.encode_sequence_example(*io.decode_sequence_example(sequence)) == sequence
    assert [len(step) for step in io.decode_sequence_example(sequence)[1]["k"]] == [0, 0]


def test_sequence_bytes_are_protobufs():
    assert io.encode_sequence_example({"id": 7}, {"fr": [[1, 2], [3, 4]]}).hex() == (
        "0a0d0a0b0a026964" + "12051a030a0107" + "12180a160a026672" + "1210" + "0a061a040a020102" + "0a061a040a020304"
    )


def test_what_is_no_feature_list():
    with pytest.raises(InvalidTypeError, match="one feature per step"):
        io.encode_sequence_example({}, {"s": b"abc"})


@pytest.mark.parametrize("decode", [io.decode_example, io.decode_sequence_example])
@pytest.mark.parametrize(
    "data", [b"\xff", b"\x0a\x05", b"\x00\x00", b"\x0b", b"\x0a\x05\x0a\x03\x0a\x01\xff", b"\x0d\x00", b"\x80" * 11]
)
def test_what_is_no_message(decode, data):
    with pytest.raises(DataLossError, match=r"not a serialized tf\.train\."):
        decode(data)


def test_only_bytes_are_decoded():
    with pytest.raises(InvalidTypeError, match="is bytes, got str"):
        io.decode_example("text")
    assert io.decode_example(bytearray(b"")) == {}
