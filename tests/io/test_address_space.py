"""A local file that cannot be mapped, as one that is larger than the address space left, is read in pieces."""

import errno

import pytest

import penstock as ps
from penstock.io import storage
from penstock.testing import assert_resumes_exactly


@pytest.fixture
def unmapped(monkeypatch):
    def refuse(path):
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr(storage, "map_file", refuse)


def test_lines_and_records_come_all_the_same(tmp_path, unmapped):
    lines = [b"line %d" % i for i in range(90_000)]
    (tmp_path / "a.txt").write_bytes(b"\n".join(lines))
    with ps.io.TFRecordWriter(tmp_path / "a.tfrecord") as writer:
        for line in lines[:5000]:
            writer.write(line)
    assert list(ps.TextLineDataset(tmp_path / "a.txt")) == lines
    records = ps.TFRecordDataset(tmp_path / "a.tfrecord")
    assert list(records) == lines[:5000]
    assert_resumes_exactly(records.skip(4980), limit=10)
