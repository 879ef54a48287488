"""Damaged TFRecord files: each damage is one error that names the file and the byte, between the records around it."""

import gzip
import struct
import zlib

import crc32c
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.io.framing import framed, plain_records

import penstock as ps
from penstock.errors import DataLossError
from penstock.io.kernels.tfrecord.find_record import find_record
from penstock.io.tfrecord.framing import (
    FINE,
    SHORT_BODY,
    SHORT_HEADER,
    masked,
    plain_find,
)
from penstock.io.tfrecord.reader import RecordReader, read_at

RECORDS = [f"record {i}".encode() * (i + 1) for i in range(6)]
WAYS = ["mapped", "url", "GZIP", "ZLIB"]


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


def everything(reader):
    """What comes one after the other: records, and damages in their places."""
    found = []
    while True:
        try:
            chunk = reader.read(2, 1 << 20)
        except DataLossError as error:
            found.append(error)
            assert len(found) < 1000, "it does not end"
        else:
            if chunk is None:
                assert reader.read(2, 1 << 20) is None
                reader.close()
                return found
            found += chunk.records()


def outcome(reader):
    """The records before the first damage, and the damage."""
    found = everything(reader)
    first = next((i for i, item in enumerate(found) if isinstance(item, DataLossError)), None)
    return (found, None) if first is None else (found[:first], found[first])


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


def damages(found):
    return [item for item in found if isinstance(item, DataLossError)]


@pytest.mark.parametrize(
    ("content", "kept", "passed"),
    [
        (changed(OFFSETS[3] + 12), [0, 1, 2, None, 4, 5], None),  # data
        (changed(OFFSETS[4] - 1), [0, 1, 2, None, 4, 5], None),  # checksum of the data
        (changed(OFFSETS[0] + 12), [None, 1, 2, 3, 4, 5], None),
        (changed(OFFSETS[6] - 1), [0, 1, 2, 3, 4, None], None),
        (changed(OFFSETS[3] + 1), [0, 1, 2, None, 4, 5], (3, 4)),  # length
        (changed(OFFSETS[3] + 7), [0, 1, 2, None, 4, 5], (3, 4)),
        (changed(OFFSETS[3] + 9), [0, 1, 2, None, 4, 5], (3, 4)),  # checksum of the length
        (changed(OFFSETS[0]), [None, 1, 2, 3, 4, 5], (0, 1)),
        (changed(OFFSETS[5]), [0, 1, 2, 3, 4, None], (5, 6)),
        (changed(OFFSETS[4] + 12, changed(OFFSETS[3])), [0, 1, 2, None, 5], (3, 5)),  # nor is the next one whole
        (changed(OFFSETS[4], changed(OFFSETS[2] + 12)), [0, 1, None, 3, None, 5], (4, 5)),  # two
    ],
)
def test_reading_goes_on_behind_a_damage(reader_of, content, kept, passed):
    found = everything(reader_of(content))
    assert [None if isinstance(item, DataLossError) else RECORDS.index(item) for item in found] == kept
    said = damages(found)[-1].message
    if passed is not None:
        assert f"Bytes {OFFSETS[passed[0]]} to {OFFSETS[passed[1]]}" in said
    else:
        assert "passed over" not in said


def test_bytes_lost_and_bytes_added_are_passed_over(reader_of):
    for at in range(OFFSETS[3] - 5, OFFSETS[4], 3):
        for content in (CONTENT[:at] + CONTENT[at + 11 :], CONTENT[:at] + b"eleven more" + CONTENT[at:]):
            found = everything(reader_of(content))
            records = [item for item in found if isinstance(item, bytes)]
            assert records[:2] == RECORDS[:2]
            assert records[-1] == RECORDS[-1]
            assert set(records) <= set(RECORDS)
            assert damages(found)


def test_the_search_ends_with_the_file(reader_of):
    found = everything(reader_of(CONTENT[: OFFSETS[3]] + b"x" * 100))
    assert found[:3] == RECORDS[:3]
    (error,) = found[3:]
    assert f"Bytes {OFFSETS[3]} to {OFFSETS[3] + 100}, the end of the file, are lost" in error.message


def test_a_record_cut_short_is_one_damage_and_the_end(reader_of):
    for size in range(OFFSETS[4] + 1, OFFSETS[5], 6):
        found = everything(reader_of(CONTENT[:size]))
        assert found[:4] == RECORDS[:4]
        (error,) = found[4:]
        assert error.context.offset == OFFSETS[4]


def test_a_record_cut_short_inside_the_file_is_one_damage(reader_of):
    content = CONTENT[: OFFSETS[5] - 3] + CONTENT[OFFSETS[5] :]  # its checksum takes bytes of the next header
    found = everything(reader_of(content))
    assert [item for item in found if isinstance(item, bytes)] == RECORDS[:4]
    assert len(damages(found)) == 2  # the record, and the one whose header it read into


def test_a_length_that_cannot_be_is_passed_over(reader_of):
    content = CONTENT[: OFFSETS[3]] + header(1 << 40) + CONTENT[OFFSETS[3] :]
    found = everything(reader_of(content))
    assert [item for item in found if isinstance(item, bytes)] == RECORDS
    (error,) = damages(found)
    assert f"Bytes {OFFSETS[3]} to {OFFSETS[3] + 12} were passed over" in error.message


def test_reading_continues_from_the_offset_behind_a_damage(reader_of):
    content = changed(OFFSETS[3] + 1)
    with reader_of(content) as reader:
        while reader.tell() < OFFSETS[3]:
            reader.read(9, 1 << 20)
        with pytest.raises(DataLossError):
            reader.read(9, 1 << 20)
    assert reader.tell() == OFFSETS[4]
    assert everything(reader_of(content, offset=OFFSETS[4])) == RECORDS[4:]


def test_damaged_compression_met_while_searching_is_a_failure_of_its_own(tmp_path):
    path = tmp_path / "a.tfrecord"
    first, second = gzip.compress(changed(OFFSETS[5])), bytearray(gzip.compress(CONTENT))
    second[0] ^= 0xFF
    path.write_bytes(first + bytes(second))
    found = everything(RecordReader(path, compression_type="GZIP"))
    assert found[:5] == RECORDS[:5]
    length, compression = found[5:]
    assert "checksum of its length" in length.message
    assert "damaged near byte" in compression.message


@given(st.data())
def test_the_search_agrees_with_the_plain_one(data):
    parts = data.draw(
        st.lists(
            st.binary(max_size=30)
            | st.binary(max_size=20).map(lambda record: framed([record]))
            | st.integers(0, 40).map(header),
            max_size=5,
        )
    )
    content = bytearray(b"".join(parts))
    if content and data.draw(st.booleans()):
        content[data.draw(st.integers(0, len(content) - 1))] ^= 0x10
    buffer = np.frombuffer(bytes(content), np.uint8)
    at, seen = 0, set()
    while True:
        found = find_record(buffer, at)
        assert found == plain_find(buffer, at)
        at, status = found
        seen.add(status)
        if status == SHORT_HEADER:
            break
        assert status in (FINE, SHORT_BODY)
        at += 1
    assert at > len(buffer) - 12


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
            list(ps.IndexedTFRecordDataset(path))


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
        list(ps.IndexedTFRecordDataset(path))
    assert caught.value.context.offset == OFFSETS[3]
