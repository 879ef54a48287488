"""Damaged TFRecord files: good records first, then one error that names the file and the byte."""

import gzip
import struct
import zlib

import crc32c
import numpy as np
import pytest

from penstock.errors import DataLossError
from penstock.io.tfrecord import RecordReader, build_index, read_at
from penstock.io.tfrecord.framing import frame, masked, plain_records

RECORDS = [f"record {i}".encode() * (i + 1) for i in range(6)]
WAYS = ["mapped", "url", "GZIP", "ZLIB"]


def framed(records):
    parts = []
    for record in records:
        header, footer = frame(len(record), crc32c.crc32c(record))
        parts += [header, record, footer]
    return b"".join(parts)


CONTENT = framed(RECORDS)
OFFSETS = np.cumsum([0, *(len(record) + 16 for record in RECORDS)]).tolist()


def header(length):
    packed = struct.pack("<Q", length)
    return packed + struct.pack("<I", masked(crc32c.crc32c(packed)))


@pytest.fixture(params=WAYS)
def reader_of(request, tmp_path):
    """Opens a reader over an uncompressed content, stored and read in one of the ways."""

    def open_reader(content, **options):
        path = tmp_path / "damaged.tfrecord"
        if request.param == "url":
            import fsspec

            path = "memory:///damaged.tfrecord"
            with fsspec.open(path, "wb") as file:
                file.write(content)
        elif request.param == "mapped":
            path.write_bytes(content)
        else:
            path.write_bytes((gzip if request.param == "GZIP" else zlib).compress(content))
            options["compression_type"] = request.param
        return RecordReader(path, buffer_size=64, **options)

    return open_reader


def outcome(reader):
    """The records before the damage, and the damage."""
    records = []
    while True:
        try:
            chunk = reader.read(2, 1 << 20)
        except DataLossError as error:
            with pytest.raises(DataLossError):  # it stays damaged
                reader.read(2, 1 << 20)
            reader.close()
            return records, error
        if chunk is None:
            reader.close()
            return records, None
        records += chunk.records()


def changed(at, content=CONTENT):
    damaged = bytearray(content)
    damaged[at] ^= 0x40
    return bytes(damaged)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (changed(OFFSETS[3] + 1), "checksum of its length"),
        (changed(OFFSETS[3] + 9), "checksum of its length"),
        (changed(OFFSETS[3] + 12), "checksum of its 32 bytes of data"),
        (changed(OFFSETS[4] - 1), "checksum of its 32 bytes of data"),
        (CONTENT[: OFFSETS[3] + 5], "5 bytes are left, and a record header has 12"),
        (CONTENT[: OFFSETS[3] + 12], "says 32 bytes of data, and 0 are left"),
        (CONTENT[: OFFSETS[4] - 1], "says 32 bytes of data, and 31 are left"),
        (CONTENT[: OFFSETS[3]] + b"garbage", "7 bytes are left"),
        (CONTENT[: OFFSETS[3]] + b"longer garbage than a header", "checksum of its length"),
        (CONTENT[: OFFSETS[3]] + header(1 << 40) + b"x" * 100, f"says {1 << 40} bytes of data, and 96 are left"),
        (CONTENT[: OFFSETS[3]] + header((1 << 64) - 1) + b"x" * 100, "bytes of data, and 96 are left"),
        (CONTENT[: OFFSETS[3]] + header((1 << 63) - 8) + b"x" * 100, "bytes of data, and 96 are left"),
    ],
)
def test_damage_after_good_records(reader_of, content, text):
    records, error = outcome(reader_of(content))
    assert records == RECORDS[:3]
    assert text in error.message
    assert error.context.offset == OFFSETS[3]
    assert "damaged.tfrecord" in error.context.file


def test_every_cut(reader_of):
    for size in range(0, len(CONTENT), 7):
        records, error = outcome(reader_of(CONTENT[:size]))
        whole = sum(offset <= size for offset in OFFSETS) - 1
        assert records == RECORDS[:whole]
        assert (error is None) == (size in OFFSETS)


def test_every_changed_byte_agrees_with_the_plain_reader(tmp_path):
    path = tmp_path / "changed.tfrecord"
    for at in range(0, len(CONTENT), 3):
        content = changed(at)
        path.write_bytes(content)
        good = []
        with pytest.raises(ValueError, match="at"):
            good.extend(plain_records(content))
        records, error = outcome(RecordReader(path))
        assert records == good
        assert error is not None


def test_without_verification_damaged_data_passes(reader_of):
    records, error = outcome(reader_of(changed(OFFSETS[4] - 1), verify=False))
    assert records == RECORDS
    assert error is None


def test_without_verification_an_absurd_length_allocates_nothing(reader_of):
    content = CONTENT + struct.pack("<Q", 1 << 50) + b"1234" + b"x" * 50
    records, error = outcome(reader_of(content, verify=False))
    assert records == RECORDS
    assert "Truncated record" in error.message


@pytest.mark.parametrize(("compress", "kind"), [(gzip.compress, "GZIP"), (zlib.compress, "ZLIB")])
@pytest.mark.parametrize("verify", [True, False])
def test_compressed_file_read_as_uncompressed(tmp_path, compress, kind, verify):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(compress(CONTENT))
    records, error = outcome(RecordReader(path, verify=verify))
    assert records == []
    assert f'compression_type="{kind}"' in error.hint
    assert error.context.offset == 0
    if verify:
        with pytest.raises(DataLossError, match=f'compression_type="{kind}"'):
            build_index(path)


@pytest.mark.parametrize("kind", ["GZIP", "ZLIB"])
def test_uncompressed_file_read_as_compressed(tmp_path, kind):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(CONTENT)
    records, error = outcome(RecordReader(path, compression_type=kind))
    assert records == []
    assert "Leave compression_type out" in error.hint


def test_the_other_compression(tmp_path):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(gzip.compress(CONTENT))
    assert 'compression_type="GZIP"' in outcome(RecordReader(path, compression_type="ZLIB"))[1].hint


def test_what_is_no_tfrecord_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"id,label\n1,cat\n2,dog\n")
    records, error = outcome(RecordReader(path))
    assert records == []
    assert "Is this a TFRecord file?" in error.hint


@pytest.mark.parametrize("kind", ["GZIP", "ZLIB"])
def test_a_compressed_file_cut_short(tmp_path, kind):
    path = tmp_path / "a.tfrecord"
    whole = (gzip if kind == "GZIP" else zlib).compress(CONTENT, 0)  # stored, so that a cut loses only what follows
    path.write_bytes(whole[: len(whole) // 2])
    records, error = outcome(RecordReader(path, compression_type=kind))
    assert records == RECORDS[: len(records)]
    assert len(records) >= 2
    assert "ends before the compressed data does" in error.message


@pytest.mark.parametrize("kind", ["GZIP", "ZLIB"])
def test_damage_inside_compressed_data_delivers_what_stands_before(tmp_path, kind):
    rng = np.random.default_rng(0)
    many = [rng.bytes(200) for _ in range(300)]
    compress = (gzip if kind == "GZIP" else zlib).compress
    first, second = compress(framed(many)), bytearray(compress(framed(RECORDS)))
    second[0] ^= 0xFF
    path = tmp_path / "a.tfrecord"
    path.write_bytes(first + bytes(second))
    records, error = outcome(RecordReader(path, compression_type=kind))
    assert records == many
    assert "damaged near byte" in error.message


def test_a_compressed_checksum_that_does_not_match(tmp_path):
    path = tmp_path / "a.tfrecord"
    whole = bytearray(gzip.compress(CONTENT))
    whole[-6] ^= 1
    path.write_bytes(bytes(whole))
    records, error = outcome(RecordReader(path, compression_type="GZIP"))
    assert records == RECORDS
    assert "incorrect data check" in error.message


def test_offset_past_the_end(reader_of):
    with pytest.raises(DataLossError, match="was to continue at byte"):
        reader_of(CONTENT, offset=len(CONTENT) + 1)


def test_read_at_a_place_without_record(tmp_path):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(CONTENT)
    for offset in [-1, 1, len(CONTENT), 1 << 60]:
        with pytest.raises(DataLossError) as caught:
            read_at(path, np.array([0, offset]))
        assert caught.value.context.offset == offset


def test_index_of_a_damaged_file(tmp_path):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(changed(OFFSETS[3] + 1))
    with pytest.raises(DataLossError, match="checksum of its length") as caught:
        build_index(path)
    assert caught.value.context.offset == OFFSETS[3]
