"""Names of files: bytes that are not UTF-8, and `~` for the home folder."""

import os

import numpy as np
import pytest
from PIL import Image

import penstock as ps
from penstock import errors
from penstock.catalog.spool import key_bytes

NAME = os.fsdecode(b"caf\xe9.txt")  # in ISO 8859-1


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"one\n")
    (tmp_path / NAME).write_bytes(b"two\n")
    return tmp_path


def test_names_that_are_not_utf8_are_listed_and_read(folder):
    names = ps.Dataset.list_files(folder / "*.txt", shuffle=False)
    assert list(names) == [os.fsencode(folder / "a.txt"), os.fsencode(folder / NAME)]
    assert list(names.flat_map(ps.TextLineDataset)) == [b"one", b"two"]
    assert list(ps.TextLineDataset([folder / "a.txt", folder / NAME], num_parallel_reads=2)) == [b"one", b"two"]
    assert list(ps.TextLineDataset(os.fsencode(folder / NAME))) == [b"two"]


def test_names_that_are_not_utf8_are_parts_of_elements(folder):
    ((_, origin),) = ps.TextLineDataset(folder / NAME).with_provenance()
    assert origin.file == os.fsencode(folder / NAME)


def test_names_that_are_not_utf8_can_be_printed(folder, monkeypatch):
    monkeypatch.chdir(folder)  # folder for profiles
    ds = ps.TextLineDataset(folder / NAME).map(lambda line: line + b"!")
    assert r"caf\udce9.txt" in ds.explain().__str__()
    ds.explain().__str__().encode()
    ds.profile().__str__().encode()
    with pytest.raises(errors.NotFoundError) as caught:
        list(ps.TextLineDataset(folder / f"no{NAME}"))
    assert r"nocaf\udce9.txt" in str(caught.value)
    str(caught.value).encode()


def test_names_that_are_not_utf8_are_written(folder):
    place = folder / os.fsdecode(b"\xff")
    ps.Dataset.range(3).save(place)
    assert [int(x) for x in ps.Dataset.load(place)] == [0, 1, 2]
    assert [int(x) for x in ps.Dataset.range(3).cache(place / "cache")] == [0, 1, 2]


def test_images_in_folders_whose_names_are_not_utf8(tmp_path):
    (tmp_path / NAME).mkdir()
    Image.new("RGB", (4, 4)).save(tmp_path / NAME / "1.png")
    ds = ps.ImageFolderDataset(tmp_path)
    assert ds.class_names == [NAME]
    assert [int(label) for _, label in ds] == [0]


def test_examples_of_the_catalog_whose_names_are_not_utf8(tmp_path):
    (tmp_path / "train" / "cat").mkdir(parents=True)
    Image.new("RGB", (4, 4)).save(tmp_path / "train" / "cat" / f"{NAME}.png")
    (row,) = ps.catalog.load("image_folder", data_dir=tmp_path, split="train")
    assert row["image/filename"].endswith(b"caf\xe9.txt.png")
    assert key_bytes(NAME) == b"caf\xe9.txt"


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_readers_take_the_home_folder(home):
    (home / "a.txt").write_bytes(b"one\n")
    (home / "a.jsonl").write_bytes(b'{"x": 1}\n')
    np.save(home / "a.npy", np.arange(2))
    assert list(ps.TextLineDataset("~/a.txt")) == [b"one"]
    assert list(ps.Dataset.list_files("~/*.txt")) == [os.fsencode(home / "a.txt")]
    assert list(ps.JsonLinesDataset(["~/a.jsonl"])) == [{"x": 1}]
    assert [int(x) for x in ps.NumpyDataset("~/a.npy")] == [0, 1]
    assert list(ps.Dataset.from_tensors(b"~/a.txt").flat_map(ps.TextLineDataset)) == [b"one"]


def test_what_is_written_takes_the_home_folder(home):
    ds = ps.Dataset.range(3)
    ds.save("~/saved")
    assert [int(x) for x in ps.Dataset.load("~/saved")] == [0, 1, 2]
    for _ in ds.cache("~/cached"):
        pass
    for _ in ds.snapshot("~/snapshots"):
        pass
    with ps.io.TFRecordWriter("~/a.tfrecord") as writer:
        writer.write(b"x")
    assert list(ps.TFRecordDataset("~/a.tfrecord")) == [b"x"]
    assert {path.name for path in home.iterdir()} >= {"saved", "snapshots", "a.tfrecord"}
    assert any(path.name.startswith("cached") for path in home.iterdir())


def test_a_name_that_only_begins_with_a_tilde_stays(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "~$draft.txt").write_bytes(b"one\n")
    assert list(ps.TextLineDataset("~$draft.txt")) == [b"one"]
