"""convert to and from MDS and LitData: values, shards, compression, what these formats cannot hold, and damage."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.golden.golden import assert_golden
from tests.sources.shard_files import unpack_written, write_litdata, write_mds

import penstock as ps
from penstock.errors import (
    AlreadyExistsError,
    DataLossError,
    InvalidArgumentError,
    InvalidTypeError,
    NotFoundError,
    PenstockError,
)
from penstock.formats import convert, open_dataset, recognise, writers
from penstock.formats.tables import read_table

KINDS = ["mds", "litdata"]
ROWS = 23
NUMBERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "float16", "float32", "float64"]


def columns():
    """Columns of all types that both formats hold."""
    found = {
        "text": pa.array(["é" * i for i in range(ROWS)]),
        "image": pa.array([bytes([i]) * i for i in range(ROWS)], pa.large_binary()),
        "yes": pa.array([i % 3 == 0 for i in range(ROWS)]),
        "both": pa.array([[i % 3 == 0, True] for i in range(ROWS)], pa.list_(pa.bool_(), 2)),
        "boxes": pa.array(
            [[[j, i, 0.5] for j in range(i % 3)] for i in range(ROWS)], pa.list_(pa.list_(pa.float32(), 3))
        ),
        "large": pa.array([list(range(i % 3)) for i in range(ROWS)], pa.large_list(pa.uint64())),
    }
    matrix = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(6 * ROWS, dtype=np.float32)), 3)
    found["matrix"] = pa.FixedSizeListArray.from_arrays(matrix, 2)
    for name in NUMBERS:
        low = 0 if name[0] == "u" else -5
        values = pa.array(np.arange(low, 2 * ROWS + low).astype(name))
        found[name] = values[:ROWS]
        found[f"two_{name}"] = pa.FixedSizeListArray.from_arrays(values, 2)
        found[f"some_{name}"] = pa.array([values[: i % 4].to_pylist() for i in range(ROWS)], pa.list_(values.type))
    return found


TABLE = pa.table(columns())


def rows_of(path):
    return [row for batch in read_table(recognise(path)).batches() for row in batch.to_pylist()]


def written(path, table):
    pq.write_table(table if isinstance(table, pa.Table) else pa.table(table), path / "in.parquet")
    return path / "in.parquet"


def files_in(path):
    return sorted(file.name for file in path.iterdir())


@pytest.mark.parametrize("shards", [None, 4])
@pytest.mark.parametrize("compression", [None, "zstd"])
@pytest.mark.parametrize("kind", KINDS)
def test_there_and_back(kind, compression, shards, tmp_path):
    source = written(tmp_path, TABLE)
    done = convert(source, tmp_path / "out", target_format=kind, compression=compression, shards=shards)
    ending = f".{compression}" if compression else ""
    names = [f"shard.{n:05d}.mds{ending}" if kind == "mds" else f"chunk-0-{n}{ending}.bin" for n in range(shards or 1)]
    assert files_in(tmp_path / "out") == sorted([*names, "index.json"])
    assert (done.rows, len(done.files)) == (ROWS, len(names) + 1)
    assert done.bytes == recognise(tmp_path / "out").bytes
    assert recognise(tmp_path / "out").format == kind
    table = read_table(recognise(tmp_path / "out"))
    assert (table.count, table.schema.names) == (ROWS, TABLE.column_names)
    assert rows_of(tmp_path / "out") == TABLE.to_pylist()
    opened = open_dataset(tmp_path / "out").dataset
    assert [bytes(row["image"]) for row in opened] == TABLE.column("image").to_pylist()
    convert(tmp_path / "out", tmp_path / "back.parquet", columns=["text", "matrix"])
    assert pq.read_table(tmp_path / "back.parquet").to_pylist() == TABLE.select(["text", "matrix"]).to_pylist()
    assert files_in(tmp_path) == ["back.parquet", "in.parquet", "out"]


ROW = st.fixed_dictionaries(
    {
        "id": st.integers(-(2**63), 2**63 - 1),
        "text": st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
        "raw": st.binary(max_size=6),
        "score": st.floats(allow_nan=False),
        "small": st.floats(width=32, allow_nan=False),
        "yes": st.booleans(),
        "words": st.lists(st.integers(0, 2**64 - 1), max_size=3),
        "box": st.lists(st.integers(-2048, 2048).map(float), min_size=2, max_size=2),
    }
)
SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "text": pa.string(),
        "raw": pa.binary(),
        "score": pa.float64(),
        "small": pa.float32(),
        "yes": pa.bool_(),
        "words": pa.list_(pa.uint64()),
        "box": pa.list_(pa.float16(), 2),
    }
)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(ROW, min_size=1, max_size=8), shards=st.none() | st.integers(1, 9), first=st.sampled_from(KINDS))
def test_what_is_written_is_read_back_through_both_formats(tmp_path_factory, rows, shards, first):
    tmp_path = tmp_path_factory.mktemp("there")
    source = written(tmp_path, pa.Table.from_pylist(rows, SCHEMA))
    convert(source, tmp_path / "one", target_format=first, shards=shards)
    second = KINDS[KINDS.index(first) - 1]
    convert(tmp_path / "one", tmp_path / "two", target_format=second, compression="zstd")
    assert rows_of(tmp_path / "one") == rows_of(tmp_path / "two") == rows


def test_columns_have_the_encodings_of_the_libraries(tmp_path):
    source = written(tmp_path, TABLE)
    convert(source, tmp_path / "m", target_format="mds")
    convert(source, tmp_path / "l", target_format="litdata")
    shard = json.loads((tmp_path / "m" / "index.json").read_text())["shards"][0]
    config = json.loads((tmp_path / "l" / "index.json").read_text())["config"]
    lines = zip(TABLE.schema, shard["column_encodings"], shard["column_sizes"], config["data_format"], strict=True)
    assert_golden("encodings", "\n".join(f"{f.name}: {f.type} | {mds}, {size} | {lit}" for f, mds, size, lit in lines))


def test_columns_of_fixed_size_keep_their_types(tmp_path):
    table = TABLE.select(["text", "int16", "two_float32", "matrix"])
    convert(written(tmp_path, table), tmp_path / "out", target_format="mds", shards=3)
    assert read_table(recognise(tmp_path / "out")).schema == table.schema
    assert open_dataset(tmp_path / "out").dataset.element_spec["matrix"] == ps.TensorSpec((2, 3), np.float32)


@pytest.mark.parametrize("kind", KINDS)
def test_shards_end_before_the_limit(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(writers, "_SHARD", 1000)
    sizes = [100] * 20 + [3000, 10, 10]
    source = written(tmp_path, {"raw": [b"x" * size for size in sizes]})
    done = convert(source, tmp_path / "out", target_format=kind)
    index = json.loads((tmp_path / "out" / "index.json").read_text())
    counts = (
        [shard["samples"] for shard in index["shards"]] if kind == "mds" else [c["chunk_size"] for c in index["chunks"]]
    )
    assert counts == [9, 9, 2, 1, 2]
    assert len(done.files) == 6
    assert [len(row["raw"]) for row in rows_of(tmp_path / "out")] == sizes


def test_no_more_shards_than_rows(tmp_path):
    source = written(tmp_path, {"n": [1, 2]})
    for kind in KINDS:
        convert(source, tmp_path / kind, target_format=kind, shards=5)
        assert len(files_in(tmp_path / kind)) == 3
        assert rows_of(tmp_path / kind) == [{"n": 1}, {"n": 2}]


@pytest.mark.parametrize("kind", KINDS)
def test_no_rows(kind, tmp_path):
    convert(written(tmp_path, {"n": pa.array([], pa.int64())}), tmp_path / "out", target_format=kind)
    assert recognise(tmp_path / "out").format == kind
    assert rows_of(tmp_path / "out") == list(open_dataset(tmp_path / "out").dataset) == []


def test_shards_become_other_files(tmp_path):
    source = written(tmp_path, TABLE.select(["text", "image", "int64", "two_float32"]))
    for kind in KINDS:
        convert(source, tmp_path / kind, target_format=kind, shards=2)
        convert(tmp_path / kind, tmp_path / f"{kind}.tar")
        rows = rows_of(tmp_path / f"{kind}.tar")
        assert [row["text"] for row in rows] == TABLE.column("text").to_pylist()
        assert [list(row["two_float32"]) for row in rows] == TABLE.column("two_float32").to_pylist()
        convert(tmp_path / kind, tmp_path / f"{kind}.tfrecord")
        assert [row["image"] for row in rows_of(tmp_path / f"{kind}.tfrecord")] == TABLE.column("image").to_pylist()


# -- files of the libraries

COUNT = 8
LIT = {
    "dicts": lambda i: {"a": i, "b": "é" * i, "c": list(range(i + 1)), "f": i / 3, "t": i % 2 == 0},
    "nest": lambda i: {
        "0": i,
        "1.0": 1.5 * i,
        "1.1": b"ab" * i,
        "2": [i] * 3,
        "3": [[1] * (i + 1)] * 2,
        "4.x": [[i] * (i + 1)] * 2,
        "4.t": i % 2 == 0,
    },
    "batch": lambda i: {"value": i * i},
    "batchdict": lambda i: {"a": i, "b": "x" * i},  # stored as Arrow rows
    "arrow": lambda i: {"a": i, "b": [i] * i},
    "chunk": lambda i: {"0": i, "1": b"x" * i},
}


@pytest.fixture(scope="module")
def of_libraries(tmp_path_factory):
    return unpack_written(tmp_path_factory.mktemp("written"))


@pytest.mark.parametrize("name", LIT)
def test_chunks_that_litdata_wrote(name, of_libraries, tmp_path):
    assert recognise(of_libraries / "litdata" / name).format == "litdata"
    convert(of_libraries / "litdata" / name, tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet").to_pylist() == [LIT[name](i) for i in range(COUNT)]


def test_pickled_columns_are_refused(of_libraries, tmp_path):
    for path in (of_libraries / "mds" / "zstd", of_libraries / "litdata" / "pickle"):
        assert recognise(path).format == path.parent.name
        for use in (open_dataset, lambda found: convert(found, tmp_path / "out.parquet")):
            with pytest.raises(InvalidTypeError, match="is pickled"):
                use(path)
    assert files_in(tmp_path) == []


def test_rows_of_tokens_need_their_length(of_libraries, tmp_path):
    with pytest.raises(PenstockError, match=r"block_size=None \(tokens of a row\), 'TokensLoader' is not read"):
        convert(of_libraries / "litdata" / "tokens", tmp_path / "out.parquet")


# -- what they cannot hold

FIXED = pa.list_(pa.int64(), 0)
CANNOT = {
    "time": {"t": pa.array([1], pa.timestamp("us"))},
    "decimal": {"d": pa.array([1], pa.decimal128(5, 2))},
    "dictionary": {"d": pa.array(["a"]).dictionary_encode()},
    "strings": {"s": pa.array([["a"]])},
    "lists_of_lists": {"l": pa.array([[[1], [2, 3]]])},
    "lists_in_fixed": {"l": pa.array([[[1], [2, 3]]], pa.list_(pa.list_(pa.int64()), 2))},
    "nothing_in_a_list": {"l": pa.array([[]], FIXED)},
    "null": {"a": [1, 2], "n": [1, None]},
    "null_in_a_list": {"l": [[1], [2, None]]},
    "uint64": {"u": pa.array([2**64 - 1], pa.uint64())},
}


@pytest.mark.parametrize("case", CANNOT)
def test_what_they_cannot_hold_is_an_error(case, tmp_path):
    source, told = written(tmp_path, CANNOT[case]), []
    for kind in KINDS:
        if kind == "mds" and case == "uint64":
            convert(source, tmp_path / "mds", target_format=kind)
            assert rows_of(tmp_path / "mds") == [{"u": 2**64 - 1}]
            continue
        with pytest.raises((InvalidTypeError, InvalidArgumentError)) as caught:
            convert(source, tmp_path / kind, target_format=kind)
        told.append(f"{kind}: {type(caught.value).__name__}: {caught.value}")
        assert kind not in files_in(tmp_path)
    assert_golden(case, "\n".join(told))


def test_names_must_differ(tmp_path):
    table = pa.table([pa.array([1]), pa.array([{"b": 2}])], names=["a.b", "a"])
    with pytest.raises(InvalidArgumentError, match=r"different names, got the columns \['a\.b', 'a\.b'\]"):
        convert(written(tmp_path, table), tmp_path / "out", target_format="mds")


def test_a_shard_of_4_gib_is_an_error(tmp_path):
    class Huge(bytes):
        def __len__(self):
            return 1 << 32

    writer = writers.ShardFolder(tmp_path / "out", pa.schema({"n": pa.int64()}), "mds", None, {0})
    writer._samples.append(Huge())
    with pytest.raises(InvalidArgumentError, match="would have 4294967308 bytes"):
        writer.close()


@pytest.mark.parametrize("kind", KINDS)
def test_other_compressions_are_refused(kind, tmp_path):
    source = written(tmp_path, {"n": [1]})
    with pytest.raises(InvalidArgumentError, match=f"{kind} is not compressed with 'gzip'(?s:.*)none, zstd"):
        convert(source, tmp_path / "out", target_format=kind, compression="gzip")


@pytest.mark.parametrize("kind", KINDS)
def test_only_shards_are_replaced(kind, tmp_path):
    source = written(tmp_path, {"n": [1, 2, 3]})
    convert(source, tmp_path / "out", target_format=kind, shards=3, compression="zstd")
    with pytest.raises(AlreadyExistsError, match="There is something at"):
        convert(source, tmp_path / "out", target_format=kind)
    convert(source, tmp_path / "out", target_format=kind, overwrite=True)
    assert len(files_in(tmp_path / "out")) == 2
    (tmp_path / "out" / "notes.txt").touch()
    with pytest.raises(AlreadyExistsError, match="holds more than shards"):
        convert(source, tmp_path / "out", target_format=kind, overwrite=True)


# -- damage


@pytest.mark.parametrize("kind", KINDS)
def test_a_truncated_shard_leaves_the_target_as_it_was(kind, tmp_path):
    convert(written(tmp_path, {"n": list(range(9))}), tmp_path / "shards", target_format=kind, shards=3)
    (tmp_path / "out.parquet").write_bytes(b"old")
    shard = sorted((tmp_path / "shards").glob("*1.*"))[0]
    shard.write_bytes(shard.read_bytes()[:-3])
    with pytest.raises(DataLossError) as caught:
        convert(tmp_path / "shards", tmp_path / "out.parquet", overwrite=True)
    assert caught.value.context.file == str(shard)
    assert (tmp_path / "out.parquet").read_bytes() == b"old"
    assert files_in(tmp_path) == ["in.parquet", "out.parquet", "shards"]
    shard.unlink()
    with pytest.raises(NotFoundError, match=shard.name):
        convert(tmp_path / "shards", tmp_path / "out.parquet", overwrite=True)


def test_a_damaged_sample_is_named(tmp_path):
    path = write_mds(tmp_path / "d", {"s": ("str", None)}, [[b"x" * i] for i in range(9)])
    shard = path / "shard.00000.mds"
    content = bytearray(shard.read_bytes())
    begin = int(np.frombuffer(content, np.uint32, 1, 4 + 4 * 5)[0])
    content[begin] += 1
    shard.write_bytes(content)
    index = json.loads((path / "index.json").read_text())
    index["shards"][0]["raw_data"]["hashes"] = {}
    (path / "index.json").write_text(json.dumps(index))
    with pytest.raises(DataLossError) as caught:
        convert(path, tmp_path / "out.parquet")
    assert (caught.value.context.file, caught.value.context.offset) == (str(shard), begin)


def test_text_that_is_no_utf8_is_an_error(tmp_path):
    rows = [[b"\xff"]]
    for path in (
        write_mds(tmp_path / "m", {"s": ("str", None)}, rows),
        write_litdata(tmp_path / "l", {"s": 0}, ["str"], rows),
    ):
        with pytest.raises(DataLossError, match="not a utf8 string") as caught:
            convert(path, tmp_path / "out.parquet")
        assert caught.value.context.file.startswith(str(path))


def test_values_that_arrow_does_not_have_are_an_error(tmp_path):
    value = np.array([4, 1, 1], ">u4").tobytes() + np.complex64(1j).tobytes()
    path = write_litdata(tmp_path / "l", {"c": 0}, ["tensor"], [[value]])
    with pytest.raises(InvalidTypeError, match="complex64 have no type in Arrow"):
        convert(path, tmp_path / "out.parquet")


def test_an_index_without_chunks_is_an_error(tmp_path):
    path = write_litdata(tmp_path / "l", {"n": 0}, ["int"], [])
    assert recognise(path).format == "litdata"
    with pytest.raises(DataLossError, match="There are no chunks"):
        convert(path, tmp_path / "out.parquet")


def test_other_folders_with_an_index_are_not_recognised(tmp_path):
    (tmp_path / "a.csv").write_text("x\n1\n")
    for content in ("{", "[]", "3", "{}", '{"shards": []}', '{"shards": [{"format": "json"}]}', '{"chunks": []}'):
        (tmp_path / "index.json").write_text(content)
        assert recognise(tmp_path).format == "csv"
    with pytest.raises(DataLossError, match=r"index\.json"):
        convert(tmp_path, tmp_path.parent / "out.parquet", source_format="mds")
