"""TFRecord's framing in plain Python, by itself: records framed, and what a reader should find."""

import struct

import crc32c

from penstock.io.tfrecord.framing import FOOTER, HEADER, frame, masked

_LENGTH, _CRC = struct.Struct("<Q"), struct.Struct("<I")


def framed(records):
    parts = []
    for record in records:
        header, footer = frame(len(record), crc32c.crc32c(record))
        parts += [header, record, footer]
    return b"".join(parts)


def plain_records(stream):
    """Every record of an uncompressed stream, one by one. Raises ValueError at the first damage."""
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
