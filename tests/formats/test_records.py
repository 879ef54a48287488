"""convert to TFRecord and WebDataset: what is written is read back equal, and what would not be is refused."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.formats.test_targets import rows_of
from tests.golden.golden import assert_golden

import penstock as ps
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.formats import convert

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
INTS = st.integers(-(2**63), 2**63 - 1)
SMALL = st.floats(width=32, allow_nan=False)
SCHEMA = pa.schema(
    {
        "count": pa.int64(),
        "flag": pa.bool_(),
        "image": pa.binary(),
        "ratio": pa.float32(),
        "sizes": pa.list_(pa.int64()),
        "title": pa.string(),
        "weights": pa.list_(pa.float32()),
    }
)
FULL = {
    "count": INTS,
    "flag": st.booleans(),
    "image": st.binary(max_size=6) | st.sampled_from([b"\x89PNG", b"\xff\xd8\xff"]),
    "ratio": SMALL,
    "sizes": st.lists(INTS, max_size=3),
    "title": TEXT,
    "weights": st.lists(SMALL, max_size=3),
}
ROWS = st.lists(st.fixed_dictionaries(FULL), min_size=1, max_size=6)
KEY = st.text("ab/.é\0", max_size=4) | TEXT


def written(folder, rows, schema=SCHEMA):
    pq.write_table(pa.Table.from_pylist(rows, schema), folder / "in.parquet")
    return folder / "in.parquet"


@settings(max_examples=15, deadline=None)
@given(rows=ROWS, shards=st.integers(1, 3))
def test_webdataset(tmp_path_factory, rows, shards):
    folder = tmp_path_factory.mktemp("there")
    convert(written(folder, rows), folder / "out", target_format="webdataset", shards=shards)
    keys = [f"{number:09d}" for number in range(len(rows))]
    assert rows_of(folder / "out") == [{"__key__": key, **row} for key, row in zip(keys, rows, strict=True)]


@settings(max_examples=40, deadline=None)
@given(keys=st.lists(KEY, min_size=1, max_size=4))
def test_a_key_comes_back_or_is_refused(tmp_path_factory, keys):
    folder = tmp_path_factory.mktemp("there")
    rows = [{"__key__": key, "n": number} for number, key in enumerate(keys)]
    source = written(folder, rows, pa.schema({"__key__": pa.string(), "n": pa.int64()}))
    good = all(
        (name := key.rpartition("/")[2]) and not {".", "\0"} & {*name, *key.replace(".", "")} and key != before
        for before, key in zip([None, *keys], keys, strict=False)
    )
    if good:
        convert(source, folder / "out.tar")
        assert rows_of(folder / "out.tar") == rows
    else:
        with pytest.raises(InvalidArgumentError, match="key"):
            convert(source, folder / "out.tar")
        assert not (folder / "out.tar").exists()


@settings(max_examples=15, deadline=None)
@given(
    rows=st.lists(st.fixed_dictionaries({name: st.none() | values for name, values in FULL.items()}), max_size=6),
    shards=st.integers(1, 3),
    compression=st.sampled_from([None, "gzip"]),
)
def test_tfrecord(tmp_path_factory, rows, shards, compression):
    folder = tmp_path_factory.mktemp("there")
    convert(written(folder, rows), folder / "out", target_format="tfrecord", shards=shards, compression=compression)
    files = sorted(str(file) for file in (folder / "out").iterdir())
    found = list(ps.TFRecordDataset(files, compression and "GZIP"))
    assert len(found) == len(rows)
    for record, row in zip(found, rows, strict=True):
        features = dict(ps.io.decode_example(record))
        assert features.keys() == {name for name, value in row.items() if value is not None}
        for name, values in features.items():
            one = row[name].encode() if isinstance(row[name], str) else row[name]
            assert np.asarray(values).tolist() == (one if isinstance(one, list) else [one])


STRINGS = pa.string()
REFUSED = {
    "key_dot": ([{"__key__": "a.b", "n": 1}], {"__key__": STRINGS, "n": pa.int64()}),
    "key_twice": ([{"__key__": "a", "n": 1}] * 2, {"__key__": STRINGS, "n": pa.int64()}),
    "key_number": ([{"__key__": 3, "n": 1}], {"__key__": pa.int64(), "n": pa.int64()}),
    "key_alone": ([{"__key__": "a"}], {"__key__": STRINGS}),
    "no_value": ([{"n": 1}, {"n": None}], {"n": pa.int64()}),
    "column_slash": ([{"a/b": 1}], {"a/b": pa.int64()}),
    "list_null": ([{"n": [1, None]}], {"n": pa.list_(pa.int64())}),
}


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_would_be_read_back_as_something_else(tmp_path, name):
    rows, schema = REFUSED[name]
    with pytest.raises((InvalidArgumentError, InvalidTypeError)) as raised:
        convert(written(tmp_path, rows, pa.schema(schema)), tmp_path / "out.tar")
    assert_golden(f"formats_webdataset_{name}", str(raised.value))
    assert [file.name for file in tmp_path.iterdir()] == ["in.parquet"]


@pytest.mark.parametrize("kind", [pa.int64(), pa.float32(), pa.binary(), pa.string()])
def test_a_null_in_a_list_is_no_feature(tmp_path, kind):
    values = pa.array([[None]], pa.list_(kind))
    pq.write_table(pa.table({"n": values}), tmp_path / "in.parquet")
    with pytest.raises(InvalidArgumentError, match="a list with a null in it"):
        convert(tmp_path / "in.parquet", tmp_path / "out.tfrecord")
