"""Chunks: each kind of damage is found, and reported with file and position."""

import io
import os
import re
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from tests.store.chunks import chunk_of
from tests.store.flipped import flipped

from penstock.block.block import Block
from penstock.block.column import BytesColumn, DenseColumn, ListColumn
from penstock.block.structure import flatten
from penstock.errors import DataLossError, NotFoundError, PenstockError
from penstock.store import chunk as chunk_module
from penstock.store.chunk import Chunk
from penstock.store.chunk_files import ChunkFile, batch_rows, encode

STRUCTURE = flatten((1, 2))[1]


def block(count=3):
    strings = BytesColumn.from_values([b"x" * i for i in range(count)])
    return Block(STRUCTURE, [DenseColumn(np.arange(count * 4).reshape(count, 4)), strings], count)


def content_of(found):
    return encoded(found, found.specs(), None)


def encoded(found, specs, codec):
    sink = io.BytesIO()
    encode(found, specs, codec, batch_rows(found, specs, codec), sink)
    return sink.getvalue()


def written(path, content, elements=3):
    path.write_bytes(content)
    return chunk_of(path.name, 0, elements, elements, content)


# -- damage


@pytest.mark.parametrize("page", [64, 1 << 20])
def test_every_byte_that_changes_is_found_and_its_place_named(page, tmp_path, monkeypatch):
    monkeypatch.setattr(chunk_module, "PAGE", page)
    path, content = tmp_path / "chunk.arrow", content_of(block())
    known = written(path, content)
    ChunkFile(str(path), known)
    for at in range(len(content)):
        with flipped(path, at, 1 << at % 8), pytest.raises(DataLossError) as caught:
            ChunkFile(str(path), known)
        first, last = map(int, re.search(r"bytes (\d+) to (\d+) are not those", caught.value.message).groups())
        assert first <= at <= last < first + page
        assert caught.value.context.file == str(path)
        assert caught.value.context.offset == first


def test_every_length_but_its_own_is_found(tmp_path):
    path, content = tmp_path / "chunk.arrow", content_of(block())
    known = written(path, content)
    for size in reversed(range(len(content))):
        os.truncate(path, size)
        with pytest.raises(DataLossError, match=f"has {size} bytes, and {len(content)} were"):
            ChunkFile(str(path), known, verified=size % 2 == 0)
    path.write_bytes(content + b"x")
    with pytest.raises(DataLossError, match=f"has {len(content) + 1} bytes"):
        ChunkFile(str(path), known)


def test_the_first_damaged_page_of_a_file_that_was_cut_short_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(chunk_module, "PAGE", 64)
    path, content = tmp_path / "chunk.arrow", content_of(block())
    known = written(path, content)
    path.write_bytes(content[:100] + b"?" + content[101:200])
    with pytest.raises(DataLossError, match="bytes 64 to 127"):
        ChunkFile(str(path), known)


def test_a_file_that_is_missing_is_no_damage(tmp_path):
    with pytest.raises(NotFoundError):
        ChunkFile(str(tmp_path / "nothing"), Chunk("nothing", 0, 1, 1, 1, (0,)))


def beyond_its_strings():
    """Build a batch whose first string ends after the last byte."""
    places = pa.py_buffer(np.array([0, 1 << 40, 2, 3]))
    strings = pa.LargeBinaryArray.from_buffers(pa.large_binary(), 3, [None, places, pa.py_buffer(b"abc")])
    return pa.record_batch({"0": pa.array([1, 2, 3]), "1": strings})


def numbers(metadata):
    return pa.record_batch({"x": pa.array([1, 2, 3])}).replace_schema_metadata({b"penstock": metadata})


def arrow(batch):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


STRANGE = {
    "no Arrow": lambda: b"x" * 100,
    "no batch": lambda: content_of(block())[:-200] + bytes(200),
    "places beyond the file": lambda: arrow(beyond_its_strings()),
    "another shape": lambda: arrow(
        numbers(b'{"version": 1, "columns": ["x"], "leaves": [{"dtype": "int64", "shape": [7]}]}')
    ),
    "metadata that is not JSON": lambda: arrow(numbers(b"{")),
}


@pytest.mark.parametrize("name", STRANGE)
def test_a_file_that_holds_something_else_is_refused_though_its_checksums_are_right(name, tmp_path):
    path = tmp_path / "chunk.arrow"
    known = written(path, STRANGE[name]())
    with pytest.raises(DataLossError, match="does not hold") as caught:
        ChunkFile(str(path), known).block(0, STRUCTURE)
    assert caught.value.context.file == str(path)


@pytest.mark.parametrize("codec", [None, "lz4"])
def test_bytes_of_strangers_are_elements_or_an_error(codec, tmp_path):
    path, rng = tmp_path / "chunk.arrow", np.random.default_rng(0)
    ragged = ListColumn([np.arange(i) for i in range(3)])
    whole = Block(flatten((1, 2, 3))[1], [*block().columns, ragged], 3)
    content = encoded(whole, [*block().specs(), ragged.spec()], codec)
    path.write_bytes(content)
    for _ in range(200):
        found = bytearray(content)
        for at in rng.integers(0, len(content), 3):
            found[at] = rng.choice([0, 1, 127, 255])
        with path.open("r+b") as file:
            file.write(found)
        with suppress(PenstockError):
            read = ChunkFile(str(path), chunk_of(path.name, 0, 3, 3, found)).block(0, whole.structure)
            assert len(read.take(np.array([0, 2])).elements()) == 2


# -- as JSON


@pytest.mark.parametrize("size", [1, 1 << 20, (1 << 20) + 1, 5 << 20])
def test_there_is_a_checksum_for_every_mebibyte_and_json_keeps_them(size):
    found = chunk_of("data/a.arrow", 3, 7, 2, bytes(size))
    assert len(found.crcs) == -(-size >> 20)
    assert Chunk.from_json(found.to_json()) == found


OTHERS = {
    "a path that leaves the folder": {"file": "../a.arrow"},
    "an absolute path": {"file": "/a.arrow"},
    "no path": {"file": 3},
    "no elements": {"elements": 0},
    "no rows": {"rows": 0},
    "text for a number": {"bytes": "7"},
    "a fraction": {"shard": 0.5},
    "a checksum too many": {"crcs": "0" * 16},
    "no checksum": {"crcs": ""},
    "half a checksum": {"crcs": "0000"},
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_chunk_is_refused(name):
    found = chunk_of("a.arrow", 0, 1, 1, b"content")
    with pytest.raises(ValueError, match="is no chunk"):
        Chunk.from_json({**found.to_json(), **OTHERS[name]})
    with pytest.raises(KeyError):
        Chunk.from_json({"file": "a.arrow"})
    assert Chunk.from_json({**found.to_json(), "shard": -1}) == replace(found, shard=-1)
