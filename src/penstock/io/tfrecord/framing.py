"""The framing of a TFRecord file, and the plain reader that defines what the fast one must give.

A file is a row of records without anything around them:

    u64le length | u32le masked CRC-32C of those 8 bytes | data | u32le masked CRC-32C of the data

Source: tsl/lib/io/record_writer.h and tsl/lib/hash/crc32c.h of TensorFlow.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np

HEADER = 12  # bytes before the data
FOOTER = 4  # bytes after it

# What a scan says about the record at which it stopped.
FINE, SHORT_HEADER, SHORT_BODY, WRONG_LENGTH, WRONG_DATA = 0, 1, 2, 3, 4
# What a scan verifies.
NOTHING, LENGTHS, EVERYTHING = 0, 1, 2

_MASK_DELTA = 0xA282EAD8
_LENGTH = struct.Struct("<Q")
_CRC = struct.Struct("<I")


def masked(crc: int) -> int:
    """The checksum as it is stored: rotated and shifted, so that a checksum of data with checksums stays useful.

    >>> hex(masked(0))
    '0xa282ead8'
    """
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF


def frame(length: int, data_crc: int) -> tuple[bytes, bytes]:
    """What stands before and after `length` bytes of data with the CRC-32C `data_crc`."""
    import crc32c

    header = _LENGTH.pack(length)
    return header + _CRC.pack(masked(crc32c.crc32c(header))), _CRC.pack(masked(data_crc))


def plain_scan(
    buffer: np.ndarray, at: int, max_bytes: int, check: int, starts: np.ndarray, lengths: np.ndarray
) -> tuple[int, int, int]:
    """What the kernel `scan` gives, in plain Python: (records, next position, status)."""
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
    """What the kernel `find_record` gives, in plain Python: (position, status)."""
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
    """What the kernel `gather` gives, in plain Python: (records, status)."""
    for i, at in enumerate(offsets.tolist()):
        if not 0 <= at < len(buffer):
            return i, SHORT_HEADER
        _, _, status = plain_scan(buffer, at, 1, check, starts[i : i + 1], lengths[i : i + 1])
        if status != FINE:
            return i, status
    return len(offsets), FINE


def plain_records(stream: bytes) -> Iterator[bytes]:
    """Every record of an uncompressed stream, one by one: the reference. Raises ValueError at the first damage.

    >>> header, footer = frame(2, __import__("crc32c").crc32c(b"hi"))
    >>> list(plain_records(header + b"hi" + footer))
    [b'hi']
    """
    import crc32c

    at = 0
    while at < len(stream):
        header = stream[at : at + 8]
        stored = stream[at + 8 : at + HEADER]
        if len(stored) < 4:
            message = f"truncated header at {at}"
            raise ValueError(message)
        if _CRC.unpack(stored)[0] != masked(crc32c.crc32c(header)):
            message = f"wrong checksum of the length at {at}"
            raise ValueError(message)
        stop = at + HEADER + _LENGTH.unpack(header)[0]
        stored = stream[stop : stop + FOOTER]
        if len(stored) < FOOTER:
            message = f"truncated record at {at}"
            raise ValueError(message)
        data = stream[at + HEADER : stop]
        if _CRC.unpack(stored)[0] != masked(crc32c.crc32c(data)):
            message = f"wrong checksum of the data at {at}"
            raise ValueError(message)
        yield data
        at = stop + FOOTER
