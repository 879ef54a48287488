"""`penstock inspect` and `penstock convert`: what they print, and with which status they end."""

from __future__ import annotations

import gzip
import json
import sqlite3
import sys
import wave
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.cli import main

PNG = ps.image.encode_png(np.arange(12 * 12 * 3, dtype=np.uint8).reshape(12, 12, 3))


def _tfrecord(folder):
    with ps.io.TFRecordWriter(folder / "a.tfrecord") as writer:
        for number in range(3):
            writer.write(ps.io.encode_example({"image": PNG, "label": number, "box": [0.5] * (number + 1)}))
    return folder / "a.tfrecord"


def _webdataset(folder):
    ps.formats.convert(_tfrecord(folder), folder / "a.tar")
    return folder / "a.tar"


def _arrow(folder):
    ps.formats.convert(_tfrecord(folder), folder / "a.arrow")
    return folder / "a.arrow"


def _parquet(folder):
    pq.write_table(pa.table({"x": [1, 2, 3], "text": ["a", "b", "c"]}), folder / "a.parquet")
    return folder / "a.parquet"


def _shards(kind):
    def write(folder):
        assert main(["convert", str(_parquet(folder)), str(folder / kind), "--to", kind, "--compression", "zstd"]) == 0
        return folder / kind

    return write


def _text(name, content):
    def write(folder):
        (folder / name).write_text(content)
        return folder / name

    return write


def _numpy(folder):
    np.savez(folder / "a.npz", x=np.zeros((3, 4)), y=np.arange(3))
    return folder / "a.npz"


def _images(folder):
    for name in ("cat/1.png", "dog/1.png", "dog/2.png"):
        (folder / "pets" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "pets" / name).write_bytes(PNG)
    return folder / "pets"


def _saved(folder):
    ps.Dataset.range(3).save(folder / "saved")
    return folder / "saved"


def _snapshots(folder):
    list(ps.Dataset.range(3).snapshot(folder / "kept"))
    return folder / "kept"


def _sqlite(folder):
    with sqlite3.connect(folder / "a.db") as database:
        database.execute("CREATE TABLE pets (name TEXT, age INTEGER, kg REAL)")
        database.executemany("INSERT INTO pets VALUES (?, ?, ?)", [("Rex", 7, 1.5)] * 3)
    database.close()
    return folder / "a.db"


def _huggingface(folder):
    datasets = pytest.importorskip("datasets")
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=["cat", "dog"])})
    rows = {"image": [{"bytes": PNG, "path": None}] * 3, "label": [0, 1, 1]}
    datasets.Dataset.from_dict(rows, features).save_to_disk(folder / "hf")
    return folder / "hf"


def _array_record(folder):
    module = pytest.importorskip("array_record.python.array_record_module")
    writer = module.ArrayRecordWriter(str(folder / "a.array_record"), "group_size:1")
    for number in range(3):
        writer.write(ps.io.encode_example({"label": number}))
    writer.close()
    return folder / "a.array_record"


def _lmdb(folder):
    (folder / "db").mkdir()
    packed = (Path(__file__).parents[1] / "data" / "lmdb3.mdb.gz").read_bytes()
    (folder / "db" / "data.mdb").write_bytes(gzip.decompress(packed))
    return folder / "db"


def _wav(folder):
    for number in range(3):
        (folder / "sounds" / f"{number}.wav").parent.mkdir(exist_ok=True)
        (folder / "sounds" / f"{number}.wav").write_bytes(ps.audio.encode_wav(np.zeros((12_000, 2)), 8000))
    return folder / "sounds"


KINDS = {
    "wav": (_wav, ["sample_rate: TensorSpec(shape=(), dtype=int64)"]),
    "json": (
        _text("a.json", '[{"box": [1, 2.5]}, {"box": []}, {"box": [3]}]'),
        ["box: TensorSpec(shape=(None,), dtype=float64)"],
    ),
    "lmdb": (_lmdb, ["0: TensorSpec(shape=(), dtype=bytes)"]),
    "array_record": (_array_record, ["label: int64"]),
    "tfrecord": (_tfrecord, ["box: float32, 1 to 3 values", "image: bytes", "label: int64"]),
    "webdataset": (_webdataset, ["image.png: TensorSpec(shape=(), dtype=bytes)"]),
    "arrow": (_arrow, ["label: TensorSpec(shape=(), dtype=int64)"]),
    "parquet": (_parquet, ["text: TensorSpec(shape=(), dtype=bytes)"]),
    "csv": (_text("a.csv", "x,y\n1,a\n2,b\n3,c\n"), ["x: TensorSpec(shape=(), dtype=int32)"]),
    "jsonl": (_text("a.jsonl", '{"a": 1}\n' * 3), ["a: TensorSpec(shape=(), dtype=int64)"]),
    "text": (_text("a.txt", "one\ntwo\nthree\n"), ["TensorSpec(shape=(), dtype=bytes)"]),
    "numpy": (_numpy, ["x: TensorSpec(shape=(4,), dtype=float64)"]),
    "image_folder": (_images, ["0: TensorSpec(shape=(), dtype=bytes)"]),
    "saved": (_saved, ["TensorSpec(shape=(), dtype=int64)"]),
    "snapshots": (_snapshots, ["TensorSpec(shape=(), dtype=int64)"]),
    "sqlite": (_sqlite, ["kg: TensorSpec(shape=(), dtype=float64)"]),
    "mds": (_shards("mds"), ["text: TensorSpec(shape=(), dtype=bytes)"]),
    "litdata": (_shards("litdata"), ["x: TensorSpec(shape=(), dtype=int64)"]),
    "huggingface": (_huggingface, ["label: TensorSpec(shape=(), dtype=int64)"]),
}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_format_is_told_apart_and_described(kind, tmp_path, capsys):
    write, spec = KINDS[kind]
    path = write(tmp_path)
    capsys.readouterr()
    assert main(["inspect", "--json", str(path)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["format"], told["elements"], told["damages"]) == (kind, 3, [])
    assert set(spec) <= set(told["schema"])
    assert told["bytes"] > 0
    assert main(["inspect", str(path), "-n", "2", "--check"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"{path}: {kind} (")
    assert ", 3 elements\n" in printed


def test_sounds_are_described_with_any_width_of_samples(tmp_path, capsys):
    with wave.open(str(tmp_path / "a.wav"), "wb") as file:
        file.setparams((2, 3, 8000, 0, "NONE", ""))
        file.writeframes(bytes(6 * 12_000))
    (row,) = ps.formats.open_dataset(tmp_path / "a.wav").dataset
    path = row.pop("path")
    assert (path, row) == (
        bytes(tmp_path / "a.wav"),
        {"sample_rate": 8000, "channels": 2, "samples": 12_000, "seconds": 1.5},
    )
    (tmp_path / "a.wav").write_bytes((tmp_path / "a.wav").read_bytes()[:-1])
    assert main(["inspect", str(tmp_path / "a.wav")]) == 1
    assert "it is cut short" in capsys.readouterr().err


def test_a_video_is_described(tmp_path):
    av = pytest.importorskip("av")
    with av.open(str(tmp_path / "a.mp4"), "w") as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.height, stream.width, stream.pix_fmt = 48, 64, "yuv420p"
        for _ in range(3):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(np.zeros((48, 64, 3), np.uint8), format="rgb24")))
        container.mux(stream.encode())
    (row,) = ps.formats.open_dataset(tmp_path / "a.mp4").dataset
    del row["path"]
    assert row == {"height": 48, "width": 64, "frames": 3, "frames_per_second": 10}


def test_a_video_without_pyav_names_what_to_install(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "av", None)
    (tmp_path / "a.mp4").write_bytes(b"")
    assert main(["inspect", str(tmp_path / "a.mp4")]) == 1
    assert "penstock[video]" in capsys.readouterr().err


def test_a_json_object_has_its_lists_as_parts(tmp_path):
    content = json.dumps({"info": {}, "images": [{"id": 7}], "boxes": [{"image": 7, "box": [1, 2]}]}).encode()
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(content))
    opened = ps.formats.open_dataset(tmp_path / "a.json.gz", part="boxes")
    assert opened.parts == ("images", "boxes")
    ((number, box),) = [(row["image"], row["box"].tolist()) for row in opened.dataset]
    assert (number, box) == (7, [1, 2])


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ('{"a": 1}\n{"a": 2}', "format of JSON Lines: jsonl"),
        ('{"a": 1}', "must hold a list of objects, got {'a': 1}"),
        ('[{"a": 1}, {"a": "x"}]', "must have values of one kind for each key"),
        ('[{"a": 1}, 2]', "must have values of one kind for each key"),
    ],
)
def test_other_json_is_an_error_that_says_what_to_do(content, text, tmp_path, capsys):
    (tmp_path / "a.json").write_text(content)
    assert main(["inspect", str(tmp_path / "a.json")]) == 1
    assert text in capsys.readouterr().err


def test_a_prepared_data_set_has_splits(tmp_path, capsys):
    ps.catalog.builder("shapes", data_dir=tmp_path, num_examples=4).download_and_prepare()
    folder = next(tmp_path.rglob("dataset_info.json")).parent
    sheet = tmp_path / "sheet.png"
    assert main(["inspect", str(folder), "--part", "test", "--sheet", str(sheet)]) == 0
    printed = capsys.readouterr().out
    assert "part test of" in printed
    assert "classes of label: circle" in printed
    assert ps.image.decode_png(sheet.read_bytes()).shape[2] == 3
    assert main(["inspect", str(folder), "--part", "all"]) == 1
    assert "There is no split 'all'." in capsys.readouterr().err


def test_damage_is_told_with_its_place_and_the_rest_is_counted(tmp_path, capsys):
    path = _tfrecord(tmp_path)
    content = bytearray(path.read_bytes())
    content[40] ^= 1
    path.write_bytes(content)
    assert main(["inspect", str(path)]) == 1
    printed = capsys.readouterr()
    assert "2 elements, 1 that cannot be read" in printed.out
    assert f"in file {path} at byte 0" in printed.err


def test_a_sheet_shows_all_classes(tmp_path, capsys):
    colours = {"cat": 0, "dog": 255}
    for kind, level in colours.items():
        for number in range(9):
            (tmp_path / "pets" / kind / f"{number}.png").parent.mkdir(parents=True, exist_ok=True)
            content = ps.image.encode_png(np.full((16, 16, 3), level, np.uint8))
            (tmp_path / "pets" / kind / f"{number}.png").write_bytes(content)
    sheet = tmp_path / "sheet.png"
    assert main(["inspect", str(tmp_path / "pets"), "--sheet", str(sheet), "--pictures", "4"]) == 0
    assert f"4 images: {sheet}" in capsys.readouterr().out
    pixels = ps.image.decode_png(sheet.read_bytes())
    black = (pixels == 0).all(axis=2).sum()
    assert 2 * 128 * 128 <= black < 3 * 128 * 128


def test_a_sheet_of_what_has_no_pictures_says_so(tmp_path, capsys):
    assert main(["inspect", str(_parquet(tmp_path)), "--sheet", str(tmp_path / "a.png")]) == 1
    assert "There are no images" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "text"),
    [(b"\x00\x01 nothing known", "The format of"), (None, "There is nothing at")],
)
def test_what_cannot_be_told_is_said(content, text, tmp_path, capsys):
    if content is not None:
        (tmp_path / "a").write_bytes(content)
    assert main(["inspect", str(tmp_path / "a")]) == 1
    assert capsys.readouterr().err.startswith(f"penstock: {text}")


def test_convert_says_what_it_wrote(tmp_path, capsys):
    source = _parquet(tmp_path)
    assert main(["convert", str(source), str(tmp_path / "out"), "--to", "webdataset", "--shards", "2"]) == 0
    assert capsys.readouterr().out.startswith(f"{tmp_path / 'out'}: 3 rows in 2 files, ")
    assert main(["convert", str(source), str(tmp_path / "out"), "--to", "webdataset", "--shards", "2"]) == 1
    assert "There is something at" in capsys.readouterr().err
