"""convert to CSV, JSON Lines, folders of images and of Hugging Face: what is written is read back equal."""

from __future__ import annotations

import json
import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.golden.golden import assert_golden

import penstock as ps
from penstock.errors import PenstockError
from penstock.formats import convert, open_dataset, recognise
from penstock.formats.tables import read_table


def picture(number):
    return ps.image.encode_png(np.full((3, 3, 3), number, np.uint8))


def rows_of(path, format=None):  # noqa: A002 - as convert calls it
    return [row for batch in read_table(recognise(path, format)).batches() for row in batch.to_pylist()]


def written(tmp_path, columns, name="in.parquet"):
    pq.write_table(pa.table(columns), tmp_path / name)
    return tmp_path / name


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
INTS = st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
ROW = st.fixed_dictionaries(
    {
        "id": INTS,
        "text": TEXT.map("t{}".format),
        "score": FLOATS,
        "small": st.floats(width=32, allow_nan=False, allow_infinity=False),
        "yes": st.booleans(),
        "maybe": st.none() | st.integers(-9, 9),
    }
)
SCHEMA = {
    "id": pa.int64(),
    "text": pa.string(),
    "score": pa.float64(),
    "small": pa.float32(),
    "yes": pa.bool_(),
    "maybe": pa.int64(),
}


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(ROW, min_size=1, max_size=8), shards=st.none() | st.integers(1, 3))
@pytest.mark.parametrize("kind", ["csv", "jsonl", "huggingface", "parquet", "arrow"])
def test_what_is_written_is_read_back(tmp_path_factory, kind, rows, shards):
    tmp_path = tmp_path_factory.mktemp("there")
    rows[0]["maybe"] = 7  # a column without a value has no type in a text file
    table = pa.Table.from_pylist(rows, pa.schema(list(SCHEMA.items())))
    pq.write_table(table, tmp_path / "in.parquet")
    convert(tmp_path / "in.parquet", tmp_path / "out", target_format=kind, shards=shards or 1)
    assert [row["id"] for row in rows_of(tmp_path / "out")] == [row["id"] for row in rows]
    found = rows_of(tmp_path / "out")
    for row, back in zip(table.to_pylist(), found, strict=True):
        small = back.pop("small")
        assert np.float32(small) == np.float32(row.pop("small"))
        assert back == row


NESTED = st.fixed_dictionaries(
    {
        "id": INTS,
        "lists": st.lists(FLOATS, max_size=3),
        "inner": st.fixed_dictionaries({"name": TEXT, "box": st.lists(st.integers(0, 9), min_size=2, max_size=2)}),
        "objects": st.lists(st.fixed_dictionaries({"label": INTS, "words": st.lists(TEXT, max_size=2)}), max_size=2),
    }
)
NESTED_SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "lists": pa.list_(pa.float64()),
        "inner": pa.struct({"name": pa.string(), "box": pa.list_(pa.int64())}),
        "objects": pa.list_(pa.struct({"label": pa.int64(), "words": pa.list_(pa.string())})),
    }.items()
)


@settings(max_examples=10, deadline=None)
@given(rows=st.lists(NESTED, min_size=1, max_size=4))
@pytest.mark.parametrize("kind", ["jsonl", "huggingface", "parquet"])
def test_nested_values_are_read_back(tmp_path_factory, kind, rows):
    tmp_path = tmp_path_factory.mktemp("there")
    full = {"id": 1, "lists": [0.5], "inner": {"name": "a", "box": [1, 2]}, "objects": [{"label": 1, "words": ["a"]}]}
    rows = [full, *rows]  # the first row says the types
    pq.write_table(pa.Table.from_pylist(rows, NESTED_SCHEMA), tmp_path / "in.parquet")
    convert(tmp_path / "in.parquet", tmp_path / "out", target_format=kind, shards=1)
    assert rows_of(tmp_path / "out") == rows


def test_csv_keeps_nan_quotes_lines_and_what_looks_like_a_time(tmp_path):
    columns = {"x": [float("nan"), 1.5, math.inf], "t": ['a"b', "c\nd", ""], "d": ["2020-01-01", "", "2021-01-01"]}
    convert(written(tmp_path, columns), tmp_path / "a.csv.gz")
    found = rows_of(tmp_path / "a.csv.gz")
    assert math.isnan(found[0].pop("x"))
    assert found == [{"t": 'a"b', "d": "2020-01-01"}, *({k: v[i] for k, v in columns.items()} for i in (1, 2))]


def test_bytes_that_are_text_and_times_are_text(tmp_path):
    columns = {"word": [b"caf\xc3\xa9"], "at": pa.array([0], pa.timestamp("ms"))}
    convert(written(tmp_path, columns), tmp_path / "a.jsonl")
    assert json.loads((tmp_path / "a.jsonl").read_text("utf-8")) == {"word": "café", "at": "1970-01-01T00:00:00"}
    convert(tmp_path / "in.parquet", tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text("utf-8") == '"word","at"\n"café",1970-01-01 00:00:00.000\n'


def test_columns_are_chosen_in_their_order(tmp_path):
    source = written(tmp_path, {"a": [1], "b": ["x"], "c": [2]})
    convert(source, tmp_path / "a.csv", columns=["c", "a"])
    assert (tmp_path / "a.csv").read_text() == '"c","a"\n2,1\n'


def test_a_folder_of_images_there_and_back(tmp_path):
    for number, name in enumerate(("cat/1.png", "dog/a/2.png", "dog/3.png")):
        (tmp_path / "pets" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "pets" / name).write_bytes(picture(number))
    convert(tmp_path / "pets", tmp_path / "pets.parquet")
    assert open_dataset(tmp_path / "pets.parquet").names == {"label": ["cat", "dog"]}
    assert open_dataset(tmp_path / "pets.parquet").dataset.head(1)[0]["image"] == picture(0)
    done = convert(tmp_path / "pets.parquet", tmp_path / "again", target_format="image_folder")
    assert (done.rows, len(done.files)) == (3, 3)
    assert rows_of(tmp_path / "again") == rows_of(tmp_path / "pets")
    convert(tmp_path / "pets.parquet", tmp_path / "named", target_format="image_folder", columns=["image", "label"])
    assert sorted(str(file.relative_to(tmp_path / "named")) for file in (tmp_path / "named").rglob("*.png")) == [
        "cat/000000000.png",
        "dog/000000001.png",
        "dog/000000002.png",
    ]


def test_labels_without_names_are_sorted_as_their_numbers(tmp_path):
    with ps.io.TFRecordWriter(tmp_path / "a.tfrecord") as writer:
        for label in (2, 10):
            writer.write(ps.io.encode_example({"image": picture(label), "label": label}))
    convert(tmp_path / "a.tfrecord", tmp_path / "out", target_format="image_folder")
    assert ps.ImageFolderDataset(tmp_path / "out").class_names == ["00002", "00010"]
    convert(tmp_path / "a.tfrecord", tmp_path / "flat", target_format="image_folder", columns=["image"])
    assert sorted(file.name for file in (tmp_path / "flat").iterdir()) == ["000000000.png", "000000001.png"]


def test_hugging_face_loads_what_is_written(tmp_path):
    datasets = pytest.importorskip("datasets")
    for name in ("cat/1.png", "dog/2.png"):
        (tmp_path / "pets" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "pets" / name).write_bytes(picture(9))
    convert(tmp_path / "pets", tmp_path / "hf", target_format="huggingface", shards=2)
    loaded = datasets.load_from_disk(str(tmp_path / "hf"))
    assert loaded.features["label"].names == ["cat", "dog"]
    assert np.asarray(loaded[1]["image"]).tolist() == np.full((3, 3, 3), 9).tolist()
    assert [loaded[1][name] for name in ("label", "class_name", "path")] == [1, "dog", "dog/2.png"]
    types = {
        "image": pa.array([picture(1), None]),
        "raw": pa.array([b"\xff", b""]),
        "box": pa.array([[1.0, 2.0]] * 2, pa.list_(pa.float32(), 2)),
        "inner": pa.array([{"a": 1, "b": ["x"]}] * 2),
        "at": pa.array([0, 1], pa.timestamp("us")),
    }
    convert(written(tmp_path, types), tmp_path / "other", target_format="huggingface")
    loaded = datasets.load_from_disk(str(tmp_path / "other"))
    assert loaded.features["image"] == datasets.Image()
    assert loaded[1]["image"] is None
    assert loaded.with_format("arrow")[:].drop_columns(["image"]).equals(pa.table(types).drop_columns(["image"]))
    convert(tmp_path / "other", tmp_path / "back.jsonl", columns=["inner", "box"])
    assert rows_of(tmp_path / "back.jsonl") == [{"inner": {"a": 1, "b": ["x"]}, "box": [1.0, 2.0]}] * 2
    convert(tmp_path / "in.parquet", tmp_path / "other", target_format="huggingface", overwrite=True, columns=["at"])
    assert datasets.load_from_disk(str(tmp_path / "other")).column_names == ["at"]


PICTURE = pa.struct({"bytes": pa.binary(), "path": pa.string()})
IMAGE = [picture(1), picture(2)]


def test_float64_is_rounded_where_that_is_meant(tmp_path):
    nest = pa.array([{"a": 0.1, "b": [0.2]}, None], pa.struct([("a", pa.float64()), ("b", pa.list_(pa.float64()))]))
    source = written(tmp_path, {"x": [0.1, float("nan")], "many": [[0.1, None], []], "nest": nest, "n": [1, 2]})
    convert(source, tmp_path / "a.arrow", float32=True)
    found = rows_of(tmp_path / "a.arrow")
    single = float(np.float32(0.1))
    assert found[0] == {
        "x": single,
        "many": [single, None],
        "nest": {"a": single, "b": [float(np.float32(0.2))]},
        "n": 1,
    }
    assert math.isnan(found[1]["x"])
    convert(written(tmp_path, {"x": [0.1, math.inf]}), tmp_path / "a.tfrecord", float32=True)
    assert rows_of(tmp_path / "a.tfrecord") == [{"x": single}, {"x": math.inf}]
    convert(source, tmp_path / "hf", target_format="huggingface", float32=True)
    noted = json.loads((tmp_path / "hf" / "dataset_info.json").read_text())["features"]
    assert noted["x"] == {"dtype": "float32", "_type": "Value"}


def test_a_folder_of_images_comes_back_from_webdataset(tmp_path):
    for name in ("cat/one.png", "dog/two.png"):
        (tmp_path / "photos" / name).parent.mkdir(parents=True)
        (tmp_path / "photos" / name).write_bytes(picture(len(name)))
    convert(tmp_path / "photos", tmp_path / "photos.tar")
    convert(tmp_path / "photos.tar", tmp_path / "back", target_format="image_folder")
    files = {str(file.relative_to(tmp_path / "back")): file.read_bytes() for file in (tmp_path / "back").rglob("*.png")}
    assert files == {"cat/one.png": picture(11), "dog/two.png": picture(11)}


WRONG = {
    "csv_bytes": ({"x": [b"\xff\xfe"]}, "a.csv", {}),
    "csv_list": ({"x": [[1, 2]]}, "a.csv", {}),
    "csv_missing_text": ({"x": ["a", None], "y": [1, 2]}, "a.csv", {}),
    "csv_missing_alone": ({"x": [1, None]}, "a.csv", {}),
    "jsonl_bytes": ({"x": [b"\xff\xfe"]}, "a.jsonl", {}),
    "jsonl_nan": ({"x": [1.0, float("nan")]}, "a.jsonl", {}),
    "columns": ({"x": [1]}, "a.csv", {"columns": ["y"]}),
    "folder_more": ({"image": IMAGE, "label": [1, 2], "box": [[1], [2]]}, "out", {"target_format": "image_folder"}),
    "folder_no_picture": ({"image": [b"GIF89a", b"no"], "label": [1, 2]}, "out", {"target_format": "image_folder"}),
    "folder_outside": ({"image": IMAGE, "path": ["a.png", "../b.png"]}, "out", {"target_format": "image_folder"}),
    "folder_class": ({"image": IMAGE, "label": [0, -1]}, "out", {"target_format": "image_folder"}),
    "folder_twice": ({"image": IMAGE, "path": ["a", "a"]}, "out", {"target_format": "image_folder"}),
    "folder_shards": ({"image": IMAGE}, "out", {"target_format": "image_folder", "shards": 2}),
    "image_by_path": ({"x": pa.array([{"bytes": None, "path": "a.png"}], PICTURE)}, "a.tfrecord", {}),
    "tfrecord_time": ({"x": pa.array([1], pa.timestamp("us"))}, "a.tfrecord", {}),
    "tfrecord_rounding": ({"x": [0.1]}, "a.tfrecord", {}),
    "tfrecord_range": ({"x": [[0.5, 1e300]]}, "a.tfrecord", {"float32": True}),
    "format_unknown": ({"x": [1]}, "out", {}),
    "compression": ({"x": [1]}, "a.csv", {"compression": "zstd"}),
}


@pytest.mark.parametrize("name", sorted(WRONG))
def test_what_a_target_cannot_hold(name, tmp_path):
    columns, target, settings_ = WRONG[name]
    source = written(tmp_path, columns)
    with pytest.raises(PenstockError) as caught:
        convert(source, tmp_path / target, **settings_)
    assert_golden(f"formats_{name}", f"{type(caught.value).__name__}: {caught.value}")
    assert [file.name for file in tmp_path.iterdir()] == ["in.parquet"]


@pytest.mark.parametrize("name", ["url", "unknown", "no_length", "later_kind"])
def test_what_cannot_be_opened(name, tmp_path):
    (tmp_path / "db").mkdir()
    (tmp_path / "db" / "data.mdb").write_bytes(bytes(16) + b"\xde\xc0\xef\xbe" + bytes(4076))
    (tmp_path / "a.bin").write_bytes(b"\x01\x02\x03\x04")
    (tmp_path / "a.csv").write_text("x\n" + "1\n" * (9 << 20) + "1.5\n")
    calls = {
        "url": lambda: recognise("s3://bucket/a.tfrecord"),
        "unknown": lambda: recognise(tmp_path / "a.bin"),
        "no_length": lambda: open_dataset(tmp_path / "a.bin", "fixed_length"),
        "later_kind": lambda: convert(tmp_path / "a.csv", tmp_path / "a.parquet"),
    }
    with pytest.raises(PenstockError) as caught:
        calls[name]()
    assert_golden(f"formats_open_{name}", f"{type(caught.value).__name__}: {caught.value}")


def test_records_of_one_length(tmp_path):
    (tmp_path / "a.bin").write_bytes(b"aabbcc")
    assert list(open_dataset(tmp_path / "a.bin", record_bytes=2).dataset) == [b"aa", b"bb", b"cc"]
