"""TFRecord files: what is written is what TensorFlow writes, and what is read is what the plain reader reads."""

import gzip
import struct
import zlib

import crc32c
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.io.framing import framed, plain_records

from penstock.errors import FailedPreconditionError, InvalidArgumentError, InvalidTypeError, NotFoundError
from penstock.io.compression import TFRecordOptions
from penstock.io.kernels.tfrecord.record import crc_of
from penstock.io.kernels.tfrecord.scan import gather, scan
from penstock.io.tfrecord import reader as walk
from penstock.io.tfrecord.framing import EVERYTHING, FINE, LENGTHS, NOTHING, plain_gather
from penstock.io.tfrecord.reader import RecordReader, read_at
from penstock.io.tfrecord.writer import TFRecordWriter

COMPRESSIONS = pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
RECORDS = [b"", b"a", b"seven b", b"eight by", b"x" * 1000, bytes(range(256)) * 40]

# The bytes TensorFlow 2.21 writes for the records b"" and b"penstock".
OF_TENSORFLOW = bytes.fromhex("000000000000000029039807d8ea82a20800000000000000ff86240f70656e73746f636b67533d79")


def written(path, records, compression=""):
    with TFRecordWriter(path, compression) as writer:
        for record in records:
            writer.write(record)
    return path


def read_all(path, max_records=3, max_bytes=1 << 20, **options):
    """All records, chunk by chunk, and the offsets the chunks name."""
    records, offsets = [], []
    with RecordReader(path, **options) as reader:
        while (chunk := reader.read(max_records, max_bytes)) is not None:
            assert 1 <= len(chunk) <= max_records
            assert not chunk.buffer.flags.writeable
            records += chunk.records()
            offsets += chunk.offsets.tolist()
    return records, offsets


@pytest.fixture
def path(tmp_path):
    return tmp_path / "some.tfrecord"


def test_the_bytes_are_tensorflows(path):
    written(path, [b"", b"penstock"])
    assert path.read_bytes() == OF_TENSORFLOW
    assert read_all(path)[0] == [b"", b"penstock"]


@COMPRESSIONS
def test_round_trip(path, compression):
    written(path, RECORDS, compression)
    records, offsets = read_all(path, compression_type=compression)
    assert records == RECORDS
    assert offsets == np.cumsum([0, *(len(record) + 16 for record in RECORDS[:-1])]).tolist()


def test_compressed_content_is_the_uncompressed_file(path):
    written(path, RECORDS, "GZIP")
    assert gzip.decompress(path.read_bytes()) == framed(RECORDS)
    written(path, RECORDS, TFRecordOptions("ZLIB", compression_level=9))
    assert zlib.decompress(path.read_bytes()) == framed(RECORDS)


def test_writing_twice_gives_the_same_bytes(path, tmp_path):
    other = tmp_path / "other"
    assert written(path, RECORDS, "GZIP").read_bytes() == written(other, RECORDS, "GZIP").read_bytes()


@COMPRESSIONS
def test_flush_shows_what_was_written(path, compression):
    with TFRecordWriter(path, compression) as writer:
        writer.write(b"first")
        writer.flush()
        with RecordReader(path, compression_type=compression) as reader:
            assert reader.read(10, 1000).records() == [b"first"]
        writer.write(b"second")
    assert read_all(path, compression_type=compression)[0] == [b"first", b"second"]


def test_any_bytes_can_be_written(path):
    written(path, [bytearray(b"ab"), memoryview(b"cd")])
    assert read_all(path)[0] == [b"ab", b"cd"]


def test_what_is_no_record(path):
    with TFRecordWriter(path) as writer, pytest.raises(InvalidTypeError, match="A record is bytes, got str"):
        writer.write("text")


def test_a_closed_writer(path):
    writer = TFRecordWriter(path)
    writer.close()
    writer.close()
    with pytest.raises(FailedPreconditionError, match="is closed"):
        writer.write(b"late")


def test_wrong_options(path):
    with pytest.raises(InvalidArgumentError, match="compression_type must be"):
        TFRecordWriter(path, "SNAPPY")
    with pytest.raises(InvalidArgumentError, match="compression_level must be"):
        TFRecordOptions("GZIP", 10)
    with pytest.raises(InvalidTypeError, match="options must be"):
        TFRecordWriter(path, 3)
    assert not path.exists()


@COMPRESSIONS
@pytest.mark.parametrize("buffer_size", [None, 0, 17, 100])
def test_any_buffer_size(path, compression, buffer_size):
    written(path, RECORDS, compression)
    assert read_all(path, compression_type=compression, buffer_size=buffer_size)[0] == RECORDS


@COMPRESSIONS
def test_continue_at_every_record(path, compression):
    written(path, RECORDS, compression)
    with RecordReader(path, compression_type=compression, buffer_size=100) as reader:
        for i in range(len(RECORDS) + 1):
            rest = read_all(path, compression_type=compression, offset=reader.tell())[0]
            assert rest == RECORDS[i:]
            chunk = reader.read(1, 1)
            assert (chunk is None) == (i == len(RECORDS))


def test_max_bytes_is_soft(path):
    written(path, [b"x" * 100] * 10)
    with RecordReader(path) as reader:
        assert len(reader.read(10, 1)) == 1
        assert len(reader.read(10, 250)) == 3
        assert len(reader.read(10, 1 << 62)) == 6
        assert reader.read(10, 1) is None


def test_a_mapped_file_is_not_copied(path):
    written(path, RECORDS)
    with RecordReader(path) as reader:
        first, second = reader.read(2, 1000), reader.read(2, 10000)
    assert first.buffer is second.buffer
    assert first.records() == RECORDS[:2]  # after close


def test_buffers_of_a_stream_are_never_overwritten(path):
    written(path, RECORDS * 5, "GZIP")
    with RecordReader(path, compression_type="GZIP", buffer_size=64) as reader:
        chunks = []
        while (chunk := reader.read(2, 1 << 20)) is not None:
            chunks.append(chunk)
    assert [record for chunk in chunks for record in chunk.records()] == RECORDS * 5


@COMPRESSIONS
def test_an_empty_file(path, compression):
    path.write_bytes(b"")
    assert read_all(path, compression_type=compression)[0] == []
    written(path, [], compression)
    assert read_all(path, compression_type=compression)[0] == []


def test_urls(path):
    url = "memory:///tfrecord-test.tfrecord"
    written(url, RECORDS)
    records, offsets = read_all(url, buffer_size=50)
    assert records == RECORDS
    assert read_all(url, offset=offsets[3])[0] == RECORDS[3:]
    written(url, RECORDS, "ZLIB")
    assert read_all(url, compression_type="ZLIB")[0] == RECORDS


def test_several_compressed_streams_count_as_one(path):
    path.write_bytes(gzip.compress(framed(RECORDS[:3])) + gzip.compress(framed(RECORDS[3:])))
    assert read_all(path, compression_type="GZIP")[0] == RECORDS


def test_missing_file(path):
    with pytest.raises(NotFoundError, match="There is no file"):
        RecordReader(path)
    with pytest.raises(NotFoundError, match="There is no file"):
        RecordReader(path, compression_type="GZIP")


def test_wrong_arguments(path):
    written(path, RECORDS)
    with pytest.raises(InvalidArgumentError, match="must not be negative"):
        RecordReader(path, offset=-1)
    with pytest.raises(InvalidArgumentError, match="max_records must be at least 1"):
        RecordReader(path).read(0, 100)
    reader = RecordReader(path)
    reader.close()
    with pytest.raises(FailedPreconditionError, match="is closed"):
        reader.read(1, 1)


def test_records_at_offsets(path):
    written(path, RECORDS)
    offsets = np.array(read_all(path)[1])
    order = [4, 0, 5, 5]
    assert read_at(path, offsets[order]).records() == [RECORDS[i] for i in order]
    assert read_at(path, offsets[order]).offsets.tolist() == offsets[order].tolist()


@given(st.lists(st.binary(max_size=300), max_size=8))
def test_scan_agrees_with_the_plain_reader(records):
    stream = framed(records)
    starts, lengths = np.empty(9, np.int64), np.empty(9, np.int64)
    buffer = np.frombuffer(stream, np.uint8)
    count, at, status = scan(buffer, 0, 1 << 60, EVERYTHING, starts, lengths)
    found = [stream[a : a + n] for a, n in zip(starts[:count].tolist(), lengths[:count].tolist(), strict=True)]
    assert (found, at, status) == (list(plain_records(stream)), len(stream), FINE)
    assert found == records


@given(
    st.lists(st.binary(max_size=30), min_size=1, max_size=4),
    st.lists(st.integers(-3, 140), max_size=6),
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), max_size=2),
    st.sampled_from([NOTHING, LENGTHS, EVERYTHING]),
)
def test_records_at_any_places_agree_with_the_plain_way(records, others, changes, check):
    stream = bytearray(framed(records))
    sizes = [len(record) + 16 for record in records]
    for place, value in changes:
        if place < len(stream):
            stream[place] = value
    buffer = np.frombuffer(bytes(stream), np.uint8)
    offsets = np.array([*(sum(sizes[:i]) for i in range(len(sizes))), *others], np.int64)
    found = [(np.zeros(len(offsets), np.int64), np.zeros(len(offsets), np.int64)) for _ in range(2)]
    assert gather(buffer, offsets, check, *found[0]) == plain_gather(buffer, offsets, check, *found[1])
    np.testing.assert_array_equal(found[0], found[1])


def test_records_by_number_without_kernels(path, monkeypatch):
    with TFRecordWriter(path) as writer:
        for record in RECORDS:
            writer.write(record)
    compiled = read_all(path)
    monkeypatch.setattr(walk, "_SCAN", Unready())
    assert read_all(path) == compiled
    assert read_at(path, np.array(compiled[1])[::-1]).records() == RECORDS[::-1]


class Unready:
    def loaded(self) -> None:
        return None


@given(st.binary(max_size=400), st.integers(0, 20))
def test_checksums_agree_with_the_package(data, start):
    buffer = np.frombuffer(data, np.uint8)
    start = min(start, len(data))
    expected = crc32c.crc32c(data[start:])
    first, last = np.uint64(start), np.uint64(len(data))
    assert int(crc_of(buffer, first, last)) == expected


def test_the_reference_knows_the_layout():
    assert OF_TENSORFLOW[:8] == struct.pack("<Q", 0)
    assert list(plain_records(OF_TENSORFLOW)) == [b"", b"penstock"]
