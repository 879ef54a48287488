"""Files of records with one length."""

import gzip

import numpy as np
import pytest
from tests.sources.numbers import everything_uncounted
from tests.sources.passes import assert_equal, everything, everything_of, kinds

import penstock as ps
from penstock.errors import DataLossError
from penstock.io import storage
from penstock.sources.fixed import FixedLayout, FixedLengthSource
from penstock.testing import assert_resumes_exactly


def made(path, count, *, head=b"HH", foot=b"F", extra=b"", compress=bytes):
    path.write_bytes(compress(head + b"".join(b"%03d" % i for i in range(count)) + extra + foot))
    return path


@pytest.mark.parametrize("count", [0, 1, 5, 100])
@pytest.mark.parametrize("compression", [None, "GZIP"])
@pytest.mark.parametrize(("head", "foot"), [(b"", b""), (b"HH", b""), (b"", b"F"), (b"HHHHH", b"FFFFFFF")])
def test_records_between_header_and_footer(tmp_path, count, compression, head, foot):
    path = made(tmp_path / "a", count, head=head, foot=foot, compress=gzip.compress if compression else bytes)
    ds = ps.FixedLengthRecordDataset(path, 3, len(head), len(foot), buffer_size=16, compression_type=compression)
    assert everything(ds) == [b"%03d" % i for i in range(count)]
    assert ds.cardinality() == (ps.UNKNOWN_CARDINALITY if compression else count)
    assert ds.element_spec == ps.TensorSpec((), bytes)


def test_several_files(tmp_path):
    paths = [made(tmp_path / name, count) for name, count in (("a", 2), ("b", 0), ("c", 3))]
    ds = ps.FixedLengthRecordDataset(paths, 3, 2, 1)
    assert len(ds) == 5
    assert len(ds.batch(2)) == 3
    assert [int(x) for x in everything(ds)] == [0, 1, 0, 1, 2]
    in_turn = ps.FixedLengthRecordDataset(paths, 3, 2, 1, num_parallel_reads=3)
    assert [int(x) for x in in_turn] == [0, 0, 1, 1, 2]
    assert_resumes_exactly(in_turn)


def test_a_file_of_another_length_is_one_failure(tmp_path):
    good = made(tmp_path / "a", 2)
    bad = made(tmp_path / "b", 4, extra=b"x")
    short = tmp_path / "c"
    short.write_bytes(b"H")
    ds = ps.FixedLengthRecordDataset([good, bad, short, tmp_path / "d", good], 3, 2, 1)
    found = everything_uncounted(ds)
    whole = [b"000", b"001"]
    failed = [("InvalidArgumentError", 14), ("InvalidArgumentError", None), ("NotFoundError", None)]
    assert kinds(found) == [*whole, *failed, *whole]
    assert "13 bytes between header and footer are 4 times record_bytes=3 and 1 more" in found[2].message
    assert "has 1 bytes, fewer than its header_bytes=2 and footer_bytes=1" in found[3].message


def test_a_compressed_file_of_another_length_fails_behind_its_records(tmp_path):
    bad = made(tmp_path / "a", 2, extra=b"x", compress=gzip.compress)
    short = tmp_path / "b"
    short.write_bytes(gzip.compress(b"H"))
    cut = tmp_path / "c"
    cut.write_bytes(gzip.compress(b"HH"))
    found = everything(ps.FixedLengthRecordDataset([bad, short, cut], 3, 2, 1, compression_type="GZIP"))
    assert kinds(found) == [b"000", b"001", ("DataLossError", 8), ("DataLossError", 2), ("DataLossError", 2)]
    assert "1 bytes are left before the footer" in found[2].message
    assert "ends 2 bytes before its header and footer do" in found[3].message


@pytest.mark.parametrize("bad", [False, True])
def test_streamed_files_are_read_as_mapped_ones(tmp_path, bad):
    paths = [made(tmp_path / "a", 4), made(tmp_path / "b", 0), made(tmp_path / "c", 2, extra=b"x" * bad)]
    mapped = ps.FixedLengthRecordDataset(paths, 3, 2, 1)._plan.source
    streamed = FixedLengthSource(mapped.files, buffer_size=16, layout=mapped.layout)
    assert_equal(everything_of(streamed), everything_of(mapped))


def test_a_footer_longer_than_a_record_is_no_record(tmp_path):
    made(tmp_path / "a", 4, foot=b"F" * 7)
    streamed = FixedLengthSource((str(tmp_path / "a"),), layout=FixedLayout(3, 2, 7))
    block = streamed.open().read(9)
    assert block.elements() == [b"000", b"001", b"002", b"003"]


def test_a_file_that_cannot_be_mapped_is_read_by_number_while_it_has_its_length(tmp_path, monkeypatch):
    source = ps.FixedLengthRecordDataset(made(tmp_path / "a", 9), 3, 2, 1)._plan.source
    monkeypatch.setattr(storage, "map_file_or_none", lambda name: None)
    rows = np.array([0, 1, 5, 4, 8])
    assert source.rows_at(rows).elements() == [b"%03d" % row for row in rows]
    (tmp_path / "a").write_bytes((tmp_path / "a").read_bytes()[:-2])
    with pytest.raises(DataLossError, match="shorter than the 9 records"):
        source.rows_at(rows)


def test_a_url():
    import fsspec

    with fsspec.open("memory:///fixed.bin", "wb") as file:
        file.write(b"HH000001002F")
    ds = ps.FixedLengthRecordDataset("memory:///fixed.bin", 3, 2, 1, buffer_size=16)
    assert everything(ds) == [b"000", b"001", b"002"]


def test_what_is_read_is_in_the_mapped_file(tmp_path):
    path = made(tmp_path / "a", 5)
    block = ps.FixedLengthRecordDataset(path, 3, 2, 1)._plan.source.open().read(9)
    assert len(block.columns[0].buffers[0]) == path.stat().st_size
    assert block.origin.at(2) == (str(path), 8)


def test_many_small_records_are_one_block(tmp_path):
    made(tmp_path / "a", 500)
    source = FixedLengthSource((str(tmp_path / "a"),), layout=FixedLayout(3, 2, 1))
    assert source.open().read(400).size == 400
