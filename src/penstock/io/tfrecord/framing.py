"""The framing of TFRecord files: the plain loops, which define the results of compiled ones, and the errors of damage.

A file is a sequence of records without anything around them:

    u64le length | u32le masked CRC-32C of those 8 bytes | data | u32le masked CRC-32C of the data

Source: tsl/lib/io/record_writer.h and tsl/lib/hash/crc32c.h of TensorFlow.
"""

from __future__ import annotations

import struct

import numpy as np

from penstock.errors import DataLossError

HEADER = 12  # bytes before the data
FOOTER = 4  # bytes after it

# The status of the record at which a scan stopped.
FINE, SHORT_HEADER, SHORT_BODY, WRONG_LENGTH, WRONG_DATA = 0, 1, 2, 3, 4
# The checksums that a scan verifies.
NOTHING, LENGTHS, EVERYTHING = 0, 1, 2

_MASK_DELTA = 0xA282EAD8
_LENGTH = struct.Struct("<Q")
_CRC = struct.Struct("<I")


def masked(crc: int) -> int:
    """Return the stored form of a checksum. It is rotated and shifted, so that data may contain checksums.

    >>> hex(masked(0))
    '0xa282ead8'
    """
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF


def frame(length: int, data_crc: int) -> tuple[bytes, bytes]:
    """Return the bytes before and after `length` bytes of data with the CRC-32C `data_crc`."""
    import crc32c

    header = _LENGTH.pack(length)
    return header + _CRC.pack(masked(crc32c.crc32c(header))), _CRC.pack(masked(data_crc))


def plain_scan(
    buffer: np.ndarray, at: int, max_bytes: int, check: int, starts: np.ndarray, lengths: np.ndarray
) -> tuple[int, int, int]:
    """Return the result of the kernel `scan`, in plain Python: (records, next position, status)."""
    import crc32c

    view = np.asarray(buffer).data
    count = taken = 0
    while count < len(starts) and at < len(view) and (taken < max_bytes or count == 0):
        room = len(view) - at
        if room < HEADER:
            return count, at, SHORT_HEADER
        length = _LENGTH.unpack_from(view, at)[0]
        if check >= LENGTHS and _CRC.unpack_from(view, at + 8)[0] != masked(crc32c.crc32c(view[at : at + 8])):
            return count, at, WRONG_LENGTH
        if length > room - HEADER - FOOTER:
            return count, at, SHORT_BODY
        stop = at + HEADER + length
        if check >= EVERYTHING and _CRC.unpack_from(view, stop)[0] != masked(crc32c.crc32c(view[at + HEADER : stop])):
            return count, at, WRONG_DATA
        starts[count], lengths[count] = at + HEADER, length
        count += 1
        taken += length
        at = stop + FOOTER
    return count, at, FINE


def plain_find(buffer: np.ndarray, at: int) -> tuple[int, int]:
    """Return the result of the kernel `find_record`, in plain Python: (position, status)."""
    import crc32c

    view = np.asarray(buffer).data
    while len(view) - at >= HEADER:
        if _CRC.unpack_from(view, at + 8)[0] == masked(crc32c.crc32c(view[at : at + 8])):
            stop = at + HEADER + _LENGTH.unpack_from(view, at)[0]
            if stop + FOOTER > len(view):
                return at, SHORT_BODY
            if _CRC.unpack_from(view, stop)[0] == masked(crc32c.crc32c(view[at + HEADER : stop])):
                return at, FINE
        at += 1
    return at, SHORT_HEADER


def plain_gather(
    buffer: np.ndarray, offsets: np.ndarray, check: int, starts: np.ndarray, lengths: np.ndarray
) -> tuple[int, int]:
    """Return the result of the kernel `gather`, in plain Python: (records, status)."""
    for i, at in enumerate(offsets.tolist()):
        if not 0 <= at < len(buffer):
            return i, SHORT_HEADER
        _, _, status = plain_scan(buffer, at, 1, check, starts[i : i + 1], lengths[i : i + 1])
        if status != FINE:
            return i, status
    return len(offsets), FINE


_REWRITE = "The writer did not close the file, or a copy was cut short: write or copy it again."
_NOT_OURS = "Is this a TFRecord file? Its first bytes are no record header."


def damaged_record(
    status: int, file: str, offset: int, head: np.ndarray, left: int, *, at_start: bool, passed: str = ""
) -> DataLossError:
    """Return the error for a status of `scan`.

    `head` is the available part of the record, from its header on. `left` is the number of bytes up to the end of the
    file. `passed` describes the bytes that were skipped to find the next record.
    """
    if at_start and (hint := other_format(head)):
        message = "The file does not begin with a TFRecord header."
        return DataLossError(message, hint=hint, file=file, offset=offset)
    if status == SHORT_HEADER:
        message = f"Truncated record: {left} bytes are left, and a record header has 12."
        return DataLossError(message, hint=_REWRITE, file=file, offset=offset)
    length = int.from_bytes(head[:8].tobytes(), "little")
    if status == SHORT_BODY:
        message = f"Truncated record: it says {length} bytes of data, and {max(left - 16, 0)} are left.{passed}"
        return DataLossError(message, hint=_REWRITE, file=file, offset=offset)
    if status == WRONG_LENGTH:
        message = f"Corrupted record: the checksum of its length ({length}) does not match.{passed}"
        hint = _NOT_OURS if at_start else "Bytes of the file were changed, lost or added before this place."
        return DataLossError(message, hint=hint, file=file, offset=offset)
    message = f"Corrupted record: the checksum of its {length} bytes of data does not match."
    hint = "Bytes of the record were changed after it was written; restore the file from its source."
    return DataLossError(message, hint=hint, file=file, offset=offset)


def passed_over(start: int, stop: int, *, found: bool) -> str:
    """Return the sentence about the bytes between damage and the next record, or the end of the file."""
    if found:
        return f" Bytes {start} to {stop} were passed over: the next whole record begins there."
    return f" Bytes {start} to {stop}, the end of the file, are lost: no whole record begins among them."


def damaged_compression(
    compression: str, reason: str, file: str, compressed_offset: int, head: bytes, *, at_start: bool
) -> DataLossError:
    """Return the error for a stream that zlib rejects, near byte `compressed_offset` of the file."""
    if at_start and _kind(head) != compression:
        message = (
            f"compression_type={compression!r} was asked for, and the file does not begin like {compression} data."
        )
        other = _kind(head)
        hint = f'Pass compression_type="{other}".' if other else "Leave compression_type out for uncompressed files."
        return DataLossError(message, hint=hint, file=file, offset=0)
    message = f"The {compression} data is damaged near byte {compressed_offset} of the compressed file: {reason}."
    return DataLossError(message, hint=_REWRITE, file=file)


def _kind(head: bytes) -> str:
    """Return the compression whose streams begin with these bytes, or ""."""
    if head[:2] == b"\x1f\x8b":
        return "GZIP"
    if len(head) >= 2 and head[0] == 0x78 and (head[0] * 256 + head[1]) % 31 == 0:
        return "ZLIB"
    return ""


def other_format(head: np.ndarray) -> str | None:
    """Return a hint for a file whose first bytes are those of a compressed file, or None."""
    kind = _kind(head[:4].tobytes())
    return f'It looks like {kind} data: pass compression_type="{kind}".' if kind else None
