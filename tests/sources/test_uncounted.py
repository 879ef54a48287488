"""The length of a data set of files: the truth, or the fault of the file that hides it."""

import gzip
import itertools
import tarfile
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock import errors
from penstock.dataset.frameworks import parted

ROWS = 2


def table(names):
    return pa.table({name: list(range(ROWS)) for name in names})


def parquet(path, names=("a", "b")):
    pq.write_table(table(names), path)


def arrow(path, names=("a", "b")):
    with pa.ipc.new_file(path, table(names).schema) as writer:
        writer.write_table(table(names))


def stream(path, names=("a", "b")):
    with pa.ipc.new_stream(path, table(names).schema) as writer:
        writer.write_table(table(names))


def records(path):
    with ps.io.TFRecordWriter(path) as writer:
        for i in range(ROWS):
            writer.write(str(i).encode())


def archive(path):
    with tarfile.open(path, "w") as tar:
        for i in range(ROWS):
            tar.addfile(tarfile.TarInfo(f"{i}.txt"))


def arrays(path):
    with path.open("wb") as file:
        np.save(file, np.arange(ROWS))


def arrays_together(path):
    with path.open("wb") as file:
        np.savez(file, x=np.arange(ROWS), y=np.arange(ROWS))


def columns(read):
    return lambda files: read(files, columns=["a", "b"])


@dataclass
class Kind:
    write: Any
    read: Any  # a data set of files
    damaged: bytes | None = b"\x00\x01nothing of the kind"  # None if any bytes are valid
    error: type[Exception] = errors.DataLossError  # the error for these bytes


COUNTED = {
    "parquet": Kind(parquet, columns(ps.ParquetDataset)),
    "arrow": Kind(arrow, columns(ps.ArrowDataset)),
    "arrow_stream": Kind(stream, columns(ps.ArrowDataset)),
    "npy": Kind(arrays, ps.NumpyDataset),
    "npz": Kind(arrays_together, ps.NumpyDataset),
    "tokens": Kind(
        lambda path: np.arange(ROWS).tofile(path), lambda files: ps.TokenDataset(files, np.int64, 1), bytes(3)
    ),
    "indexed": Kind(records, ps.IndexedTFRecordDataset, bytes(40)),
    "fixed": Kind(
        lambda path: path.write_bytes(bytes(3 * ROWS)),
        lambda files: ps.FixedLengthRecordDataset(files, 3),
        bytes(4),
        errors.InvalidArgumentError,
    ),
}
LINES = b"1\n2\n"
NEVER_COUNTED = {
    "tfrecord": Kind(records, ps.TFRecordDataset, bytes(40)),
    "text": Kind(lambda path: path.write_bytes(LINES), ps.TextLineDataset, None),
    "text_compressed": Kind(
        lambda path: path.write_bytes(gzip.compress(LINES)), lambda files: ps.TextLineDataset(files, "GZIP")
    ),
    "json_lines": Kind(lambda path: path.write_bytes(b'{"a": 1}\n' * ROWS), ps.JsonLinesDataset, b"{", ValueError),
    "csv": Kind(
        lambda path: path.write_bytes(LINES),
        lambda files: ps.experimental.CsvDataset(files, [np.int64]),
        b"x\n",
        errors.InvalidArgumentError,
    ),
    "webdataset": Kind(archive, ps.WebDataset),
    "fixed_compressed": Kind(
        lambda path: path.write_bytes(gzip.compress(bytes(3 * ROWS))),
        lambda files: ps.FixedLengthRecordDataset(files, 3, compression_type="GZIP"),
    ),
    "parquet_in_turn": Kind(parquet, lambda files: ps.ParquetDataset(files, num_parallel_reads=2)),
}
KINDS = COUNTED | NEVER_COUNTED


def given_by(dataset):
    """Return the elements of an iteration, with failures in their places."""
    found = []
    with dataset.iterator(executor="inline") as elements:
        while True:
            try:
                found.append(next(elements))
            except StopIteration:
                return found
            except Exception as error:
                found.append(error)


def failures(dataset):
    return [type(item) for item in given_by(dataset) if isinstance(item, Exception)]


def faulty(kind, folder, fault):
    """Write a file with the fault. Return it with the class of its error."""
    bad = folder / "bad-*" if fault == "pattern" else folder / "bad"
    if fault == "damaged":
        bad.write_bytes(kind.damaged)
        return bad, kind.error
    return bad, errors.NotFoundError


FAULTS = ["missing", "pattern", "damaged"]


@pytest.mark.parametrize(("name", "fault"), list(itertools.product(COUNTED, FAULTS)))
def test_what_is_not_known_is_unknown_and_the_error_names_the_file(name, fault, tmp_path):
    kind = COUNTED[name]
    good = tmp_path / "good"
    kind.write(good)
    bad, error = faulty(kind, tmp_path, fault)
    alone, between = kind.read(bad), kind.read([good, bad, good])
    assert kind.read(good).element_spec == between.element_spec
    assert failures(alone) == failures(between) == [error]
    assert len(given_by(between)) == 2 * ROWS + 1
    assert len(list(between.ignore_errors())) == 2 * ROWS
    for ds in (alone, between, between.batch(2), between.take(2), between.map(lambda x: x), between.concatenate(alone)):
        assert ds.cardinality() == ps.UNKNOWN_CARDINALITY
        assert "unknown elements" in repr(ds)
        ds.lint()
        ds.explain()
        for ask in (ds.__len__, lambda ds=ds: ds[0], lambda ds=ds: ds[-1:], lambda ds=ds: parted(ds._plan, 2, 0)):
            with pytest.raises(error) as caught:
                ask()
            assert caught.value.context.file == str(bad)
            assert caught.value.context.where is not None


@pytest.mark.parametrize("name", COUNTED)
def test_an_order_of_all_elements_ends_at_once_and_nothing_leaves_that_out(name, tmp_path):
    kind = COUNTED[name]
    kind.write(tmp_path / "good")
    ds = kind.read([tmp_path / "good", tmp_path / "bad"]).shuffle(ps.ALL, seed=1).ignore_errors()
    for executor in ("inline", "thread"):
        with ds.iterator(executor=executor) as elements:
            for _ in range(3):
                with pytest.raises(errors.NotFoundError) as caught:
                    next(elements)
                assert caught.value.context.file == str(tmp_path / "bad")


@pytest.mark.parametrize("name", COUNTED)
def test_a_file_that_comes_later_is_counted(name, tmp_path):
    kind = COUNTED[name]
    ds = kind.read([tmp_path / "a", tmp_path / "b"])
    for file in (tmp_path / "a", tmp_path / "b"):
        with pytest.raises(errors.NotFoundError):
            len(ds)
        kind.write(file)
    assert len(ds) == ds.cardinality() == len(list(ds)) == 2 * ROWS


@pytest.mark.parametrize("name", COUNTED)
def test_where_a_pass_must_tell_anyway_files_are_no_matter(name, tmp_path):
    kind = COUNTED[name]
    kind.write(tmp_path / "good")
    files = kind.read([tmp_path / "bad", tmp_path / "good"])
    for ds in (files.filter(lambda *x: True), files.ignore_errors(), files.batch(2).ignore_errors().take(1)):
        with pytest.raises(errors.InvalidTypeError, match="unknown before an iteration"):
            len(ds)
    assert len(list(files.ignore_errors().filter(lambda *x: True))) == ROWS


@pytest.mark.parametrize(("name", "fault"), list(itertools.product(NEVER_COUNTED, FAULTS)))
def test_formats_without_a_count_say_that_only_a_pass_can_tell(name, fault, tmp_path):
    kind = NEVER_COUNTED[name]
    kind.write(tmp_path / "good")
    if fault == "damaged" and kind.damaged is None:
        return
    bad, error = faulty(kind, tmp_path, fault)
    ds = kind.read([tmp_path / "good", bad, tmp_path / "good"])
    assert ds.cardinality() == ps.UNKNOWN_CARDINALITY
    assert "unknown elements" in repr(ds)
    with pytest.raises(errors.InvalidTypeError, match="unknown before an iteration"):
        len(ds)
    with pytest.raises(errors.UnimplementedError):
        ds[0]
    found = failures(ds)
    assert len(found) == 1
    assert issubclass(found[0], error)


@pytest.mark.parametrize("name", KINDS)
def test_no_files_are_no_elements(name):
    ds = KINDS[name].read([])
    assert given_by(ds) == []
    if name != "parquet_in_turn":
        assert len(ds) == ds.cardinality() == 0
        assert "0 elements" in repr(ds)
    if name in COUNTED:
        with pytest.raises(errors.OutOfRangeError):
            ds[0]


def test_a_pattern_that_matches_nothing_is_an_error_where_it_is_given(tmp_path):
    with pytest.raises(errors.NotFoundError, match="none-"):
        ps.Dataset.list_files(tmp_path / "none-*.parquet")


@pytest.mark.parametrize("name", ["parquet", "arrow", "arrow_stream"])
def test_a_column_that_is_not_there(name, tmp_path):
    kind = COUNTED[name]
    kind.write(tmp_path / "good")
    kind.write(tmp_path / "other", names=("a",))
    for files in (tmp_path / "other", [tmp_path / "other", tmp_path / "good"], [tmp_path / "other", tmp_path / "bad"]):
        with pytest.raises(errors.InvalidArgumentError, match="no column 'b'") as caught:
            kind.read(files)
        assert caught.value.context.file == str(tmp_path / "other")
    ds = kind.read([tmp_path / "good", tmp_path / "other"])  # only the first file is checked
    assert ds.cardinality() == ps.UNKNOWN_CARDINALITY
    for ask in (lambda: len(ds), lambda: ds[0]):
        with pytest.raises(errors.InvalidArgumentError, match="no column 'b'") as caught:
            ask()
        assert caught.value.context.file == str(tmp_path / "other")
    assert failures(ds) == [errors.InvalidArgumentError]
    named = ps.Dataset.from_tensor_slices([str(tmp_path / "other")])
    assert failures(kind.read(named)) == [errors.InvalidArgumentError]  # names are known only during the iteration


def test_columns_of_files_read_in_turn_are_looked_at_too(tmp_path):
    parquet(tmp_path / "a")
    with pytest.raises(errors.InvalidArgumentError, match="no column 'nope'"):
        ps.ParquetDataset(tmp_path / "a", ["nope"], num_parallel_reads=2)


def test_a_count_that_stands_elsewhere_than_in_the_missing_file_is_known(tmp_path):
    for number in range(3):
        (tmp_path / "images" / "cat").mkdir(parents=True, exist_ok=True)
        (tmp_path / "images" / "cat" / f"{number}.png").write_bytes(b"x")
    images = ps.ImageFolderDataset(tmp_path / "images")
    (tmp_path / "images" / "cat" / "1.png").unlink()
    ps.Dataset.range(3).save(tmp_path / "saved")
    saved = ps.Dataset.load(tmp_path / "saved")
    for file in (tmp_path / "saved").rglob("*.arrow"):
        file.unlink()
    for ds, lost in ((images, 1), (saved, 3)):
        assert len(ds) == ds.cardinality() == len(given_by(ds)) == 3
        assert failures(ds) == [errors.NotFoundError] * lost


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Write for each kind a valid file, a damaged one and the name of a missing one."""
    found = tmp_path_factory.mktemp("files")
    for name, kind in COUNTED.items():
        (found / name).mkdir()
        kind.write(found / name / "whole")
        (found / name / "damaged").write_bytes(kind.damaged)
    return found


@given(
    name=st.sampled_from(sorted(COUNTED)), files=st.lists(st.sampled_from(["whole", "damaged", "missing"]), max_size=4)
)
def test_a_length_is_that_of_the_pass_or_an_error(name, files, folder):
    ds = COUNTED[name].read([folder / name / file for file in files])
    found = given_by(ds)
    failed = [item for item in found if isinstance(item, Exception)]
    assert len(failed) == len(files) - files.count("whole")
    if not failed:
        assert len(ds) == ds.cardinality() == len(found) == ROWS * len(files)
        return
    assert ds.cardinality() == ps.UNKNOWN_CARDINALITY
    with pytest.raises(type(failed[0])) as caught:
        len(ds)
    assert caught.value.message == failed[0].message
    assert caught.value.context.file == failed[0].context.file
