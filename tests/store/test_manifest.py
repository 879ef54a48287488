"""The manifest: reading returns the written content, or an error with the reason."""

import json
import os
from dataclasses import replace

import crc32c
import numpy as np
import pytest
from tests.store.chunks import chunk_of
from tests.store.flipped import flipped

import penstock as ps
from penstock.errors import DataLossError, FailedPreconditionError, NotFoundError
from penstock.store.manifest import NAME, Manifest, _text_of, read_manifest, spec_as_json, write_manifest

CHUNKS = tuple(chunk_of(f"data/{i}.arrow", i % 2, i + 1, 1, bytes(i + 1)) for i in range(3))
FULL = Manifest(
    key="k",
    run="data",
    compression="lz4",
    spec=spec_as_json((ps.TensorSpec((None, 3), np.float32), {"ä": ps.TensorSpec((), bytes)})),
    chunks=CHUNKS,
    sources=(("a.tfrecord", 12, 34), ("s3://bucket/ü", 5, '"etag"')),
    made_of=(("map#2 › function", "function decode, train.py:31", "0f"),),
    complete=False,
)


@pytest.mark.parametrize("manifest", [FULL, Manifest("k", "data", None, None, ())])
def test_a_manifest_comes_back(manifest, tmp_path):
    write_manifest(str(tmp_path), manifest, replace=False)
    found = read_manifest(str(tmp_path))
    assert (found, found.created, found.penstock) == (manifest, manifest.created, manifest.penstock)
    assert found.element_spec() == manifest.element_spec()


def test_it_is_json_that_people_can_read(tmp_path):
    write_manifest(str(tmp_path), FULL, replace=False)
    text = (tmp_path / NAME).read_text()
    assert json.loads(text)["elements"] == FULL.elements == 6
    assert [line.count('"file"') for line in text.splitlines() if "arrow" in line] == [1, 1, 1]


@pytest.mark.parametrize("bits", [1, 8, 0x20])
def test_every_byte_that_changes_is_found(bits, tmp_path):
    write_manifest(str(tmp_path), FULL, replace=False)
    path = tmp_path / NAME
    for at in range(len(path.read_bytes()) - len("\n}\n")):
        with flipped(path, at, bits), pytest.raises(DataLossError) as caught:
            read_manifest(str(tmp_path))
        assert caught.value.context.file == str(path)


def test_every_manifest_that_was_cut_short_is_found(tmp_path):
    write_manifest(str(tmp_path), FULL, replace=False)
    path = tmp_path / NAME
    for size in reversed(range(len(path.read_bytes()) - len("}\n"))):
        os.truncate(path, size)
        with pytest.raises(DataLossError):
            read_manifest(str(tmp_path))


@pytest.mark.parametrize("version", [1, 3])
def test_other_formats_are_refused_with_both_versions(version, tmp_path):
    there = {"format": version, "penstock": "9.8.7", "chunks": [{"crc32c": 5}]}
    (tmp_path / NAME).write_text(json.dumps(there, indent=1))
    wanted = f"saved in format {version}; this version reads format 2"
    with pytest.raises(FailedPreconditionError, match=wanted) as caught:
        read_manifest(str(tmp_path))
    assert "9.8.7" in caught.value.hint
    with pytest.raises(FailedPreconditionError, match=wanted):
        ps.Dataset.load(tmp_path)


def test_none_is_there(tmp_path):
    with pytest.raises(NotFoundError, match=NAME):
        read_manifest(str(tmp_path))


def test_one_that_is_there_stays_unless_it_is_to_be_replaced(tmp_path):
    assert write_manifest(str(tmp_path), FULL, replace=False)
    other = replace(FULL, key="other")
    assert not write_manifest(str(tmp_path), other, replace=False)
    assert read_manifest(str(tmp_path)).key == "k"
    assert write_manifest(str(tmp_path), other, replace=True)
    assert read_manifest(str(tmp_path)).key == "other"


def test_a_folder_of_entries_is_told_from_one_of_them(tmp_path):
    entry = tmp_path / "entry"
    entry.mkdir()
    write_manifest(str(entry), FULL, replace=False)
    with pytest.raises(NotFoundError) as caught:
        read_manifest(str(tmp_path))
    assert f"load one of them, such as '{entry}'" in caught.value.hint


def test_what_to_do_names_the_folder(tmp_path):
    write_manifest(str(tmp_path), FULL, replace=False)
    with (
        flipped(tmp_path / NAME, 30, 1),
        pytest.raises(DataLossError, match=f"once the folder '{tmp_path}' is deleted"),
    ):
        read_manifest(str(tmp_path))


# -- manifests of other writers, with the right checksum

CHUNK = CHUNKS[0].to_json()
LEAF = {"dtype": "int64", "shape": []}
FORGED = {
    "key": 5,
    "run": ["data"],
    "compression": "rot13",
    "complete": "no",
    "created": None,
    "penstock": 2,
    "elements": 7,
    "chunks": {"file": "a"},
    "chunks that are too many": ("chunks", [{**CHUNK, "elements": 1 << 63}]),
    "chunks without a name": ("chunks", [{**CHUNK, "file": "a\0b"}]),
    "made_of": [["map", "function", 3]],
    "made_of that is short": ("made_of", [["map"]]),
    "sources": [["a", "12", 34]],
    "sources without a name": ("sources", [[["a"], 1, 2]]),
    "spec": 5,
    "spec without leaves": ("spec", {"nest": None}),
    "spec without a nest": ("spec", {"leaves": []}),
    "spec of another size": ("spec", {"nest": {"tuple": [None, None]}, "leaves": [LEAF]}),
    "spec of an unknown dtype": ("spec", {"nest": None, "leaves": [{"dtype": "thing", "shape": []}]}),
    "spec of an unknown kind": ("spec", {"nest": None, "leaves": [{"dtype": "int64", "kind": "Popen"}]}),
    "spec without extents": ("spec", {"nest": None, "leaves": [{"dtype": "int64", "shape": "ab"}]}),
    "spec with a key twice": ("spec", {"nest": {"dict": [["a", None], ["a", None]]}, "leaves": [LEAF, LEAF]}),
    "spec with a list for a key": ("spec", {"nest": {"dict": [[["a"], None]]}, "leaves": [LEAF]}),
    "spec of a number": ("spec", {"nest": {"type": 3, "fields": ["a"], "parts": [None]}, "leaves": [LEAF]}),
    "spec without end": ("spec", {"nest": "DEEP", "leaves": [LEAF]}),
}


def forged(manifest, **fields):
    """Return the text of a manifest with other fields, and their checksum."""
    found = {**json.loads(_text_of(manifest)), **fields}
    del found["crc32c"]
    text = json.dumps(found).encode()[:-1].replace(b'"DEEP"', b'{"tuple": [' * 20_000 + b"null" + b"]}" * 20_000)
    return text + b',\n "crc32c": ' + str(crc32c.crc32c(text)).encode() + b"\n}\n"


@pytest.mark.parametrize("name", FORGED)
def test_what_is_no_manifest_is_refused_though_its_checksum_is_right(name, tmp_path):
    field, value = FORGED[name] if isinstance(FORGED[name], tuple) else (name, FORGED[name])
    (tmp_path / NAME).write_bytes(forged(FULL, **{field: value}))
    with pytest.raises(DataLossError, match="cannot be read") as caught:
        read_manifest(str(tmp_path))
    assert caught.value.context.file == str(tmp_path / NAME)
    assert str(tmp_path) in caught.value.hint


@pytest.mark.parametrize("spec", [FULL.spec, None])
def test_a_manifest_of_others_is_read_where_it_is_one(spec, tmp_path):
    (tmp_path / NAME).write_bytes(forged(FULL, spec=spec, elements=6))
    assert read_manifest(str(tmp_path)) == replace(FULL, spec=spec)
