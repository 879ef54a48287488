"""Example and SequenceExample: encoded, decoded and parsed by both, on a table of descriptions and awkward records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

import penstock as ps
from _parity.check import Check, same, same_or_both_refuse

INTS = (0, 1, -1, 127, 128, 2**31, -(2**31), 2**63 - 1, -(2**63))


def _numbers(*values: int) -> tf.train.Feature:
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def _floats(*values: float) -> tf.train.Feature:
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def _strings(*values: bytes) -> tf.train.Feature:
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def _example(**features: tf.train.Feature) -> bytes:
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


RECORDS = (
    _example(a=_numbers(5), b=_floats(0.5, -1.5), c=_strings(b"x"), n=_numbers(2, 0), s=_numbers(0, 1, 2)),
    _example(a=_numbers(6), b=_floats(1.0, 2.0), c=_strings(b""), n=_numbers(1, 1), s=_numbers(0, 2, 2)),
    _example(a=_numbers(*INTS), b=_floats(float("nan"), float("inf"), -0.0, 1e-45), c=_strings(b"\xff\x00", b"long" * 99)),
    _example(a=_numbers(1, 2, 3, 4), b=_floats(1, 2, 3, 4), n=_numbers(1, 3), s=_numbers(0, 1, 4)),
    _example(a=_numbers(), b=_floats(), c=_strings(), n=_numbers(), s=_numbers(0)),
    _example(a=tf.train.Feature(), b=tf.train.Feature()),
    _example(b=_numbers(1), a=_floats(1.0), c=_numbers(3)),
    _example(other=_strings(b"unknown"), a=_numbers(7)),
    _example(n=_numbers(2, 2), s=_numbers(0, 2, 4), a=_numbers(1, 2, 3, 4), b=_floats(*range(8)), c=_strings(*[b"w"] * 4)),
    _example(n=_numbers(5), s=_numbers(0, 9), a=_numbers(1, 2)),
    _example(n=_numbers(-1, 3), s=_numbers(3, 1), a=_numbers(1, 2)),
    b"",
    b"\x0a",
    b"\xff\xff\xff",
    _example(a=_numbers(300), b=_floats(0.5, 1.5))[:-1],
)

_I, _F, _S = "int64", "float32", "string"
_OURS = {_I: np.int64, _F: np.float32, _S: bytes}
_THEIRS = {_I: tf.int64, _F: tf.float32, _S: tf.string}

# Each entry: the class's name, and its arguments with dtypes by name and partitions as (class, argument).
DESCRIPTIONS: tuple[dict[str, tuple[str, dict[str, Any]]], ...] = (
    {"a": ("FixedLenFeature", {"shape": (), "dtype": _I})},
    {"a": ("FixedLenFeature", {"shape": (), "dtype": _I, "default_value": 9})},
    {"a": ("FixedLenFeature", {"shape": (4,), "dtype": _I})},
    {"a": ("FixedLenFeature", {"shape": (2, 2), "dtype": _I, "default_value": [[1, 2], [3, 4]]})},
    {"b": ("FixedLenFeature", {"shape": (2,), "dtype": _F})},
    {"b": ("FixedLenFeature", {"shape": (1, 2), "dtype": _F, "default_value": [[0.25, 1]]})},
    {"c": ("FixedLenFeature", {"shape": (), "dtype": _S})},
    {"c": ("FixedLenFeature", {"shape": (1,), "dtype": _S, "default_value": [b"none"]})},
    {"a": ("FixedLenFeature", {"shape": (0,), "dtype": _I})},
    {"a": ("VarLenFeature", {"dtype": _I})},
    {"b": ("VarLenFeature", {"dtype": _F})},
    {"c": ("VarLenFeature", {"dtype": _S})},
    {"zz": ("VarLenFeature", {"dtype": _I})},
    {"a": ("FixedLenSequenceFeature", {"shape": (), "dtype": _I, "allow_missing": True})},
    {"a": ("FixedLenSequenceFeature", {"shape": (2,), "dtype": _I, "allow_missing": True, "default_value": -7})},
    {"b": ("FixedLenSequenceFeature", {"shape": (2, 1), "dtype": _F, "allow_missing": True})},
    {"c": ("FixedLenSequenceFeature", {"shape": (), "dtype": _S, "allow_missing": True, "default_value": b"?"})},
    {"a": ("RaggedFeature", {"dtype": _I})},
    {"b": ("RaggedFeature", {"dtype": _F})},
    {"c": ("RaggedFeature", {"dtype": _S})},
    {"x": ("RaggedFeature", {"dtype": _I, "value_key": "a", "partitions": [("RowLengths", "n")]})},
    {"x": ("RaggedFeature", {"dtype": _I, "value_key": "a", "partitions": [("RowSplits", "s")]})},
    {"x": ("RaggedFeature", {"dtype": _I, "value_key": "a", "partitions": [("UniformRowLength", 2)]})},
    {"x": ("RaggedFeature", {"dtype": _F, "value_key": "b", "partitions": [("RowLengths", "n"), ("UniformRowLength", 2)]})},
    {"x": ("RaggedFeature", {"dtype": _I, "value_key": "a", "partitions": [("UniformRowLength", 2), ("RowLengths", "n")]})},
    {"x": ("RaggedFeature", {"dtype": _S, "value_key": "c", "partitions": [("RowSplits", "s")], "row_splits_dtype": _I})},
    {
        "a": ("FixedLenFeature", {"shape": (), "dtype": _I, "default_value": 0}),
        "b": ("VarLenFeature", {"dtype": _F}),
        "c": ("RaggedFeature", {"dtype": _S}),
        "n": ("FixedLenSequenceFeature", {"shape": (), "dtype": _I, "allow_missing": True}),
    },
)


def _described(module: Any, dtypes: dict[str, Any], description: dict[str, tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    found = {}
    for name, (kind, arguments) in description.items():
        settings = {key: dtypes[v] if key.endswith("dtype") else v for key, v in arguments.items()}
        if "row_splits_dtype" in settings:
            settings["row_splits_dtype"] = dtypes[_I]
        if kind == "RaggedFeature":
            settings["validate"] = True  # penstock always does
        partitions = settings.pop("partitions", None)
        if partitions is not None:
            settings["partitions"] = [getattr(module.RaggedFeature, p)(value) for p, value in partitions]
        found[name] = getattr(module, kind)(**settings)
    return found


def _both(description: dict[str, tuple[str, dict[str, Any]]]) -> tuple[dict[str, Any], dict[str, Any]]:
    return _described(ps.io, _OURS, description), _described(tf.io, _THEIRS, description)


def single() -> int:
    """Every record under every description."""
    for description in DESCRIPTIONS:
        ours, theirs = _both(description)
        for number, record in enumerate(RECORDS):
            same_or_both_refuse(
                f"parse_single_example(record {number}, {description})",
                lambda: ps.io.parse_single_example(record, ours),  # noqa: B023  # called before the next turn
                lambda: tf.io.parse_single_example(record, theirs),  # noqa: B023
            )
    return len(DESCRIPTIONS) * len(RECORDS)


def _batches() -> Iterator[list[bytes]]:
    rng = np.random.default_rng(0)
    yield []
    yield from ([record] for record in RECORDS)
    for _ in range(20):
        yield [RECORDS[i] for i in rng.integers(len(RECORDS), size=rng.integers(2, 5))]
    for first in (0, 1, 3):
        yield [RECORDS[first]] * 3


def batched() -> int:
    """Random batches of the records under every description."""
    count = 0
    for description in DESCRIPTIONS:
        ours, theirs = _both(description)
        for batch in _batches():
            count += 1
            same_or_both_refuse(
                f"parse_example({[RECORDS.index(record) for record in batch]}, {description})",
                lambda: ps.io.parse_example(batch, ours),  # noqa: B023
                lambda: tf.io.parse_example(tf.constant(batch, tf.string), theirs),  # noqa: B023
            )
    return count


def encoded() -> int:
    """Ours is read by protobuf, protobuf's by us, and both give the same bytes where keys are in order."""
    features: dict[str, Any] = {"a": list(INTS), "b": np.array([0.5, -1e30], np.float32), "c": [b"x", b"", b"\xff"], "d": []}
    ours = ps.io.encode_example(features)
    theirs = tf.train.Example.FromString(ours)
    same("a", list(theirs.features.feature["a"].int64_list.value), list(INTS))
    same("b", np.array(theirs.features.feature["b"].float_list.value, np.float32), features["b"])
    same("c", list(theirs.features.feature["c"].bytes_list.value), features["c"])
    same("decode_example", ps.io.decode_example(theirs.SerializeToString()), ps.io.decode_example(ours))
    same("bytes", ours, theirs.SerializeToString(deterministic=True))
    return 5


def _sequence() -> tf.train.SequenceExample:
    lists = {
        "w": tf.train.FeatureList(feature=[_strings(b"a", b"b"), _strings(), _strings(b"c")]),
        "x": tf.train.FeatureList(feature=[_floats(1, 2), _floats(3, 4)]),
        "e": tf.train.FeatureList(),
    }
    context = tf.train.Features(feature={"id": _numbers(7)})
    return tf.train.SequenceExample(context=context, feature_lists=tf.train.FeatureLists(feature_list=lists))


SEQUENCES: tuple[dict[str, tuple[str, dict[str, Any]]], ...] = (
    {"x": ("FixedLenSequenceFeature", {"shape": (2,), "dtype": _F})},
    {"x": ("FixedLenSequenceFeature", {"shape": (), "dtype": _F})},
    {"w": ("VarLenFeature", {"dtype": _S})},
    {"w": ("RaggedFeature", {"dtype": _S})},
    {"w": ("FixedLenSequenceFeature", {"shape": (1,), "dtype": _S})},
    {"e": ("FixedLenSequenceFeature", {"shape": (), "dtype": _I})},
    {"zz": ("FixedLenSequenceFeature", {"shape": (), "dtype": _I})},
    {"zz": ("FixedLenSequenceFeature", {"shape": (3,), "dtype": _I, "allow_missing": True})},
    {"zz": ("VarLenFeature", {"dtype": _I})},
)


def sequences() -> int:
    """SequenceExample: encoded and decoded both ways, parsed under a table of descriptions."""
    theirs = _sequence()
    record = theirs.SerializeToString(deterministic=True)
    ours = ps.io.encode_sequence_example(*ps.io.decode_sequence_example(record))
    same("a round trip", tf.train.SequenceExample.FromString(ours) == theirs, True)
    context: dict[str, tuple[str, dict[str, Any]]] = {"id": ("FixedLenFeature", {"shape": (), "dtype": _I})}
    our_context, their_context = _both(context)
    for description in SEQUENCES:
        our_lists, their_lists = _both(description)
        for number, data in enumerate((record, record[:-1], b"")):
            same_or_both_refuse(
                f"parse_single_sequence_example({number}, {description})",
                lambda: ps.io.parse_single_sequence_example(data, our_context, our_lists),  # noqa: B023
                lambda: tf.io.parse_single_sequence_example(data, their_context, their_lists),  # noqa: B023
            )
    return 1 + 3 * len(SEQUENCES)




CHECKS = (
    Check("Example, encoded and decoded", encoded),
    Check("parse_single_example", single),
    Check("parse_example", batched),
    Check("SequenceExample", sequences),
)
