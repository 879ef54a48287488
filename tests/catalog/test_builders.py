"""Builders of the catalog, on small archives in the real formats, from a server on this machine."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
import zipfile

import numpy as np
import pytest
from tests.catalog.server import serving
from tests.golden.golden import assert_golden

import penstock as ps
from penstock import catalog
from penstock.catalog import builder
from penstock.catalog.builders.cats_vs_dogs import CatsVsDogs
from penstock.catalog.builders.cifar10 import Cifar10
from penstock.catalog.builders.cifar100 import Cifar100
from penstock.catalog.builders.emnist import EMNIST
from penstock.catalog.builders.fashion_mnist import FashionMNIST
from penstock.catalog.builders.idx import read_idx
from penstock.catalog.builders.kmnist import KMNIST
from penstock.catalog.builders.mnist import MNIST
from penstock.errors import DataLossError


@pytest.fixture
def site(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with serving() as served:
        yield served


@pytest.fixture
def prepared(site, tmp_path, monkeypatch):
    """A function that prepares a builder from the files of the local server."""

    def prepare(kind, address):
        monkeypatch.setattr(kind, "URL", site.url(address))
        monkeypatch.setattr(kind, "CHECKSUMS", {})  # those of the real files
        made = kind(data_dir=tmp_path)
        made.download_and_prepare()
        return made

    return prepare


def idx(array):
    header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return gzip.compress(header + array.tobytes())


@pytest.mark.parametrize("kind", [MNIST, FashionMNIST, KMNIST])
def test_mnist_and_its_likes(kind, site, prepared):
    rng = np.random.default_rng(0)
    wanted = {}
    for split, prefix, count in (("train", "train", 30), ("test", "t10k", 7)):
        pictures, labels = rng.integers(0, 256, (count, 28, 28), np.uint8), rng.integers(0, 10, count, np.uint8)
        site.files[f"{prefix}-images-idx3-ubyte.gz"] = idx(pictures)
        site.files[f"{prefix}-labels-idx1-ubyte.gz"] = idx(labels)
        wanted[split] = {picture.tobytes(): label for picture, label in zip(pictures, labels, strict=True)}
    made = prepared(kind, "")
    for split in ("train", "test"):
        found = {picture.tobytes(): label for picture, label in made.as_dataset(split, as_supervised=True)}
        assert found == wanted[split]
        assert len(made.as_dataset(split)) == len(wanted[split])
    assert made.info.download_size == sum(map(len, site.files.values()))
    assert made.as_dataset("train")[0]["image"].shape == (28, 28, 1)


@pytest.mark.parametrize(("config", "classes"), [("letters", 37), ("byclass", 62)])
def test_emnist_takes_the_files_of_its_config(site, tmp_path, monkeypatch, config, classes):
    content, wanted = io.BytesIO(), {}
    with zipfile.ZipFile(content, "w") as archive:
        for seed, (name, count) in enumerate((("letters", 37), ("byclass", 62))):
            rng = np.random.default_rng(seed)
            for split, examples in (("train", 20), ("test", 5)):
                pictures, labels = rng.integers(0, 256, (examples, 28, 28), np.uint8), rng.integers(0, count, examples)
                archive.writestr(f"gzip/emnist-{name}-{split}-images-idx3-ubyte.gz", idx(pictures))
                archive.writestr(f"gzip/emnist-{name}-{split}-labels-idx1-ubyte.gz", idx(labels.astype(np.uint8)))
                wanted[name, split] = {
                    picture.tobytes(): label for picture, label in zip(pictures, labels, strict=True)
                }
    site.files["gzip.zip"] = content.getvalue()
    monkeypatch.setattr(EMNIST, "URL", site.url("gzip.zip"))
    monkeypatch.setattr(EMNIST, "CHECKSUMS", {})
    made = builder(f"emnist/{config}", data_dir=tmp_path)
    made.download_and_prepare()
    assert made.data_path == tmp_path / "emnist" / config / "3.1.0"
    assert made.info.features["label"].num_classes == classes
    for split in ("train", "test"):
        found = {picture.tobytes(): label for picture, label in made.as_dataset(split, as_supervised=True)}
        assert found == wanted[config, split]


def cifar_archive(folder, files, texts):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for name, data in {**files, **{name: "\n".join(text).encode() + b"\n" for name, text in texts.items()}}.items():
            member = tarfile.TarInfo(f"{folder}/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return content.getvalue()


def cifar_rows(count, labels, seed):
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, classes, (count, 1), np.uint8) for classes in labels]
    return np.concatenate([*columns, rng.integers(0, 256, (count, 3072), np.uint8)], axis=1)


def check_cifar(made, rows, split, labels):
    for row in made.as_dataset(split):
        stored = rows[int(row["id"].decode().rpartition("_")[2])]
        assert row["id"].startswith(f"{split}_".encode())
        assert [int(row[label]) for label in labels] == stored[: len(labels)].tolist()
        np.testing.assert_array_equal(row["image"], stored[len(labels) :].reshape(3, 32, 32).transpose(1, 2, 0))
    assert len(made.as_dataset(split)) == len(rows)


def test_cifar10(site, prepared, tmp_path):
    names = [f"class {number}" for number in range(10)]
    train = [cifar_rows(4, [10], seed) for seed in range(5)]
    test = cifar_rows(3, [10], 9)
    files = {f"data_batch_{number + 1}.bin": rows.tobytes() for number, rows in enumerate(train)}
    files["test_batch.bin"] = test.tobytes()
    site.files["c.tar.gz"] = cifar_archive("cifar-10-batches-bin", files, {"batches.meta.txt": names})
    made = prepared(Cifar10, "c.tar.gz")
    check_cifar(made, np.concatenate(train), "train", ["label"])
    check_cifar(made, test, "test", ["label"])
    assert made.info.features["label"].int2str(3) == "class 3"
    assert Cifar10(data_dir=tmp_path).info.features["label"].names == tuple(names)


def test_cifar100(site, prepared):
    rows = {"train": cifar_rows(6, [20, 100], 1), "test": cifar_rows(2, [20, 100], 2)}
    names = {
        "coarse_label_names.txt": [f"c{n}" for n in range(20)],
        "fine_label_names.txt": [f"f{n}" for n in range(100)],
    }
    files = {f"{split}.bin": data.tobytes() for split, data in rows.items()}
    site.files["c.tar.gz"] = cifar_archive("cifar-100-binary", files, names)
    made = prepared(Cifar100, "c.tar.gz")
    for split, data in rows.items():
        check_cifar(made, data, split, ["coarse_label", "label"])
    assert made.info.features["coarse_label"].str2int("c7") == 7


def pets(count, corrupt=(), late=()):
    """A zip as that of cats_vs_dogs: pictures, some that are none, some whose mark comes late, and other files."""
    content, rng = io.BytesIO(), np.random.default_rng(0)
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("readme[1].txt", "about")
        archive.writestr("PetImages/Cat/Thumbs.db", b"JFIF")
        for number in range(count):
            jpeg = ps.io.encode_jpeg(rng.integers(0, 256, (20 + number, 30, 3), np.uint8))
            assert b"JFIF" in jpeg[:20]
            if number in corrupt:
                jpeg = b"" if number % 2 else b"GIF89a" + jpeg[20:]
            elif number in late:
                jpeg = jpeg[:2] + b"\xff\xfe\x03\xe8" + bytes(998) + jpeg[2:]  # a comment of 1000 bytes
            archive.writestr(f"PetImages/{'Cat' if number % 3 else 'Dog'}/{number}.jpg", jpeg)
    return content.getvalue()


def test_cats_vs_dogs_leaves_out_what_is_corrupt(site, prepared, monkeypatch):
    monkeypatch.setattr("penstock.catalog.builders.cats_vs_dogs._CORRUPT", 4)
    site.files["pets.zip"] = pets(20, corrupt=(4, 7, 11), late=(12,))
    made = prepared(CatsVsDogs, "pets.zip")
    rows = list(made.as_dataset("train"))
    names = {row["image/filename"].decode(): int(row["label"]) for row in rows}
    kept = [n for n in range(20) if n not in (4, 7, 11, 12)]
    assert names == {f"PetImages/{'Cat' if n % 3 else 'Dog'}/{n}.jpg": int(n % 3 == 0) for n in kept}
    assert {row["image"].shape for row in rows} == {(20 + n, 30, 3) for n in kept}
    skipped = made.info.metadata["skipped"]["train"]
    assert skipped["count"] == 4
    assert sorted(skipped["inputs"]) == sorted(f"PetImages/{'Cat' if n % 3 else 'Dog'}/{n}.jpg" for n in (4, 7, 11, 12))


def test_and_more_of_it_than_there_should_be_is_an_error(site, prepared, monkeypatch):
    monkeypatch.setattr("penstock.catalog.builders.cats_vs_dogs._CORRUPT", 1)
    site.files["pets.zip"] = pets(10, corrupt=(4, 7))
    with pytest.raises(DataLossError) as raised:
        prepared(CatsVsDogs, "pets.zip")
    assert_golden("catalog_cats_vs_dogs_corrupt", str(raised.value))


@pytest.mark.parametrize(
    "content",
    [b"", b"\0\0", b"<html>", b"\0\0\x08\x01\0\0\0\x05abc", b"\0\0\x08\x02\0\0", gzip.compress(b"\0\0\x08")[:-9]],
    ids=["empty", "short", "a page", "too few values", "no sizes", "cut short"],
)
def test_a_file_that_is_no_idx_is_told(tmp_path, content):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(DataLossError):
        read_idx(tmp_path / "x")


def test_every_builder_can_be_described_and_has_its_checksums(monkeypatch):
    monkeypatch.setattr("penstock.catalog.registry._registered", {})  # what a page of the documentation has registered
    for name in catalog.list_builders():
        made = builder(name)
        assert made.name == name
        assert made.info.description
        for key in made.info.supervised_keys:
            assert key in made.info.features
        urls = getattr(made, "CHECKSUMS", {})
        assert all(len(known.sha256) == 64 and known.size > 0 for known in urls.values())
        assert bool(urls) == (name != "shapes")
