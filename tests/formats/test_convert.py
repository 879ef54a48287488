"""convert: names and values stay as they are, from every source to every target; nothing half done is left."""

from __future__ import annotations

import gzip
import json
import tarfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.errors import AlreadyExistsError, DataLossError, InvalidArgumentError, InvalidTypeError, NotFoundError
from penstock.formats import convert, recognise
from penstock.formats.tables import read_table

PNG = ps.image.encode_png(np.arange(75, dtype=np.uint8).reshape(5, 5, 3))
ROWS = 23
TABLE = pa.table(
    {
        "image": pa.array([PNG] * ROWS, pa.binary()),
        "label": pa.array(range(ROWS), pa.int64()),
        "score": pa.array([i / 4 for i in range(ROWS)], pa.float32()),
        "box": pa.array([[i, 0.5, -1.0] for i in range(ROWS)], pa.list_(pa.float32(), 3)),
        "ids": pa.array([list(range(i % 3)) for i in range(ROWS)], pa.list_(pa.int64())),
    }
)
ENDINGS = {"parquet": ".parquet", "arrow": ".arrow", "tfrecord": ".tfrecord", "webdataset": ".tar"}


def rows_of(path, columns=None):
    table = read_table(recognise(path))
    rows = [row for batch in table.batches() for row in batch.to_pylist()]
    return rows if columns is None else [{name: row[name] for name in columns} for row in rows]


def names_in(path):
    with tarfile.open(path) as archive:
        return archive.getnames()


@pytest.fixture
def source(tmp_path):
    pq.write_table(TABLE, tmp_path / "in.parquet", row_group_size=7)
    return tmp_path / "in.parquet"


@pytest.mark.parametrize("shards", [None, 4])
@pytest.mark.parametrize("compression", [None, "gzip"])
@pytest.mark.parametrize("kind", sorted(ENDINGS))
def test_there_and_back(source, tmp_path, kind, compression, shards):
    if kind == "arrow" and compression:
        compression = "zstd"
    middle = tmp_path / ("middle" if shards else f"middle{ENDINGS[kind]}")
    done = convert(source, middle, target_format=kind, shards=shards, compression=compression)
    assert (done.rows, len(done.files)) == (ROWS, shards or 1)
    assert recognise(middle).format == kind
    assert rows_of(middle, TABLE.column_names) == TABLE.to_pylist()
    convert(middle, tmp_path / "back.parquet")
    assert rows_of(tmp_path / "back.parquet", TABLE.column_names) == TABLE.to_pylist()
    assert not [file.name for file in tmp_path.iterdir() if file.name.startswith(".")]


def test_shards_hold_neighbours_and_differ_by_one(source, tmp_path):
    convert(source, tmp_path / "out", target_format="arrow", shards=5)
    files = sorted((tmp_path / "out").iterdir())
    assert files[1].name == "data-00001-of-00005.arrow"
    assert [len(rows_of(file)) for file in files] == [4, 5, 4, 5, 5]
    assert [row["label"] for file in files for row in rows_of(file)] == list(range(ROWS))


def test_more_shards_than_rows(tmp_path):
    (tmp_path / "a.csv").write_text("x\n1\n2\n")
    convert(tmp_path / "a.csv", tmp_path / "out", target_format="parquet", shards=3)
    assert [row["x"] for row in rows_of(tmp_path / "out")] == [1, 2]


def test_a_table_keeps_its_types_nulls_and_notes(tmp_path):
    table = pa.table({"t": pa.array([1, None], pa.timestamp("us")), "s": pa.array(["é", None]), "d": [0.1, 2.0]})
    pq.write_table(table.replace_schema_metadata({"a": "b"}), tmp_path / "a.parquet")
    convert(tmp_path / "a.parquet", tmp_path / "a.arrow")
    convert(tmp_path / "a.arrow", tmp_path / "b.parquet", compression="none")
    found = pq.read_table(tmp_path / "b.parquet")
    assert found.equals(table)
    assert found.schema.metadata == {b"a": b"b"}


def test_csv_and_json_lines(tmp_path):
    (tmp_path / "a.csv").write_text('Name,age\n"Rex, he",7\nTom,\n')
    convert(tmp_path / "a.csv", tmp_path / "a.parquet")
    assert rows_of(tmp_path / "a.parquet") == [{"Name": "Rex, he", "age": 7}, {"Name": "Tom", "age": None}]
    rows = [{"a": 1, "b": {"c": "x"}, "l": [1.5]}, {"a": 2, "b": {"c": "y"}, "l": []}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    convert(tmp_path / "a.jsonl", tmp_path / "b.parquet")
    assert rows_of(tmp_path / "b.parquet") == rows
    convert(tmp_path / "b.parquet", tmp_path / "b.tfrecord")
    assert rows_of(tmp_path / "b.tfrecord") == [
        {"a": 1, "b.c": b"x", "l": [1.5]},
        {"a": 2, "b.c": b"y", "l": []},
    ]


def test_a_folder_of_images(tmp_path):
    for kind in ("cat", "dog"):
        (tmp_path / "pets" / kind).mkdir(parents=True)
        (tmp_path / "pets" / kind / "1.png").write_bytes(PNG)
    convert(tmp_path / "pets", tmp_path / "pets.tar")
    assert names_in(tmp_path / "pets.tar")[:4] == [
        "000000000.image.png",
        "000000000.path.txt",
        "000000000.label.cls",
        "000000000.class_name.txt",
    ]
    convert(tmp_path / "pets.tar", tmp_path / "pets.parquet")
    assert rows_of(tmp_path / "pets.parquet", ["image", "path", "label", "class_name"]) == [
        {"image": PNG, "path": f"{kind}/1.png", "label": label, "class_name": kind}
        for label, kind in enumerate(("cat", "dog"))
    ]


def test_a_webdataset_of_others_keeps_its_names(tmp_path):
    import io

    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for name, content in (("x/1.jpg", b"no picture"), ("x/1.cls", b"3"), ("x/1.json", b"{}")):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    convert(tmp_path / "a.tar", tmp_path / "a.parquet")
    assert rows_of(tmp_path / "a.parquet") == [{"__key__": "x/1", "jpg": b"no picture", "cls": 3, "json": b"{}"}]
    convert(tmp_path / "a.parquet", tmp_path / "b.tar")
    assert names_in(tmp_path / "b.tar") == ["x/1.jpg", "x/1.cls", "x/1.json"]


def test_a_folder_of_save_to_disk(tmp_path):
    datasets = pytest.importorskip("datasets")
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=["cat", "dog"])})
    made = datasets.Dataset.from_dict({"image": [{"bytes": PNG, "path": None}] * 3, "label": [0, 1, 1]}, features)
    made.save_to_disk(tmp_path / "hf")
    convert(tmp_path / "hf", tmp_path / "a.tfrecord")
    assert rows_of(tmp_path / "a.tfrecord") == [{"image": PNG, "label": label} for label in (0, 1, 1)]
    convert(tmp_path / "hf", tmp_path / "a.parquet")
    assert (
        datasets.Dataset.from_parquet(str(tmp_path / "a.parquet"), cache_dir=str(tmp_path / "c")).features == features
    )


def test_records_that_are_no_examples(tmp_path):
    with ps.io.TFRecordWriter(tmp_path / "a.tfrecord") as writer:
        writer.write(b"\xff\xffone")
    convert(tmp_path / "a.tfrecord", tmp_path / "a.parquet")
    convert(tmp_path / "a.parquet", tmp_path / "b.tfrecord")
    assert list(ps.TFRecordDataset(tmp_path / "b.tfrecord")) == [b"\xff\xffone"]


def test_what_would_be_rounded_is_an_error(tmp_path):
    (tmp_path / "a.csv").write_text("x\n0.5\n0.1\n")
    with pytest.raises(InvalidArgumentError, match=r"holds 0\.1, which the float32.*\n.*--float32"):
        convert(tmp_path / "a.csv", tmp_path / "a.tfrecord")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.csv"]


def test_what_a_target_cannot_hold_is_an_error(tmp_path):
    pq.write_table(pa.table({"t": pa.array([1], pa.timestamp("us"))}), tmp_path / "a.parquet")
    for name in ("a.tfrecord", "a.tar"):
        with pytest.raises(InvalidTypeError, match="Column 't' is timestamp"):
            convert(tmp_path / "a.parquet", tmp_path / name)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.parquet"]


def test_damage_leaves_the_target_as_it_was(tmp_path):
    (tmp_path / "out.parquet").write_bytes(b"old")
    with ps.io.TFRecordWriter(tmp_path / "a.tfrecord") as writer:
        for number in range(3):
            writer.write(ps.io.encode_example({"x": number}))
    content = bytearray((tmp_path / "a.tfrecord").read_bytes())
    content[-6] ^= 1
    (tmp_path / "a.tfrecord").write_bytes(content)
    with pytest.raises(DataLossError, match=r"a\.tfrecord at byte"):
        convert(tmp_path / "a.tfrecord", tmp_path / "out.parquet", overwrite=True)
    assert (tmp_path / "out.parquet").read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 2


def test_overwriting_is_asked_for_and_replaces_only_what_convert_writes(source, tmp_path):
    convert(source, tmp_path / "out", target_format="parquet", shards=2)
    with pytest.raises(AlreadyExistsError, match="There is something at"):
        convert(source, tmp_path / "out", target_format="parquet", shards=3)
    convert(source, tmp_path / "out", target_format="parquet", shards=3, overwrite=True)
    assert len(list((tmp_path / "out").iterdir())) == 3
    (tmp_path / "out" / "notes.txt").touch()
    with pytest.raises(AlreadyExistsError, match="holds more than shards"):
        convert(source, tmp_path / "out", target_format="parquet", shards=3, overwrite=True)


@pytest.mark.parametrize(
    ("target", "settings", "error", "text"),
    [
        ("out", {}, InvalidArgumentError, "The format of the target"),
        ("out.zip", {"target_format": "zip"}, InvalidArgumentError, "convert does not write 'zip'"),
        ("out.parquet", {"shards": 2}, InvalidArgumentError, "With shards the target is a folder"),
        ("out", {"shards": 0, "target_format": "arrow"}, InvalidArgumentError, "shards must be at least 1"),
        ("out.arrow", {"compression": "gzip"}, InvalidArgumentError, "arrow is not compressed with 'gzip'"),
        ("in.parquet", {"overwrite": True}, InvalidArgumentError, "lie in one another"),
    ],
)
def test_wrong_calls_teach(source, tmp_path, target, settings, error, text):
    with pytest.raises(error, match=text):
        convert(source, tmp_path / target, **settings)
    assert [file.name for file in tmp_path.iterdir()] == ["in.parquet"]


def test_there_is_no_source(tmp_path):
    with pytest.raises(NotFoundError, match="There is nothing at"):
        convert(tmp_path / "none.csv", tmp_path / "a.parquet")


def test_files_with_other_columns_are_an_error(tmp_path):
    (tmp_path / "in").mkdir()
    for name in "ab":
        pq.write_table(pa.table({name: [1]}), tmp_path / "in" / f"{name}.parquet")
    with pytest.raises(InvalidTypeError, match="b: int64 here"):
        convert(tmp_path / "in", tmp_path / "a.arrow")


def test_an_lmdb_database_becomes_a_table_and_records(tmp_path):
    packed = (Path(__file__).parents[1] / "data" / "lmdb.mdb.gz").read_bytes()
    (tmp_path / "data.mdb").write_bytes(gzip.decompress(packed))
    pairs = list(ps.LmdbDataset(tmp_path))
    assert convert(tmp_path / "data.mdb", tmp_path / "pairs" / "pairs.parquet").rows == len(pairs)
    assert [(row["key"], row["value"]) for row in ps.ParquetDataset(tmp_path / "pairs" / "pairs.parquet")] == pairs
