"""The compiled parser and the plain one accept the same bytes, give the same values and raise the same errors."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import io
from penstock.errors import DataLossError, PenstockError
from penstock.io import batch as parsing
from penstock.io.expected import expect


def beside(name):
    found = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


records, mutants = beside("records"), beside("mutants")
check, plain = mutants.check, mutants.plain
ALL_KINDS = {
    "id": io.FixedLenFeature((), np.int64, 5),
    "words": io.FixedLenFeature((2,), bytes, [b"x", b"yz"]),
    "list": io.VarLenFeature(np.float32),
    "strings": io.VarLenFeature(bytes),
    "steps": io.FixedLenSequenceFeature((2,), np.int64, allow_missing=True),
    "rows": io.RaggedFeature(bytes),
    "parts": io.RaggedFeature(np.int64, "list_of_parts", [io.RaggedFeature.RowLengths("sizes")]),
}
MUTANT_SPEC, mutated, originals = mutants.MUTANT_SPEC, mutants.mutated, mutants.originals


class Unready:
    """Kernels that are not there."""

    def loaded(self):
        return None


@pytest.fixture(scope="module", autouse=True)
def _compiled():
    """Without the kernel the plain parser would be held against itself."""
    parsing._KERNEL.loaded()


@settings(max_examples=max(100, settings.default.max_examples))
@given(st.data())
def test_any_spelling(data):
    features = data.draw(records.spec())
    dtypes = {
        name: feature.dtype if feature.dtype is bytes else feature.dtype.type for name, feature in features.items()
    }
    check(data.draw(st.lists(records.example(dtypes), min_size=1, max_size=5)), features)


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
            assert mutants.same(batch[name], dense)
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


@pytest.mark.parametrize("kernels", [parsing._KERNEL, Unready()], ids=["compiled", "plain"])
def test_records_outside_the_buffer(kernels, monkeypatch):
    monkeypatch.setattr(parsing, "_KERNEL", kernels)
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


@settings(max_examples=max(80, settings.default.max_examples))
@given(st.data())
def test_while_the_kernel_is_compiled(data):
    features = data.draw(records.spec())
    dtypes = {name: one.dtype if one.dtype is bytes else one.dtype.type for name, one in features.items()}
    drawn = data.draw(st.lists(records.example(dtypes), max_size=5))
    kept = [record for record, row in zip(drawn, plain(drawn, features), strict=True) if isinstance(row, dict)]
    assert_plain_is_fast(kept, features)


@pytest.mark.parametrize("count", [0, 1, 5])
def test_all_kinds_while_the_kernel_is_compiled(count):
    rows = [
        {"id": i, "words": ["a", "b" * i], "list": [0.5] * i, "strings": ["s"] * (3 - i % 3), "steps": [1, 2] * i}
        | {"rows": ["r"] * (i % 2), "list_of_parts": list(range(i)), "sizes": [1] * i}
        for i in range(count)
    ]
    assert_plain_is_fast([io.encode_example(row) for row in rows] + [b""] * (count // 2), ALL_KINDS)


def assert_plain_is_fast(serialized, features):
    buffers, which, starts, lengths = several(np.random.default_rng(len(serialized)), serialized, 2)
    fast = parsing.parse_strings(buffers, which, starts, lengths, expect(features))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parsing, "_KERNEL", Unready())
        slow = parsing.parse_strings(buffers, which, starts, lengths, expect(features))
    for name, column in fast.items():
        assert type(slow[name]) is type(column)
        assert len(slow[name]) == len(column)
        assert mutants.same(slow[name].batched(), column.batched())
        for one, other in zip(slow[name].singles(), column.singles(), strict=True):
            assert mutants.same(one, other)


@pytest.mark.parametrize("kernels", [parsing._KERNEL, Unready()], ids=["compiled", "plain"])
def test_a_refused_record_is_named_in_both(kernels, monkeypatch):
    monkeypatch.setattr(parsing, "_KERNEL", kernels)
    with pytest.raises(DataLossError) as caught:
        io.parse_example([io.encode_example({"id": 1}), b"\xff"], {"id": ALL_KINDS["id"]})
    assert caught.value.context.element == 1


def several(rng, serialized, count):
    """Records in several buffers, and beside one another in one."""
    return apart(serialized, rng.integers(count, size=len(serialized)).astype(np.int32), count)


def apart(serialized, which, count):
    parts = [[record for record, number in zip(serialized, which, strict=True) if number == k] for k in range(count)]
    starts = np.empty(len(serialized), np.int64)
    lengths = np.array([len(record) for record in serialized], np.int64)
    for k in range(count):
        own = lengths[which == k]
        starts[which == k] = np.cumsum(own) - own
    return tuple(np.frombuffer(b"".join(part), np.uint8) for part in parts), which, starts, lengths


FIXED_SPEC = {name: MUTANT_SPEC[name] for name in ["id", "score", "image", "box", "a_name_of_more_than_sixteen_bytes"]}


@pytest.mark.parametrize("count", [1, 3, 30])
@pytest.mark.parametrize("features", [FIXED_SPEC, MUTANT_SPEC], ids=["fixed", "lists"])
def test_records_in_several_buffers(count, features):
    rng = np.random.default_rng(count)
    serialized = list(originals(rng)) + [io.encode_example({"id": 3, "box": [1.0] * 4})] * 3
    buffers, which, starts, lengths = several(rng, serialized, count)
    columns = parsing.parse_strings(buffers, which, starts, lengths, expect(features))
    wanted = plain(serialized, features)
    for name, column in columns.items():
        for one, other in zip(wanted, column.singles(), strict=True):
            assert mutants.same(one[name], other)
    picture = columns["image"]
    if count < 8:
        assert all(any(buffer is own for own in picture.buffers) for buffer in buffers)  # nothing was copied
    else:
        assert len(picture.buffers) <= 2  # what is kept alive is what is needed, and the default


def outcome(parse):
    """The rows of each column, or what the error says."""
    try:
        return {name: column.singles() for name, column in parse().items()}
    except PenstockError as error:
        return type(error), error.message, error.context.element


@settings(max_examples=max(100, settings.default.max_examples))
@given(st.data())
def test_several_buffers_give_what_one_gives(data):
    features = data.draw(records.spec())
    dtypes = {name: one.dtype if one.dtype is bytes else one.dtype.type for name, one in features.items()}
    drawn = data.draw(st.lists(records.example(dtypes), max_size=8))
    if data.draw(st.booleans()):
        drawn = [record for record, row in zip(drawn, plain(drawn, features), strict=True) if isinstance(row, dict)]
    drawn *= data.draw(st.integers(1, 3))  # what is seen again is read by what was remembered
    count = data.draw(st.integers(1, 12))
    which = data.draw(st.lists(st.integers(0, count - 1), min_size=len(drawn), max_size=len(drawn)))
    buffers, which, starts, lengths = apart(drawn, np.array(which, np.int32), count)
    scattered = outcome(lambda: parsing.parse_strings(buffers, which, starts, lengths, expect(features)))
    whole = np.frombuffer(b"".join(drawn), np.uint8)
    together = outcome(lambda: io.parse_columns(whole, np.cumsum(lengths) - lengths, lengths, features))
    assert type(scattered) is type(together)
    if isinstance(together, tuple):
        assert scattered == together
        return
    for name, rows in together.items():
        assert len(scattered[name]) == len(rows)
        assert all(mutants.same(one, other) for one, other in zip(rows, scattered[name], strict=True))


def test_a_record_of_no_buffer_is_refused():
    record = np.frombuffer(io.encode_example({"id": 1}), np.uint8)
    features, place, length = {"id": ALL_KINDS["id"]}, np.array([0]), np.array([len(record)])
    for number in (1, -2, 2**31 - 1):
        with pytest.raises(IndexError):
            parsing.parse_strings((record,), np.array([number], np.int32), place, length, expect(features))


def test_the_first_refused_record_of_several_buffers():
    rng = np.random.default_rng(0)
    serialized = list(originals(rng))
    for bad in [(17,), (9, 4), (3, 12, 19)]:
        damaged = [record if i not in bad else record[:9] for i, record in enumerate(serialized)]
        buffers, which, starts, lengths = several(rng, damaged, 3)
        with pytest.raises(DataLossError) as caught:
            parsing.parse_strings(buffers, which, starts, lengths, expect(FIXED_SPEC))
        assert caught.value.context.element == min(bad)


def test_orders_that_drift():
    """Features are left out, doubled, swapped and added from record to record."""
    rng = np.random.default_rng(5)
    kinds = [np.int64, np.float32, bytes]
    features = {f"name_{i}" * (1 + i % 3): io.FixedLenFeature((), kinds[i % 3], kinds[i % 3](3)) for i in range(9)}
    features["list"] = io.RaggedFeature(np.int64)
    found = []
    for i in range(300):
        names = [*features, "unknown", f"strange_{i % 3}"]
        if i % 4 == 1:
            names = [name for name in names if rng.random() < 0.8]
        if i % 4 == 2:
            names.insert(int(rng.integers(len(names))), names[int(rng.integers(len(names)))])
        if i % 16 == 3:
            names = rng.permutation(names).tolist()
        entries = []
        for name in names:
            kind = features[name].dtype if name in features else np.int64
            value = rng.bytes(3) if kind is bytes else int(rng.integers(1000)) if kind == np.int64 else rng.random()
            entries.append(records.field(0x0A, io.encode_example({name: value})[4:]))
        found.append(records.field(0x0A, b"".join(entries)))
    assert check(found, features) == len(found)


@pytest.mark.parametrize("dtype", [bytes, np.int64, np.float32])
def test_lengths_around_the_second_byte(dtype):
    """From 128 on the length of an entry, of its key or of its value takes two bytes."""
    found, features = [], {}
    for size in [*range(26), *range(100, 135)]:
        name = f"{size:03d}" + "k" * (size - 3) if size >= 3 else "k" * size
        features[name] = io.FixedLenFeature((), dtype, b"none" if dtype is bytes else 7)
    for size in range(0, 130, 7):
        value = b"v" * size if dtype is bytes else (1 << min(size, 62)) if dtype is np.int64 else size / 3
        record = io.encode_example(dict.fromkeys(features, value))
        found += [record, record]
    assert check(found, features) == len(found)


def test_columns_are_of_the_kind_of_their_feature():
    records_ = [io.encode_example({"n": [1, 2], "b": [b"x"], "v": [3]}), io.encode_example({"n": [4, 5], "b": [b"yz"]})]
    buffer, lengths = np.frombuffer(b"".join(records_), np.uint8), np.array([len(one) for one in records_])
    ragged = io.RaggedFeature(np.int64, "v", partitions=[io.RaggedFeature.UniformRowLength(1)])
    features = {
        "n": io.FixedLenFeature((2,), np.int64),
        "b": io.FixedLenFeature((), bytes),
        "v": io.VarLenFeature(np.int64),
        "r": ragged,
    }
    found = io.parse_columns(buffer, np.cumsum(lengths) - lengths, lengths, features)
    kinds = {"n": io.DenseValues, "b": io.BytesValues, "v": io.FlatValues, "r": io.PartitionedValues}
    assert {name: type(column) for name, column in found.items()} == kinds
    assert all(isinstance(column, io.ParsedColumn) for column in found.values())
