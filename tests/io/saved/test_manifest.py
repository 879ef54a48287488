"""The manifest: what is read is what was written, or an error that says what is there."""

import json
import os
from dataclasses import replace

import numpy as np
import pytest
from tests.io.saved.chunks import chunk_of
from tests.io.saved.flipped import flipped

import penstock as ps
from penstock.errors import DataLossError, FailedPreconditionError, NotFoundError
from penstock.io.saved.manifest import NAME, Manifest, read_manifest, spec_as_json, write_manifest

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
