"""The compiled parser and the plain one accept the same bytes, give the same values and raise the same errors."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import io
from penstock.errors import PenstockError

_spec = importlib.util.spec_from_file_location("records", Path(__file__).with_name("records.py"))
records = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(records)


def plain(serialized, features):
    """One result or error per record."""
    found = []
    for record in serialized:
        try:
            found.append(io.parse_single_example(record, features))
        except PenstockError as error:
            found.append(error)
    return found


def fast(serialized, features):
    buffer = np.frombuffer(b"".join(serialized), np.uint8)
    lengths = np.array([len(record) for record in serialized], np.int64)
    columns = io.parse_columns(buffer, np.cumsum(lengths) - lengths, lengths, features)
    singles = {name: column.singles() for name, column in columns.items()}
    return [{name: rows[i] for name, rows in singles.items()} for i in range(len(serialized))]


def check(serialized, features):
    expected = plain(serialized, features)
    errors = [i for i, result in enumerate(expected) if isinstance(result, PenstockError)]
    if errors:
        with pytest.raises(type(expected[errors[0]])) as caught:
            fast(serialized, features)
        assert caught.value.message == expected[errors[0]].message
        assert caught.value.context.element == errors[0]
    good = [
        record for record, result in zip(serialized, expected, strict=True) if not isinstance(result, PenstockError)
    ]
    wanted = [result for result in expected if not isinstance(result, PenstockError)]
    for a, b in zip(fast(good, features), wanted, strict=True):
        assert records.same(a, b), (a, b)
    return len(good)


@settings(max_examples=300)
@given(st.data())
def test_any_spelling(data):
    features = data.draw(records.spec())
    dtypes = {
        name: feature.dtype if feature.dtype is bytes else feature.dtype.type for name, feature in features.items()
    }
    check(data.draw(st.lists(records.example(dtypes), min_size=1, max_size=5)), features)


@settings(max_examples=100)
@given(st.data())
def test_batches_are_made_of_singles(data):
    features = data.draw(records.spec())
    dtypes = {
        name: feature.dtype if feature.dtype is bytes else feature.dtype.type for name, feature in features.items()
    }
    found = data.draw(st.lists(records.example(dtypes), max_size=5))
    kept = [r for r, result in zip(found, plain(found, features), strict=True) if isinstance(result, dict)]
    singles, batch = plain(kept, features), io.parse_example(kept, features)
    for name, feature in features.items():
        rows = [single[name] for single in singles]
        if isinstance(feature, io.FixedLenFeature):
            dense = np.empty((len(rows), *feature.shape), object if feature.dtype is bytes else feature.dtype)
            for i, row in enumerate(rows):
                dense[i] = row
            assert records.same(batch[name], dense)
        elif isinstance(feature, io.RaggedFeature):
            assert batch[name].to_list() == [row.tolist() for row in rows]
        elif isinstance(feature, io.VarLenFeature):
            width = max((row.shape[0] for row in rows), default=0)
            assert batch[name].shape == (len(rows), width)
            for i, row in enumerate(rows):
                assert batch[name].values[batch[name].indices[:, 0] == i].tolist() == row.values.tolist()
        else:
            assert batch[name].shape == (len(rows), max((len(row) for row in rows), default=0), *feature.shape)
            for i, row in enumerate(rows):
                assert batch[name][i, : len(row)].tolist() == row.tolist()
                assert not batch[name][i, len(row) :].any() or feature.dtype is bytes


MUTANT_SPEC = {
    "id": io.FixedLenFeature((), np.int64),
    "score": io.FixedLenFeature((), np.float32, 0.5),
    "image": io.FixedLenFeature((), bytes, b"none"),
    "box": io.FixedLenFeature((4,), np.float32),
    "a_name_of_more_than_sixteen_bytes": io.FixedLenFeature((2,), np.int64, [7, 8]),
    "words": io.VarLenFeature(bytes),
    "tokens": io.RaggedFeature(np.int64),
}


def originals(rng):
    for i in range(20):
        features = {
            "id": int(rng.integers(-(2**63), 2**63 - 1)) >> int(rng.integers(64)),
            "score": rng.random(),
            "image": rng.bytes(int(rng.integers(300))),
            "box": rng.random(4).astype(np.float32),
            "a_name_of_more_than_sixteen_bytes": [i, -i],
            "words": [rng.bytes(3) for _ in range(int(rng.integers(4)))] or np.empty(0, "S1"),
            "tokens": rng.integers(0, 1 << 40, int(rng.integers(6))),
            "not asked for": [1.5],
        }
        order = rng.permutation(list(features)) if i % 2 else list(features)
        yield io.encode_example({str(name): features[str(name)] for name in order})


def mutated(rng, record):
    damaged = bytearray(record)
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(len(damaged))) if damaged else 0
        match int(rng.integers(5)):
            case 0:
                damaged[at : at + 1] = bytes([int(rng.integers(256))])
            case 1:
                del damaged[at : at + int(rng.integers(1, 5))]
            case 2:
                damaged[at:at] = rng.bytes(int(rng.integers(1, 4)))
            case 3:
                del damaged[at:]
            case 4:
                damaged[at : at + 1] = rng.choice([b"\xff", b"\x80", b"\x00", b"\x0a", b"\x12", b"\x1a", b"\x7f"])
    return bytes(damaged)


def test_mutated_records():
    rng = np.random.default_rng(7)
    good = total = 0
    for record in list(originals(rng)) * 10:
        batch = [record, *(mutated(rng, record) for _ in range(20))]
        total += len(batch)
        good += check(batch, MUTANT_SPEC)
    assert total // 20 < good < total  # the mutants are neither all harmless nor all fatal


def test_every_truncation():
    for record in originals(np.random.default_rng(1)):
        check([record[:size] for size in range(0, len(record), 3)], MUTANT_SPEC)


def test_random_bytes():
    rng = np.random.default_rng(3)
    check([rng.bytes(int(rng.integers(40))) for _ in range(500)], MUTANT_SPEC)


def test_lists_that_outgrow_the_guess():
    lengths = [0, 1, 5000, 3, 0, 20000]
    found = [
        io.encode_example({"i": np.arange(n) << 20, "f": np.ones(n, np.float32) * n, "b": [b"x"] * n, "one": 1})
        for n in lengths
    ]
    features = {
        "one": io.FixedLenFeature((), np.int64),
        "i": io.VarLenFeature(np.int64),
        "f": io.RaggedFeature(np.float32),
        "b": io.VarLenFeature(bytes),
    }
    assert check(found, features) == len(lengths)


def test_many_features_and_keys_that_look_alike():
    names = [f"{'x' * (i % 30)}{i:03d}{'y' * (i % 7)}" for i in range(300)]
    found = io.encode_example({name: i for i, name in enumerate(names)})
    assert check([found, found], {name: io.FixedLenFeature((), np.int64) for name in names[::3]}) == 2


def test_records_outside_the_buffer():
    buffer = np.frombuffer(io.encode_example({"a": 1}), np.uint8)
    for start, length in [(-1, 3), (0, len(buffer) + 1), (len(buffer) + 1, 0), (2**62, 2**62), (0, -1)]:
        with pytest.raises(ValueError, match="Record 0 is said to be bytes"):
            io.parse_columns(buffer, np.array([start]), np.array([length]), {"a": io.VarLenFeature(np.int64)})


def test_byte_strings_stay_in_the_buffer():
    found = np.frombuffer(io.encode_example({"image": b"pixels"}), np.uint8)
    column = io.parse_columns(
        found, np.array([0]), np.array([len(found)]), {"image": io.FixedLenFeature((), bytes, b"other")}
    )["image"]
    assert column.buffers[0] is found
    start, length = int(column.starts[0]), int(column.lengths[0])
    assert found[start : start + length].tobytes() == b"pixels"
    assert column.which is None
