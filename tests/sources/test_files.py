"""Common properties of all data sets of files: names, wrong arguments, failures between elements."""

import gzip

import numpy as np
import pytest
from tests.golden.golden import assert_golden
from tests.sources import passes
from tests.sources.passes import everything, kinds

import penstock as ps
from penstock import errors
from penstock.io.tfrecord.reader import RecordReader
from penstock.plan.fingerprint import fingerprint
from penstock.testing import assert_same_elements

ARGUMENTS = {
    "filenames_none": lambda: ps.TextLineDataset(None),
    "filenames_numbers": lambda: ps.TextLineDataset([1, 2]),
    "compression": lambda: ps.TextLineDataset("a.txt", "ZIP"),
    "buffer_size": lambda: ps.TextLineDataset("a.txt", buffer_size=-1),
    "buffer_size_text": lambda: ps.TextLineDataset("a.txt", buffer_size="1k"),
    "parallel": lambda: ps.TextLineDataset("a.txt", num_parallel_reads=0),
    "tfrecord_buffer_size": lambda: ps.TFRecordDataset("a.tfrecord", buffer_size=-1),
    "record_bytes_0": lambda: ps.FixedLengthRecordDataset("a.bin", 0),
    "record_bytes_text": lambda: ps.FixedLengthRecordDataset("a.bin", "4"),
    "header_bytes": lambda: ps.FixedLengthRecordDataset("a.bin", 4, header_bytes=-1),
    "footer_bytes": lambda: ps.FixedLengthRecordDataset("a.bin", 4, footer_bytes=0.5),
    "csv_no_columns": lambda: ps.experimental.CsvDataset("a.csv", []),
    "csv_no_list": lambda: ps.experimental.CsvDataset("a.csv", np.int32),
    "csv_dtype": lambda: ps.experimental.CsvDataset("a.csv", [np.int32, np.uint8]),
    "csv_default": lambda: ps.experimental.CsvDataset("a.csv", [True]),
    "csv_default_tensor": lambda: ps.experimental.CsvDataset("a.csv", [ps.SparseTensor([[0]], [1], [2])]),
    "csv_default_rank": lambda: ps.experimental.CsvDataset("a.csv", [[1, 2]]),
    "csv_delimiter": lambda: ps.experimental.CsvDataset("a.csv", [0], field_delim=", "),
    "csv_delimiter_quote": lambda: ps.experimental.CsvDataset("a.csv", [0], field_delim='"'),
    "csv_select_count": lambda: ps.experimental.CsvDataset("a.csv", [0], select_cols=[0, 1]),
    "csv_select_order": lambda: ps.experimental.CsvDataset("a.csv", [0, 0], select_cols=[1, 0]),
    "csv_select_negative": lambda: ps.experimental.CsvDataset("a.csv", [0], select_cols=[-1]),
    "csv_select_and_exclude": lambda: ps.experimental.CsvDataset("a.csv", [0], select_cols=[0], exclude_cols=[1]),
    "csv_na_value": lambda: ps.experimental.CsvDataset("a.csv", [0], na_value=0),
    "json_defaults": lambda: ps.JsonLinesDataset("a.jsonl", defaults=[0]),
    "json_defaults_key": lambda: ps.JsonLinesDataset("a.jsonl", defaults={0: 1}),
    "json_defaults_none": lambda: ps.JsonLinesDataset("a.jsonl", defaults={"a": None}),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_wrong_arguments_are_refused_where_they_are_given(name):
    with pytest.raises(errors.PenstockError) as caught:
        ARGUMENTS[name]()
    assert_golden(f"argument_text_sources_{name}", f"{type(caught.value).__name__}: {caught.value}")


def test_the_line_of_a_script_is_no_part_of_the_plan(tmp_path):
    first = ps.TextLineDataset(["a", "b"], num_parallel_reads=2)
    second = ps.TextLineDataset(["a", "b"], num_parallel_reads=2)
    other = ps.TextLineDataset(["a", "b"], "GZIP", num_parallel_reads=2)
    assert fingerprint(first._plan) == fingerprint(second._plan)
    assert fingerprint(first._plan) != fingerprint(other._plan)
    assert "interleave(TextLineDataset, cycle_length=2)" in first.explain()


def drained(dataset, executor):
    """Return elements and failures of an iteration."""
    found = []
    with dataset.iterator(epoch=0, executor=executor) as elements:
        while True:
            try:
                found.append(next(elements))
            except StopIteration:
                return found
            except Exception as error:
                found.append(error)


@pytest.mark.parametrize("executor", ["inline", "thread"])
def test_a_pass_goes_on_behind_a_failure(tmp_path, executor):
    (tmp_path / "a.csv").write_text("1\nx\n3\n")
    (tmp_path / "c.csv").write_text("4\n")
    paths = [tmp_path / f"{name}.csv" for name in "abc"]
    found = drained(ps.experimental.CsvDataset(paths, [np.int32]).map(lambda x: x * 2), executor)
    assert kinds(found) == [2, ("InvalidArgumentError", 2), 6, ("NotFoundError", None), 8]
    assert "CsvDataset(3 files)" in str(found[1])
    assert f"in file {paths[0]} at byte 2" in str(found[1])
    ignoring = ps.experimental.CsvDataset(paths, [np.int32]).ignore_errors()
    assert_same_elements(list(ignoring.batch(3)), [(np.int32([1, 3, 4]),)])


@pytest.mark.parametrize("executor", ["inline", "thread"])
def test_a_damaged_record_is_one_failure(tmp_path, executor):
    paths = [tmp_path / name for name in ("a", "b")]
    for path in paths:
        with ps.io.TFRecordWriter(path) as writer:
            for i in range(10):
                writer.write(b"%d" % i * 5)
    size = 16 + 5
    content = bytearray(paths[0].read_bytes())
    content[3 * size + 12] ^= 1  # data
    content[6 * size + 2] ^= 1  # length
    del content[9 * size + 8 :]  # truncated
    paths[0].write_bytes(content)
    wanted = [b"%d" % i * 5 for i in range(10)]
    damaged = [*wanted]
    for i in (3, 6, 9):
        damaged[i] = ("DataLossError", i * size)
    ds = ps.TFRecordDataset(paths)
    assert kinds(everything(ds)) == [*damaged, *wanted]
    assert kinds(drained(ds, executor)) == [*damaged, *wanted]
    assert "the next whole record begins there" in str(drained(ds, executor)[6])
    in_turn = drained(ps.TFRecordDataset(paths, num_parallel_reads=2), executor)
    assert kinds(in_turn) == [item for pair in zip(damaged, wanted, strict=True) for item in pair]


def test_fixed_length_records_are_read_by_number(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(bytes(range(100)))
    ds = ps.FixedLengthRecordDataset([path, path], 10)
    assert ps.experimental.at(ds, 12) == bytes(range(20, 30))


@pytest.mark.parametrize("made", [ps.TextLineDataset, ps.JsonLinesDataset])
def test_behind_a_file_that_is_gone_when_a_pass_goes_on_the_next_is_read_from_its_start(made, tmp_path):
    paths = [tmp_path / "a", tmp_path / "b"]
    for number, path in enumerate(paths):
        path.write_text("".join(f'{{"a": {10 * number + i}}}\n' for i in range(3)))
    source = made(paths)._plan.source
    assert source.cardinality == ps.UNKNOWN_CARDINALITY
    for read in (1, 3):
        reader = source.open()
        assert sum(reader.read(1).size for _ in range(read)) == read
        position = reader.position()
        reader.close()
        assert reader.position() == position
        paths[0].rename(tmp_path / "gone")
        (missing, *rest), _ = passes.drained(source.open(position), 2)
        assert kinds([missing]) == [("NotFoundError", None)]
        assert_same_elements(rest, list(made(paths[1])))
        (tmp_path / "gone").rename(paths[0])


CONTENTS = [b"", b"one", b"one\n", b"one\r\ntwo", b"\xef\xbb\xbf", b"one\n\x1a", b"one\ntwo\0\0", b"\n" * 5000]


@pytest.mark.parametrize("compression", [None, "GZIP"])
@pytest.mark.parametrize("content", CONTENTS)
def test_nothing_follows_the_end_of_a_text(tmp_path, content, compression):
    path = tmp_path / "a.txt"
    path.write_bytes(content if compression is None else gzip.compress(content))
    check_ends(ps.TextLineDataset(path, compression), known=compression is None and not content.endswith(b"\0"))


@pytest.mark.parametrize("damage", [None, 40, 100, 230])
def test_nothing_follows_the_end_of_records(tmp_path, damage):
    path = tmp_path / "a.tfrecord"
    with ps.io.TFRecordWriter(path) as writer:
        for i in range(4):
            writer.write(b"%d" % i * 50)
    if damage is not None:
        content = bytearray(path.read_bytes())
        content[damage] ^= 1
        path.write_bytes(content)
    check_ends(ps.TFRecordDataset(path), known=damage != 230)


def check_ends(ds, *, known):
    """Check `at_end` of a reader after each read. With `known`, a reader knows that its last elements are the last."""
    for size in (1, 2, 100):
        reader = ds._plan.source.open()
        knew = last = False
        while True:
            try:
                block = reader.read(size)
            except errors.PenstockError:
                last = False
                continue
            if block is None:
                break
            assert not knew
            knew = last = reader.at_end
        assert last == known or not list(ds.ignore_errors())
        reader.close()


def test_workers_find_the_end_of_a_file_with_its_last_elements(tmp_path, monkeypatch):
    path = tmp_path / "a.tfrecord"
    with ps.io.TFRecordWriter(path) as writer:
        for _ in range(32):
            writer.write(b"x" * 1000)
    read, ends = RecordReader.read, []
    monkeypatch.setattr(RecordReader, "read", lambda *given: read(*given) or ends.append(1))
    ds = ps.TFRecordDataset(path)
    for worked in (ds.prefetch(2), ds.map(len, 2), ds.map(len, 2).batch(5), ds.map(len).prefetch(2)):
        assert list(worked.unbatch() if worked.element_spec.shape else worked) in ([b"x" * 1000] * 32, [1000] * 32)
    assert not ends
