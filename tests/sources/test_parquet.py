"""Rows of Parquet and Arrow files: by iteration and by number, with damages in their places."""

import decimal
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.golden.golden import assert_golden
from tests.sources.numbers import everything_by_number, everything_uncounted, given_at
from tests.sources.passes import everything, kinds

import penstock as ps
from penstock import errors
from penstock.block.arrow import to_arrow
from penstock.block.block import Block
from penstock.block.structure import map_leaves
from penstock.sources import arrow_pieces, parquet
from penstock.testing import assert_resumes_exactly, assert_same_elements

WRITERS = ["parquet", "file", "stream", "compressed file", "compressed stream"]


def table(size=10, **columns):
    found = {
        "id": pa.array(range(size), pa.int16()),
        "text": pa.array([f"t{i}" * (i % 3) for i in range(size)], pa.string()),
        "list": pa.array([list(range(i % 4)) for i in range(size)], pa.list_(pa.int32())),
    }
    return pa.table({**found, **columns})


def write(path, rows, kind, chunk=4):
    """Write a file in one of the formats, in chunks of rows."""
    if kind == "parquet":
        pq.write_table(rows, path, row_group_size=chunk)
        return path
    options = pa.ipc.IpcWriteOptions(compression="zstd" if "compressed" in kind else None)
    new = pa.ipc.new_file if kind.endswith("file") else pa.ipc.new_stream
    with new(path, rows.schema, options=options) as writer:
        writer.write_table(rows, max_chunksize=chunk)
    return path


def dataset(kind, files, *args, **kwargs):
    return (ps.ParquetDataset if kind == "parquet" else ps.ArrowDataset)(files, *args, **kwargs)


def plain(found):
    return [map_leaves(lambda leaf: leaf if isinstance(leaf, bytes) else leaf.tolist(), item) for item in found]


def rows_of(rows):
    """Return the elements of a table of ids, texts and lists, by way of Python values."""
    return [{**row, "text": row["text"].encode()} for row in rows.to_pylist()]


@pytest.fixture(params=WRITERS)
def kind(request):
    return request.param


def test_rows_of_several_files(kind, tmp_path):
    parts = [table(10), table(0), table(3).slice(1)]
    files = [write(tmp_path / str(i), part, kind) for i, part in enumerate(parts)]
    ds = dataset(kind, files)
    assert plain(everything_by_number(ds)) == [row for part in parts for row in rows_of(part)]
    assert len(ds) == 12
    assert ds.element_spec == {
        "id": ps.TensorSpec((), np.int16),
        "text": ps.TensorSpec((), bytes),
        "list": ps.TensorSpec((None,), np.int32),
    }


@pytest.mark.parametrize("size", [0, 1])
def test_few_rows(kind, tmp_path, size):
    assert plain(everything_by_number(dataset(kind, write(tmp_path / "a", table(size), kind)))) == rows_of(table(size))


def test_no_files(kind):
    assert everything_by_number(dataset(kind, [])) == []


def test_columns_are_chosen_and_ordered(kind, tmp_path):
    file = write(tmp_path / "a", table(5), kind)
    found = everything_by_number(dataset(kind, file, ["text", "id"]))
    assert [list(row) for row in found] == [["text", "id"]] * 5
    assert plain(found)[4] == {"text": b"t4", "id": 4}


def test_a_null_is_one_failure_that_names_column_row_and_file(kind, tmp_path):
    rows = table(10, label=pa.array([None if i in (2, 5, 6) else i for i in range(10)], pa.int8()))
    file = write(tmp_path / "a", rows, kind)
    found = everything_by_number(dataset(kind, file, ["label"]))
    assert [type(item) is errors.InvalidArgumentError for item in found] == [i in (2, 5, 6) for i in range(10)]
    assert str(found[5]).startswith("Column 'label' is null in row 5.")
    assert found[5].context.file == str(file)
    filled = everything_by_number(dataset(kind, file, ["label"], fill_null={"label": -1}))
    assert plain(filled)[4:8] == [{"label": 4}, {"label": -1}, {"label": -1}, {"label": 7}]


def test_files_that_cannot_be_read_are_one_failure_each(kind, tmp_path):
    good = write(tmp_path / "good", table(5), kind)
    bad = tmp_path / "bad"
    bad.write_bytes(b"nothing of the kind")
    empty = tmp_path / "empty"
    empty.write_bytes(b"")
    other = write(tmp_path / "other", table(5).drop(["list"]), kind)
    ds = dataset(kind, [tmp_path / "missing", good, bad, empty, tmp_path, other, good])
    found = everything_uncounted(ds)
    names = ["NotFoundError", *[dict] * 5, "DataLossError", "DataLossError", "InvalidArgumentError"]
    names += ["InvalidTypeError", *[dict] * 5]
    assert [type(item).__name__ if isinstance(item, Exception) else dict for item in found] == names
    about = [item.context.file for item in found if isinstance(item, Exception) and item.context.file]
    assert about == [str(tmp_path / name) for name in ("missing", "bad", "empty", "other")]
    assert "list is missing here" in str(found[9])


def test_a_stream_cut_short_gives_what_came_before(tmp_path):
    whole = write(tmp_path / "whole", table(12), "stream").read_bytes()
    cut = tmp_path / "cut"
    cut.write_bytes(whole[: len(whole) - 100])
    found = everything_uncounted(ps.ArrowDataset([cut, tmp_path / "whole"], ["id"]))
    assert len(found) == 8 + 1 + 12
    assert kinds(found)[8] == ("DataLossError", None)


def test_a_damaged_batch_of_a_file_is_one_failure(tmp_path):
    rows = pa.table({"id": pa.array([7] * 30, pa.int64())})
    file = write(tmp_path / "a", rows, "compressed file", chunk=10)
    content = bytearray(file.read_bytes())
    frame = content.index(b"\x28\xb5\x2f\xfd", content.index(b"\x28\xb5\x2f\xfd") + 4)  # zstd's magic number, twice
    content[frame : frame + 8] = bytes(8)
    file.write_bytes(content)
    found = everything(ps.ArrowDataset(file))
    assert [number for number, item in enumerate(found) if isinstance(item, Exception)] == [10]
    assert len(found) == 21


def test_a_damaged_row_group_loses_its_rows_and_no_others(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "_PIECE", 1)
    rows = pa.table({"id": pa.array(range(12), pa.int64())})
    path = tmp_path / "a"
    pq.write_table(rows, path, row_group_size=4, write_page_checksum=True, use_dictionary=False, compression="none")
    content = bytearray(path.read_bytes())
    content[content.index(np.arange(4, 8).tobytes())] ^= 255
    path.write_bytes(content)
    found = everything_by_number(ps.ParquetDataset([path, path]))
    lost = [number for number, item in enumerate(found) if isinstance(item, Exception)]
    assert lost == [4, 5, 6, 7, 16, 17, 18, 19]
    assert "checksum" in str(found[4])


def test_one_row_at_a_time_is_decoded_where_rows_are_large(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "_PIECE", 1)
    file = write(tmp_path / "a", table(9), "parquet")
    assert plain(everything_by_number(ps.ParquetDataset(file))) == rows_of(table(9))


def test_what_is_remembered_is_bounded_and_forgotten_with_its_owner(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "RECENT", recent := arrow_pieces.Recent(300))
    file = write(tmp_path / "a", table(40), "parquet")
    source = ps.ParquetDataset(file)._plan.source
    assert plain(given_at(source, range(40))) == rows_of(table(40))
    assert 1 <= len(recent._kept) < 10
    assert recent._bytes == sum(cost for _, cost in recent._kept.values()) <= 300
    del source
    assert not recent._kept
    assert recent._bytes == 0


def test_local_arrow_files_are_not_copied(tmp_path):
    file = write(tmp_path / "a", table(1000), "file", chunk=1000)
    reader = ps.ArrowDataset(file)._plan.source.open()
    before = pa.total_allocated_bytes()
    block = reader.read(1000)
    assert block.size == 1000
    assert pa.total_allocated_bytes() == before
    assert not block.columns[0].array.flags.writeable


def test_files_interleaved_row_by_row(kind, tmp_path):
    files = [write(tmp_path / str(i), table(size), kind) for i, size in enumerate((3, 1, 4))]
    ds = dataset(kind, files, ["id"], num_parallel_reads=2)
    assert [int(row["id"]) for row in ds] == [0, 0, 1, 2, 0, 1, 2, 3]


def test_files_named_by_a_data_set(kind, tmp_path):
    names = [str(write(tmp_path / str(i), table(2), kind)) for i in range(2)]
    assert len(list(dataset(kind, ps.Dataset.from_tensor_slices(names)))) == 4


def test_elements_that_penstock_wrote_keep_their_nest(kind, tmp_path):
    elements = [(i, {"image": np.full((2, 2), i, np.uint8), "tags": np.arange(i)}) for i in range(4)]
    block = Block.from_elements(elements)
    file = write(tmp_path / "a", pa.Table.from_batches([to_arrow(block)]), kind)
    assert_same_elements(everything_by_number(dataset(kind, file)), block.elements())
    chosen = everything_by_number(dataset(kind, file, ["1.image"]))
    assert chosen[3]["1.image"].tolist() == [[3, 3], [3, 3]]


def test_a_global_order_reads_every_row_once(kind, tmp_path):
    files = [write(tmp_path / str(i), table(20), kind) for i in range(3)]
    source = dataset(kind, files)._plan.source
    order = np.random.default_rng(0).permutation(60)
    assert [int(row["id"]) for row in given_at(source, order)] == (order % 20).tolist()


ARGUMENTS = {
    "columns_text": lambda: ps.ParquetDataset("a", columns="id"),
    "columns_empty": lambda: ps.ParquetDataset("a", columns=[]),
    "columns_twice": lambda: ps.ArrowDataset("a", columns=["id", "id"]),
    "columns_number": lambda: ps.ArrowDataset("a", columns=[3]),
    "fill_null": lambda: ps.ParquetDataset("a", fill_null=0),
    "parallel_0": lambda: ps.ParquetDataset("a", num_parallel_reads=0),
    "files_number": lambda: ps.ArrowDataset(3),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_wrong_arguments_are_refused_where_they_are_given(name):
    with pytest.raises(errors.PenstockError) as caught:
        ARGUMENTS[name]()
    assert_golden(f"argument_arrow_{name}", f"{type(caught.value).__name__}: {caught.value}")


BY_THE_FIRST_FILE = {
    "column_missing": (lambda file: ps.ParquetDataset(file, ["idd"]), table(2)),
    "fill_null_unknown": (lambda file: ps.ParquetDataset(file, fill_null={"idd": 0}), table(2)),
    "null_column": (lambda file: ps.ParquetDataset(file), pa.table({"a": pa.nulls(1)})),
}


@pytest.mark.parametrize("name", BY_THE_FIRST_FILE)
def test_what_does_not_fit_the_first_file_is_refused_where_it_is_given(name, tmp_path):
    make, rows = BY_THE_FIRST_FILE[name]
    file = write(tmp_path / "a.parquet", rows, "parquet")
    with pytest.raises(errors.PenstockError) as caught:
        make(file)
    assert_golden(f"error_arrow_{name}", f"{type(caught.value).__name__}: {caught.value}")
    with pytest.raises(type(caught.value), match=re.escape(caught.value.message)):
        make([file, tmp_path / "another"])


def test_what_only_the_rows_can_tell_comes_with_the_pass(tmp_path):
    rows = pa.table({"a": [{"b": None}, {"b": 1}]})
    found = everything(ps.ParquetDataset(write(tmp_path / "a.parquet", rows, "parquet")))
    assert_golden("error_arrow_null", f"{type(found[0]).__name__}: {found[0]}")


def test_a_pass_opens_a_file_when_it_comes_to_it(tmp_path, monkeypatch):
    opened = []
    open_rows = parquet.ParquetSource.open_rows
    monkeypatch.setattr(
        parquet.ParquetSource, "open_rows", lambda self, name: opened.append(name[-1]) or open_rows(self, name)
    )
    source = ps.ParquetDataset([write(tmp_path / str(i), table(3), "parquet") for i in range(3)])._plan.source
    reader = source.open()
    reader.read(3)
    assert opened == ["0", "0"]  # once for the spec of all files
    reader.read(3)
    assert opened == ["0", "0", "1"]
    reader.close()
    assert len(source) == 9
    assert opened[3:] == ["0", "1", "2"]


@pytest.mark.parametrize("executor", ["inline", "thread"])
def test_a_pipeline_goes_on_behind_what_cannot_be_read(executor, tmp_path):
    rows = table(10, label=pa.array([None if i == 2 else i for i in range(10)], pa.int8()))
    files = [tmp_path / "missing", write(tmp_path / "a", rows, "parquet")]
    ds = ps.ParquetDataset(files, ["label"]).map(lambda row: row["label"]).ignore_errors().batch(4)
    with ds.iterator(executor=executor) as elements:
        assert [batch.tolist() for batch in elements] == [[0, 1, 3, 4], [5, 6, 7, 8], [9]]


def decimals():
    number = decimal.Decimal
    return pa.table(
        {
            "x": pa.array([number("1.10"), number("12345678901234567.89")]),
            "list": pa.array([[number("1.5")], []]),
            "inner": pa.array([{"y": number("3.1")}, {"y": None}]),
        }
    )


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_decimals_are_float64_with_a_warning(tmp_path, kind):
    make = {"parquet": ps.ParquetDataset, "arrow": ps.ArrowDataset}[kind]
    file = write(tmp_path / "a", decimals(), kind)
    with pytest.warns(UserWarning, match=r"x, list, inner.*decimals=bytes"):
        found = list(make(file, fill_null={"inner.y": 0}))
    assert_same_elements(found, list(make(file, fill_null={"inner.y": 0}, decimals=np.float64)))  # no warning
    assert [row["x"] for row in found] == [1.1, 12345678901234567.89]
    assert {row["list"].dtype for row in found} == {np.dtype(np.float64)}
    assert {row["inner"]["y"].dtype for row in found} == {np.dtype(np.float64)}


def test_decimals_of_tables_are_float64_with_a_warning():
    with pytest.warns(UserWarning, match="float64"):
        assert [row["x"] for row in ps.Dataset.from_arrow(decimals(), ["x"])] == [1.1, 12345678901234567.89]


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_decimals_as_text(tmp_path, kind):
    make = {"parquet": ps.ParquetDataset, "arrow": ps.ArrowDataset}[kind]
    ds = make(write(tmp_path / "a", decimals(), kind), fill_null={"inner.y": "-"}, decimals=bytes)
    first, second = ds
    assert (first["x"], second["x"]) == (b"1.10", b"12345678901234567.89")
    assert first["list"].tolist() == [b"1.5"]
    assert (first["inner"]["y"], second["inner"]["y"]) == (b"3.1", b"-")
    assert_same_elements([ds[1]], [second])
    assert_resumes_exactly(ds)


def test_decimals_is_a_dtype():
    with pytest.raises(errors.InvalidTypeError, match=r"bytes or np\.float64"):
        ps.ParquetDataset("a.parquet", decimals="text")


def test_images_of_hugging_face_open_where_their_path_is_null(tmp_path):
    images = [{"bytes": b"one", "path": None}, {"bytes": b"two", "path": "two.png"}]
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    pq.write_table(pa.table({"image": pa.array(images, kind), "label": [0, 1]}), tmp_path / "a.parquet")
    found = [row["image"] for row in ps.ParquetDataset(tmp_path / "a.parquet")]
    assert found == [{"bytes": b"one", "path": b""}, {"bytes": b"two", "path": b"two.png"}]
    named = ps.ParquetDataset(tmp_path / "a.parquet", fill_null={"image.path": "none"})
    assert next(iter(named))["image"]["path"] == b"none"


def test_files_of_hugging_face_without_bytes_are_an_error(tmp_path):
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    pq.write_table(pa.table({"image": pa.array([{"bytes": None, "path": "a"}], kind)}), tmp_path / "a.parquet")
    with pytest.raises(ps.errors.InvalidArgumentError, match=r"'image\.bytes' is null"):
        list(ps.ParquetDataset(tmp_path / "a.parquet"))


@pytest.mark.parametrize("source", ["parquet", "arrow"])
def test_shuffled_batches_are_the_rows_of_their_numbers(tmp_path, source):
    """Rows of many groups are gathered for several batches at a time."""
    rows = table(4000, value=pa.array(np.arange(4000) / 8))
    if source == "parquet":
        names = [write(tmp_path / str(i), rows.slice(i * 1500, 1500), "parquet", chunk=70) for i in range(3)]
        shuffled = ps.ParquetDataset(names).shuffle(ps.ALL, seed=7)
    else:
        shuffled = ps.Dataset.from_arrow(rows).shuffle(ps.ALL, seed=7)
    order = [int(x) for x in ps.Dataset.range(4000).shuffle(ps.ALL, seed=7)]
    batches = shuffled.map(lambda row: {**row, "list": len(row["list"])}).batch(7)
    found = list(batches)
    for name, wanted in (
        ("id", [*range(4000)]),
        ("text", [f"t{i}".encode() * (i % 3) for i in range(4000)]),
        ("list", [i % 4 for i in range(4000)]),
        ("value", [i / 8 for i in range(4000)]),
    ):
        assert np.concatenate([batch[name] for batch in found]).tolist() == [wanted[i] for i in order]
    assert_resumes_exactly(batches.take(20))
