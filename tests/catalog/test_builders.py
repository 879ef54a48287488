"""Builders of the catalog, on small archives in the real formats, from a server on this machine."""

from __future__ import annotations

import gzip
import hashlib
import math
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.catalog.archives import CASES, pets, zipped
from tests.catalog.server import serving
from tests.golden.golden import assert_golden

from penstock import catalog
from penstock.catalog import builder, registry
from penstock.catalog.builders.array_files import read_idx, read_mat
from penstock.catalog.registry import builder_class
from penstock.errors import DataLossError, MissingDependencyError

NEEDS = {"svhn_cropped": "scipy", "oxford_flowers102": "scipy"}
NAMES = {name.partition("/")[0]: name for name in CASES}


@pytest.fixture
def site(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with serving() as served:
        yield served


@pytest.fixture
def serve(site, monkeypatch):
    """A function that lets a builder find its files on the local server."""

    def serve(name, files):
        kind = builder_class(name)
        site.files.update(files)
        base = kind.URL.endswith("/")
        monkeypatch.setattr(kind, "URL", site.url("" if base else next(iter(files))))
        known = {
            site.url(file): catalog.Checksum(len(data), hashlib.sha256(data).hexdigest())
            for file, data in files.items()
        }
        monkeypatch.setattr(kind, "CHECKSUMS", known)
        return kind

    monkeypatch.setattr("penstock.catalog.builders.cats_vs_dogs._CORRUPT", 4)
    return serve


def in_order(split, examples):
    """Examples in the order in which tfds stores them: by the hash of their keys."""
    keys = sorted(examples, key=lambda key: hashlib.md5(f"{split}{key}".encode()).digest())
    return [examples[key] for key in keys]


def assert_same(found, wanted, where):
    assert found.keys() == wanted.keys(), where
    for name, value in wanted.items():
        np.testing.assert_array_equal(found[name], value, err_msg=f"{where}: {name}")
        assert isinstance(value, bytes) or np.asarray(found[name]).dtype == np.asarray(value).dtype, (where, name)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("name", sorted({name.partition("/")[0] for name in catalog.list_builders()} - {"shapes"}))
def test_prepares_what_is_in_the_files(name, site, serve, tmp_path, monkeypatch):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    case = CASES[NAMES[name]]()
    serve(name, case.files)
    prepare = {"download_dir": tmp_path / "downloads"}
    for split, examples in case.wanted.items():
        found = catalog.load(NAMES[name], split=split, data_dir=tmp_path, download_and_prepare_kwargs=prepare)
        assert len(found) == len(examples)
        for number, (row, wanted) in enumerate(zip(found, in_order(split, examples), strict=True)):
            assert_same(row, wanted, f"{split}, example {number}")
    made = builder(NAMES[name], data_dir=tmp_path)
    assert list(made.info.splits) == list(case.wanted)
    assert {label: list(made.info.features[label].names) for label in case.names} == case.names
    assert made.info.download_size == sum(map(len, case.files.values()))
    # Of what is there, nothing is fetched or prepared again; and workers write the bytes that one thread writes.
    asked = len(site.requests)
    monkeypatch.setattr("penstock.catalog.making.granted_cpus", lambda: 3)
    for part, value in (("_CHEAP", 0.0), ("_LONG", 0.0), ("_CHUNK", 1)):
        monkeypatch.setattr(f"penstock.catalog.making.{part}", value)
    other = builder(NAMES[name], data_dir=tmp_path / "by workers")
    other.download_and_prepare(**prepare)
    assert len(site.requests) == asked
    assert contents(other.data_path) == contents(made.data_path)


def test_a_matlab_file_needs_scipy(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.io.matlab", None)
    with pytest.raises(MissingDependencyError) as raised:
        read_mat(tmp_path / "x.mat", "X")
    assert_golden("catalog_mat_needs_scipy", str(raised.value))


@pytest.mark.parametrize("damage", [lambda data: data[:-40], lambda data: b"<html>" + bytes(200), lambda data: b""])
def test_a_file_that_is_no_matlab_file_is_told(tmp_path, damage):
    pytest.importorskip("scipy")
    from tests.catalog.archives import mat

    whole = mat(X=np.arange(1000))
    (tmp_path / "x.mat").write_bytes(damage(whole))
    with pytest.raises(DataLossError):
        read_mat(tmp_path / "x.mat", "X")
    (tmp_path / "x.mat").write_bytes(whole)
    assert read_mat(tmp_path / "x.mat", "X")[0].tolist() == [list(range(1000))]
    with pytest.raises(DataLossError, match="no array 'y'"):
        read_mat(tmp_path / "x.mat", "X", "y")


def test_what_is_left_out_of_cats_vs_dogs_is_listed(serve, tmp_path):
    kind = serve("cats_vs_dogs", {"pets.zip": zipped(pets(20, corrupt=(4, 7, 11), late=(12,)))})
    made = kind(data_dir=tmp_path)
    made.download_and_prepare()
    skipped = made.info.metadata["skipped"]["train"]
    assert skipped["count"] == 4
    assert sorted(skipped["inputs"]) == sorted(f"PetImages/{'Cat' if n % 3 else 'Dog'}/{n}.jpg" for n in (4, 7, 11, 12))


def test_and_more_of_it_than_there_should_be_is_an_error(serve, tmp_path, monkeypatch):
    monkeypatch.setattr("penstock.catalog.builders.cats_vs_dogs._CORRUPT", 1)
    kind = serve("cats_vs_dogs", {"pets.zip": zipped(pets(10, corrupt=(4, 7)))})
    with pytest.raises(DataLossError) as raised:
        kind(data_dir=tmp_path).download_and_prepare()
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


def test_the_page_of_the_data_sets_lists_what_there_is():
    page = (Path(__file__).parents[2] / "docs/reference/data-sets.md").read_text(encoding="utf-8")
    rows = {row[1].strip(" `"): row for row in (line.split("|") for line in page.split("\n") if line.startswith("| `"))}
    wanted = set()
    for name in set(catalog.list_builders()) - {"shapes", *registry._registered}:
        kind = builder_class(name)
        wanted |= {f"{name}/{config.name}" for config in kind.BUILDER_CONFIGS} or {name}
    assert wanted == {name for name in rows if not name.endswith("_folder")}
    for name in wanted:
        made, row = builder(name), rows[name]
        assert row[2].strip() == made.VERSION
        for split, count in re.findall(r"(\w+) ([\d,]+)", row[3]):
            known = made.expected_examples.get(split)
            assert known == (None if "about" in row[3] else int(count.replace(",", ""))), name
        if "same" not in row[4]:
            number, unit = row[4].split()
            size = made.expected_download_size / {"MB": 1e6, "GB": 1e9}[unit]
            assert abs(size - float(number)) < (1 if unit == "MB" else 0.06), name


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


# Debian's package dataset-fashion-mnist: the real pictures, compressed by Debian once more.
FASHION = Path(os.environ.get("FASHION_MNIST_DIR", "/usr/share/datasets/fashion-mnist"))


@pytest.mark.slow
def first_rows(content, count):
    """An IDX file of the first rows of another."""
    content = gzip.decompress(content)
    head = 4 + 4 * content[3]
    size = math.prod(int.from_bytes(content[at : at + 4], "big") for at in range(8, head, 4))
    return gzip.compress(content[:4] + count.to_bytes(4, "big") + content[8 : head + count * size], 1)


@pytest.mark.skipif(not FASHION.is_dir(), reason="Debian's package dataset-fashion-mnist is not installed")
def test_fashion_mnist_as_it_is_published_comes_through(serve, tmp_path):
    """All test pictures, and the first of those to train with."""
    files = {path.name: path.read_bytes() for path in FASHION.glob("*.gz")}
    for name in ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"):
        files[name] = first_rows(files[name], 6_000)
    serve("fashion_mnist", files)
    splits, info = catalog.load("fashion_mnist", data_dir=tmp_path, with_info=True, batch_size=1000, as_supervised=True)
    for split, prefix, count, whole in (("train", "train", 6_000, 60_000), ("test", "t10k", 10_000, 10_000)):
        pictures = read_idx(FASHION / f"{prefix}-images-idx3-ubyte.gz")
        labels = read_idx(FASHION / f"{prefix}-labels-idx1-ubyte.gz")
        assert len(pictures) == whole
        assert info.splits[split].num_examples == count
        order = in_order(split, dict(enumerate(range(count))))
        for number, (batch, kinds) in enumerate(splits[split]):
            wanted = order[1000 * number : 1000 * (number + 1)]
            np.testing.assert_array_equal(batch[..., 0], pictures[wanted])
            np.testing.assert_array_equal(kinds, labels[wanted])
        assert number == count // 1000 - 1
        assert np.bincount(labels).tolist() == [whole // 10] * 10
    shirts = splits["test"].unbatch().filter(lambda image, label: label == info.features["label"].str2int("Shirt"))
    assert sum(1 for _ in shirts) == 1_000
