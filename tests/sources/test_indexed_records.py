"""TFRecord files by number: the same records and damages as in the iteration of TFRecordDataset."""

import numpy as np
import pytest
from tests.sources.numbers import everything_by_number, everything_uncounted
from tests.sources.passes import assert_equal, everything

import penstock as ps
from penstock import errors
from penstock.sources import indexed_records


def write(path, count, size=5):
    with ps.io.TFRecordWriter(path) as writer:
        for i in range(count):
            writer.write(bytes([65 + i % 26]) * (i % size))
    return path


def both(files, by_number=everything_by_number):
    """Return the elements of the indexed data set, which equal those of the other."""
    found = by_number(ps.IndexedTFRecordDataset(files))
    assert_equal(found, everything(ps.TFRecordDataset(files)))
    return found


@pytest.mark.parametrize("counts", [[7], [0], [1], [3, 0, 4], []])
def test_records_of_files(counts, tmp_path):
    files = [write(tmp_path / str(i), count) for i, count in enumerate(counts)]
    assert len(both(files)) == sum(counts) == len(ps.IndexedTFRecordDataset(files))


def test_an_index_of_more_records_than_one_step_of_the_kernel(tmp_path, monkeypatch):
    monkeypatch.setattr(indexed_records, "_STEP", 3)
    assert len(both(write(tmp_path / "a", 10))) == 10


DAMAGES = {
    "data": lambda content: content[:60] + bytes([content[60] ^ 1]) + content[61:],
    "length": lambda content: content[:52] + bytes([content[52] ^ 64]) + content[53:],
    "end": lambda content: content[:-3],
    "header": lambda content: content + b"abc",
    "everything": lambda content: bytes(len(content)),
    "begin": lambda content: b"x" * 20 + content,
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damages_have_the_numbers_that_a_pass_gives_them(name, tmp_path):
    content = write(tmp_path / "whole", 9, 100).read_bytes()
    (tmp_path / "damaged").write_bytes(DAMAGES[name](content))
    no_record = name == "everything"
    by_number = everything_uncounted if no_record else everything_by_number
    found = both([tmp_path / "damaged", tmp_path / "whole"], by_number)
    assert sum(isinstance(item, errors.DataLossError) for item in found) == 1


def test_a_missing_file_is_one_failure(tmp_path):
    files = [write(tmp_path / "a", 2), tmp_path / "missing", write(tmp_path / "b", 2)]
    found = both(files, everything_uncounted)
    assert [type(item) for item in found] == [bytes, bytes, errors.NotFoundError, bytes, bytes]


def test_a_compressed_file_says_so(tmp_path):
    with ps.io.TFRecordWriter(tmp_path / "a", "GZIP") as writer:
        writer.write(b"hidden")
    (error,) = everything(ps.IndexedTFRecordDataset(tmp_path / "a"))
    assert isinstance(error, errors.DataLossError)
    assert "GZIP" in str(error)


def test_records_know_where_they_were_read(tmp_path):
    source = ps.IndexedTFRecordDataset(write(tmp_path / "a", 4))._plan.source
    block = source.rows_at(np.array([2, 0]))
    assert block.origin.at(0) == (str(tmp_path / "a"), 33)
    assert block.origin.at(1) == (str(tmp_path / "a"), 0)
    assert block.columns[0].buffers[0].base is not None  # the map itself, no copy


def test_urls_have_no_index():
    with pytest.raises(errors.InvalidArgumentError, match="Only local files have an index"):
        ps.IndexedTFRecordDataset("memory://a.tfrecord")
