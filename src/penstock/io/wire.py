"""The wire format of protocol buffers, as far as tf.train.Example needs it: reading and writing in plain Python.

A message is a row of fields: a varint `field_number << 3 | wire_type`, then the value. Unknown fields are skipped.
Source: protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

import numpy as np

VARINT, FIXED64, DELIMITED, FIXED32 = 0, 1, 2, 5

_MAX_TAG = (1 << 32) - 1
_MASK = (1 << 64) - 1
_SMALL = 32  # from about this many values on, numpy's fixed costs are less than Python's per value


class MalformedError(ValueError):
    """The bytes are no message; callers turn it into an error that says which message was wanted."""


def varint(data: bytes, at: int, stop: int) -> tuple[int, int]:
    """(value, next position) of the varint at `at`; bits beyond the 64th are dropped, as protobuf does.

    >>> varint(bytes([0xAC, 0x02]), 0, 2)
    (300, 2)

    Raises MalformedError where it does not end before `stop`, or within 10 bytes.
    """
    value = shift = 0
    for byte in data[at : min(stop, at + 10)]:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value & _MASK, at + shift // 7
    if stop - at < 10:
        message = "a number is cut short"
        raise MalformedError(message)
    message = "a number has more than 10 bytes"
    raise MalformedError(message)


def span(data: bytes, at: int, stop: int) -> tuple[int, int]:
    """(start, end) of the bytes that a length at `at` announces."""
    if at < stop and data[at] < 0x80:
        size, at = data[at], at + 1
    else:
        size, at = varint(data, at, stop)
    if size > stop - at:
        message = f"{size} bytes are announced where {stop - at} are left"
        raise MalformedError(message)
    return at, at + size


def skip(data: bytes, at: int, stop: int, tag: int) -> int:
    """The position after the value of an unknown field."""
    kind = tag & 7
    if not 8 <= tag <= _MAX_TAG:
        message = f"there is no field with the tag {tag}"
        raise MalformedError(message)
    if kind == VARINT:
        return varint(data, at, stop)[1]
    if kind == DELIMITED:
        return span(data, at, stop)[1]
    if kind not in (FIXED64, FIXED32):
        message = f"there is no field with the wire type {kind}"
        raise MalformedError(message)
    at += 8 if kind == FIXED64 else 4
    if at > stop:
        message = "a field is cut short"
        raise MalformedError(message)
    return at


def packed_varints(data: bytes, start: int, stop: int) -> list[int] | np.ndarray:
    """The varints of data[start:stop], as signed 64-bit values: a list of few, an int64 array of many.

    >>> packed_varints(bytes([1, 0xAC, 0x02]), 0, 3)
    [1, 300]
    """
    if stop - start > _SMALL:
        return _many_varints(np.frombuffer(data, np.uint8, stop - start, start))
    values = []
    at = start
    while at < stop:
        value, at = varint(data, at, stop)
        values.append(signed(value))
    return values


def _many_varints(bytes_: np.ndarray) -> np.ndarray:
    last = bytes_ < 0x80
    if last.all():
        return bytes_.astype(np.int64)
    ends = np.flatnonzero(last) + 1
    if not len(ends) or ends[-1] != len(bytes_):
        message = "a number is cut short"
        raise MalformedError(message)
    starts = np.concatenate(([0], ends[:-1]))
    sizes = ends - starts
    if sizes.max() > 10:
        message = "a number has more than 10 bytes"
        raise MalformedError(message)
    place = np.arange(len(bytes_)) - np.repeat(starts, sizes)
    bits = (bytes_ & np.uint8(0x7F)).astype(np.uint64) << (place * 7).astype(np.uint64)
    return np.bitwise_or.reduceat(bits, starts).view(np.int64)


def signed(value: int) -> int:
    """The two's complement reading of an unsigned 64-bit value."""
    return value - (1 << 64) if value >> 63 else value


def encode_varint(value: int) -> bytes:
    """The bytes of an unsigned 64-bit value.

    >>> encode_varint(300).hex()
    'ac02'
    """
    if value < 0x80:
        return bytes((value,))
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def encode_varints(values: np.ndarray) -> bytes:
    """The bytes of int64 values, one varint after the other."""
    if len(values) <= _SMALL:
        return b"".join([encode_varint(value & _MASK) for value in values.tolist()])
    bits = values.astype(np.int64).view(np.uint64)
    shifted = bits[:, None] >> (np.arange(10, dtype=np.uint64) * np.uint64(7))
    more = np.concatenate([shifted[:, 1:] != 0, np.zeros((len(bits), 1), bool)], axis=1)
    used = np.concatenate([np.ones((len(bits), 1), bool), more[:, :-1]], axis=1)
    spelled = (shifted & np.uint64(0x7F)).astype(np.uint8) | (more.astype(np.uint8) << np.uint8(7))
    return bytes(spelled[used])


def delimited(tag: int, content: bytes) -> bytes:
    """A field of bytes: its one-byte tag, the length, the content."""
    return bytes((tag,)) + encode_varint(len(content)) + content
