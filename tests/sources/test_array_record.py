"""ArrayRecordDataset: records by number, resumes, and damaged files."""

from __future__ import annotations

import pickle

import pytest

import penstock as ps
from penstock.errors import DataLossError, NotFoundError

module = pytest.importorskip("array_record.python.array_record_module")

RECORDS = [b"record %d " % i * (i % 7) for i in range(50)]


def write(path, records, options="group_size:4"):
    writer = module.ArrayRecordWriter(str(path), options)
    for record in records:
        writer.write(record)
    writer.close()
    return path


@pytest.fixture
def files(tmp_path):
    return [write(tmp_path / "a", RECORDS[:30]), write(tmp_path / "b", []), write(tmp_path / "c", RECORDS[30:])]


def test_records_have_numbers_and_come_in_order(files):
    ds = ps.ArrayRecordDataset(files)
    assert list(ds) == RECORDS
    assert len(ds) == 50
    assert [ds[i] for i in (0, 29, 30, -1)] == [RECORDS[i] for i in (0, 29, 30, 49)]
    assert sorted(ds.shuffle(ps.ALL, seed=1)) == sorted(RECORDS)
    assert list(pickle.loads(pickle.dumps(ds))) == RECORDS
    assert sorted(ps.ArrayRecordDataset(files, num_parallel_reads=2)) == sorted(RECORDS)


def test_a_damaged_group_is_a_failure_for_each_of_its_records(files):
    content = bytearray(files[0].read_bytes())
    content[150] ^= 0xFF
    files[0].write_bytes(content)
    ds = ps.ArrayRecordDataset(files)
    assert len(ds) == 50
    found = list(ds.ignore_errors())
    assert found in [RECORDS[:start] + RECORDS[start + 4 :] for start in range(0, 28, 4)]
    with pytest.raises(DataLossError, match="hash mismatch") as raised:
        list(ds)
    assert raised.value.context.file == str(files[0])


@pytest.mark.parametrize("size", [0, 100, 1 << 16])
def test_a_file_that_is_cut_short_is_never_a_shorter_one(files, size):
    files[0].write_bytes(files[0].read_bytes()[:size])
    with pytest.raises(DataLossError, match="The ArrayRecord file is damaged"):
        len(ps.ArrayRecordDataset(files))


def test_a_missing_file_is_no_empty_one(tmp_path):
    with pytest.raises(NotFoundError, match="There is no file"):
        list(ps.ArrayRecordDataset(tmp_path / "none"))
    with pytest.raises(NotFoundError, match="list_files"):
        list(ps.ArrayRecordDataset(str(tmp_path / "*.array_record")))
