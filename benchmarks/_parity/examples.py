"""Example and SequenceExample: encoded, decoded and parsed by both, with many descriptions and unusual records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

import penstock as ps
from _parity.check import Check, Comparer, outcome

ODD = (float("nan"), float("inf"), -0.0, 1e-45)
INTS = (0, 1, -1, 127, 128, 2**31, -(2**31), 2**63 - 1, -(2**63))


def _numbers(*values: int) -> tf.train.Feature:
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def _floats(*values: float) -> tf.train.Feature:
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def _strings(*values: bytes) -> tf.train.Feature:
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def _example(**features: tf.train.Feature) -> bytes:
    return bytes(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())


RECORDS = (
    _example(a=_numbers(5), b=_floats(0.5, -1.5), c=_strings(b"x"), n=_numbers(2, 0), s=_numbers(0, 1, 2)),
    _example(a=_numbers(6), b=_floats(1.0, 2.0), c=_strings(b""), n=_numbers(1, 1), s=_numbers(0, 2, 2)),
    _example(a=_numbers(*INTS), b=_floats(*ODD), c=_strings(b"\xff\x00", b"long" * 99)),
    _example(a=_numbers(1, 2, 3, 4), b=_floats(1, 2, 3, 4), n=_numbers(1, 3), s=_numbers(0, 1, 4)),
    _example(a=_numbers(), b=_floats(), c=_strings(), n=_numbers(), s=_numbers(0)),
    _example(a=tf.train.Feature(), b=tf.train.Feature()),
    _example(b=_numbers(1), a=_floats(1.0), c=_numbers(3)),
    _example(other=_strings(b"unknown"), a=_numbers(7)),
    _example(
        n=_numbers(2, 2), s=_numbers(0, 2, 4), a=_numbers(1, 2, 3, 4), b=_floats(*range(8)), c=_strings(*[b"w"] * 4)
    ),
    _example(n=_numbers(5), s=_numbers(0, 9), a=_numbers(1, 2)),
    _example(n=_numbers(-1, 3), s=_numbers(3, 1), a=_numbers(1, 2)),
    b"",
    b"\x0a",
    b"\xff\xff\xff",
    _example(a=_numbers(300), b=_floats(0.5, 1.5))[:-1],
)

Described = dict[str, tuple[str, dict[str, Any]]]  # name -> (class, arguments)
WITHOUT_SPLITS = (5, 6, 7, 11, 14)  # numbers of the records without a feature `s`

_I, _F, _S = "int64", "float32", "string"
_OURS = {_I: np.int64, _F: np.float32, _S: bytes}
_THEIRS = {_I: tf.int64, _F: tf.float32, _S: tf.string}


def _divided(dtype: str, values: str, *partitions: tuple[str, Any], **more: str) -> Described:
    return {"x": ("RaggedFeature", {"dtype": dtype, "value_key": values, "partitions": list(partitions), **more})}


# Dtypes are given by name, partitions as (class, argument).
DESCRIPTIONS: tuple[Described, ...] = (
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
    _divided(_I, "a", ("RowLengths", "n")),
    _divided(_I, "a", ("RowSplits", "s")),
    _divided(_I, "a", ("UniformRowLength", 2)),
    _divided(_F, "b", ("RowLengths", "n"), ("UniformRowLength", 2)),
    _divided(_I, "a", ("UniformRowLength", 2), ("RowLengths", "n")),
    _divided(_S, "c", ("RowSplits", "s"), row_splits_dtype=_I),
    {
        "a": ("FixedLenFeature", {"shape": (), "dtype": _I, "default_value": 0}),
        "b": ("VarLenFeature", {"dtype": _F}),
        "c": ("RaggedFeature", {"dtype": _S}),
        "n": ("FixedLenSequenceFeature", {"shape": (), "dtype": _I, "allow_missing": True}),
    },
)


def _described(module: Any, dtypes: dict[str, Any], description: Described) -> dict[str, Any]:
    found = {}
    for name, (kind, arguments) in description.items():
        settings = {key: dtypes[v] if key.endswith("dtype") else v for key, v in arguments.items()}
        if "row_splits_dtype" in settings:
            settings["row_splits_dtype"] = dtypes[_I]
        if kind == "RaggedFeature":
            settings["validate"] = True  # penstock always validates
        partitions = settings.pop("partitions", None)
        if partitions is not None:
            settings["partitions"] = [getattr(module.RaggedFeature, p)(value) for p, value in partitions]
        found[name] = getattr(module, kind)(**settings)
    return found


def _both(description: Described) -> tuple[dict[str, Any], dict[str, Any]]:
    return _described(ps.io, _OURS, description), _described(tf.io, _THEIRS, description)


def single(compare: Comparer) -> None:
    """Compare each record with each description.

    Missing row splits mean no rows in penstock, and in TensorFlow for a batch. TensorFlow's `parse_single_example`
    refuses them, so this check uses a batch of one record instead.
    """
    for description in DESCRIPTIONS:
        ours, theirs = _both(description)
        with_splits = any(("RowSplits", "s") in a.get("partitions", ()) for _, a in description.values())
        for number, record in enumerate(RECORDS):
            by_batch = with_splits and number in WITHOUT_SPLITS
            compare.same_or_both_refuse(
                f"parse_single_example(record {number}, {description})",
                lambda: ps.io.parse_single_example(record, ours),  # noqa: B023  # called before the next iteration
                lambda: _alone(record, theirs, by_batch=by_batch),  # noqa: B023
            )


def _alone(record: bytes, features: dict[str, Any], *, by_batch: bool) -> Any:
    if not by_batch:
        return tf.io.parse_single_example(record, features)
    return {name: batch[0] for name, batch in tf.io.parse_example([record], features).items()}


def _batches() -> Iterator[list[bytes]]:
    rng = np.random.default_rng(0)
    yield []
    yield from ([record] for record in RECORDS)
    for _ in range(20):
        yield [RECORDS[i] for i in rng.integers(len(RECORDS), size=rng.integers(2, 5))]
    for first in (0, 1, 3):
        yield [RECORDS[first]] * 3


def batched(compare: Comparer) -> None:
    """Compare random batches of the records with each description.

    TensorFlow checks partitions against the values of the whole batch, and may then move values between records.
    penstock refuses a batch if it refuses one of its records alone.
    """
    for description in DESCRIPTIONS:
        ours, theirs = _both(description)
        refused = {r for r in RECORDS if outcome(lambda: tf.io.parse_example([r], theirs))[1] is not None}  # noqa: B023
        for batch in _batches():
            compare.same_or_both_refuse(
                f"parse_example({[RECORDS.index(record) for record in batch]}, {description})",
                lambda: ps.io.parse_example(batch, ours),  # noqa: B023
                lambda: tf.io.parse_example(tf.constant(batch, tf.string), theirs),  # noqa: B023
                may_refuse=not refused.isdisjoint(batch),
            )


def encoded(compare: Comparer) -> None:
    """Check that protobuf reads penstock's records, and the reverse, and that both write the same bytes."""
    features: dict[str, Any] = {
        "a": list(INTS),
        "b": np.array([0.5, -1e30], np.float32),
        "c": [b"x", b"", b"\xff"],
        "d": [],
    }
    ours = ps.io.encode_example(features)
    theirs = tf.train.Example.FromString(ours)
    compare.same("a", list(theirs.features.feature["a"].int64_list.value), list(INTS))
    compare.same("b", np.array(theirs.features.feature["b"].float_list.value, np.float32), features["b"])
    compare.same("c", list(theirs.features.feature["c"].bytes_list.value), features["c"])
    compare.same("decode_example", ps.io.decode_example(theirs.SerializeToString()), ps.io.decode_example(ours))
    compare.same("bytes", ours, theirs.SerializeToString(deterministic=True))


def _sequence() -> tf.train.SequenceExample:
    lists = {
        "w": tf.train.FeatureList(feature=[_strings(b"a", b"b"), _strings(), _strings(b"c")]),
        "x": tf.train.FeatureList(feature=[_floats(1, 2), _floats(3, 4)]),
        "e": tf.train.FeatureList(),
    }
    context = tf.train.Features(feature={"id": _numbers(7)})
    return tf.train.SequenceExample(context=context, feature_lists=tf.train.FeatureLists(feature_list=lists))


SEQUENCES: tuple[Described, ...] = (
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


def sequences(compare: Comparer) -> None:
    """Compare SequenceExample, encoded and parsed by both, with many descriptions."""
    record = _sequence().SerializeToString(deterministic=True)
    ours = ps.io.encode_sequence_example(*ps.io.decode_sequence_example(record))
    compare.same("encoded again", ours, record)
    context: Described = {"id": ("FixedLenFeature", {"shape": (), "dtype": _I})}
    our_context, their_context = _both(context)
    for description in SEQUENCES:
        our_lists, their_lists = _both(description)
        for number, data in enumerate((record, ours, record[:-1], b"")):
            compare.same_or_both_refuse(
                f"parse_single_sequence_example({number}, {description})",
                lambda: ps.io.parse_single_sequence_example(data, our_context, our_lists),  # noqa: B023
                lambda: tf.io.parse_single_sequence_example(data, their_context, their_lists),  # noqa: B023
            )


CHECKS = (
    Check("Example, encoded and decoded", encoded),
    Check("parse_single_example", single),
    Check("parse_example", batched),
    Check("SequenceExample", sequences),
)
