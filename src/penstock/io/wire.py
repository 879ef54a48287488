"""The wire format of protocol buffers, as far as tf.train.Example needs it.

The module reads and writes fields, and reads the messages inside an example, in plain Python. The compiled parser does
the same for a Block.

A message is a sequence of fields: a varint `field_number << 3 | wire_type`, then the value. Unknown fields are skipped.
Source: protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.io.values import BYTES, FLOAT, INT64, NO_KIND

VARINT, FIXED64, DELIMITED, FIXED32 = 0, 1, 2, 5

_MAX_TAG = (1 << 32) - 1
_MASK = (1 << 64) - 1
_SMALL = 32  # number of values; above it, numpy's fixed costs are less than Python's costs per value


class MalformedError(ValueError):
    """The bytes are no message. The caller raises an error with the name of the expected message."""


def varint(data: bytes, at: int, stop: int) -> tuple[int, int]:
    """Return (value, next position) of the varint at `at`. Bits beyond the 64th are dropped, as in protobuf.

    >>> varint(bytes([0xAC, 0x02]), 0, 2)
    (300, 2)

    Raises MalformedError if it does not end before `stop`, or within 10 bytes.
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
    """Return (start, end) of the bytes after the length at `at`."""
    if at < stop and data[at] < 0x80:
        size, at = data[at], at + 1
    else:
        size, at = varint(data, at, stop)
    if size > stop - at:
        message = f"{size} bytes are announced where {stop - at} are left"
        raise MalformedError(message)
    return at, at + size


def skip(data: bytes, at: int, stop: int, tag: int) -> int:
    """Return the position after the value of an unknown field."""
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
    """Return the varints of data[start:stop] as signed 64-bit values: a list if they are few, else an int64 array.

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
    """Return the two's complement reading of an unsigned 64-bit value."""
    return value - (1 << 64) if value >> 63 else value


def encode_varint(value: int) -> bytes:
    """Return the bytes of an unsigned 64-bit value.

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
    """Return the bytes of int64 values, one varint after the other."""
    if len(values) <= _SMALL:
        return b"".join([encode_varint(value & _MASK) for value in values.tolist()])
    bits = values.astype(np.int64).view(np.uint64)
    shifted = bits[:, None] >> (np.arange(10, dtype=np.uint64) * np.uint64(7))
    more = np.concatenate([shifted[:, 1:] != 0, np.zeros((len(bits), 1), bool)], axis=1)
    used = np.concatenate([np.ones((len(bits), 1), bool), more[:, :-1]], axis=1)
    spelled = (shifted & np.uint64(0x7F)).astype(np.uint8) | (more.astype(np.uint8) << np.uint8(7))
    return bytes(spelled[used])


def delimited(tag: int, content: bytes) -> bytes:
    """Return a field of bytes: its one-byte tag, the length, the content."""
    return bytes((tag,)) + encode_varint(len(content)) + content


# Both parsers follow protobuf. Fields come in any order, and unknown fields are skipped. The last of several map
# entries with one key counts. Lists may be packed or not, and in several pieces. The last of several kinds in one
# feature counts. A feature without a description is skipped without a check.


class ValueLists:
    """The values of one feature, collected from the pieces of its list. Pieces are small lists or arrays."""

    __slots__ = ("parts",)

    def __init__(self) -> None:
        self.parts: list[list[Any] | np.ndarray] = []

    def joined(self, kind: int) -> list[Any] | np.ndarray:
        parts = self.parts
        if len(parts) < 2:
            return parts[0] if parts else []
        if all(isinstance(part, list) for part in parts):
            return [value for part in parts for value in part]
        dtype = np.float32 if kind == FLOAT else np.int64
        return np.concatenate([np.asarray(part, dtype) for part in parts])


def feature_entries(data: bytes, at: int, stop: int, found: dict[bytes, tuple[int, int]]) -> None:
    """Add name → (start, end) of every `Feature` in data[at:stop], the content of a `Features` message."""
    while at < stop:
        if data[at] == 0x0A:
            at += 1
        else:
            tag, at = varint(data, at, stop)
            if tag != 0x0A:
                at = skip(data, at, stop, tag)
                continue
        at, end = span(data, at, stop)
        key, start, last = b"", at, at
        while at < end:
            tag = data[at]
            if tag < 0x80:
                at += 1
            else:
                tag, at = varint(data, at, end)
            if tag == 0x0A:
                begin, at = span(data, at, end)
                key = data[begin:at]
            elif tag == 0x12:
                start, at = span(data, at, end)
                last = at
            else:
                at = skip(data, at, end, tag)
        found[key] = (start, last)


def example_entries(data: bytes) -> dict[bytes, tuple[int, int]]:
    """Return name → (start, end) of every `Feature` in a serialized `Example`."""
    found: dict[bytes, tuple[int, int]] = {}
    at, stop = 0, len(data)
    while at < stop:
        tag, at = varint(data, at, stop)
        if tag == 0x0A:
            start, at = span(data, at, stop)
            feature_entries(data, start, at, found)
        else:
            at = skip(data, at, stop, tag)
    return found


def read_feature(data: bytes, at: int, stop: int, wanted: int) -> tuple[int, list[Any] | np.ndarray]:
    """Return (kind, values) of a `Feature` message. The values are read only if the kind is `wanted`."""
    kind, lists = NO_KIND, ValueLists()
    while at < stop:
        tag = data[at]
        if tag < 0x80:
            at += 1
        else:
            tag, at = varint(data, at, stop)
        if tag in (0x0A, 0x12, 0x1A):
            if tag >> 3 != kind:
                kind, lists = tag >> 3, ValueLists()
            start, at = span(data, at, stop)
            if kind == wanted:
                read_list(data, start, at, kind, lists)
        else:
            at = skip(data, at, stop, tag)
    return kind, (lists.joined(kind) if kind == wanted else [])


def read_list(data: bytes, at: int, stop: int, kind: int, lists: ValueLists) -> None:
    """Add the values in data[at:stop], the content of a BytesList, FloatList or Int64List."""
    few: list[Any] = []
    while at < stop:
        tag = data[at]
        if tag < 0x80:
            at += 1
        else:
            tag, at = varint(data, at, stop)
        if tag == 0x0A:
            start, at = span(data, at, stop)
            if kind == BYTES:
                few.append(data[start:at])
            elif kind == FLOAT:
                if (at - start) % 4:
                    message = f"{at - start} bytes of packed floats"
                    raise MalformedError(message)
                lists.parts.append(_floats(data, start, (at - start) // 4))
            elif isinstance(many := packed_varints(data, start, at), list):
                few += many
            else:
                lists.parts += [few, many]
                few = []
        elif tag == 0x0D and kind == FLOAT:
            if stop - at < 4:
                message = "a float is cut short"
                raise MalformedError(message)
            lists.parts.append(_floats(data, at, 1))
            at += 4
        elif tag == 0x08 and kind == INT64:
            value, at = varint(data, at, stop)
            few.append(signed(value))
        else:
            at = skip(data, at, stop, tag)
    if few:
        lists.parts.append(few)


def _floats(data: bytes, at: int, count: int) -> np.ndarray:
    """Return an array, which keeps all bits. A Python float would make a signalling NaN quiet."""
    return np.frombuffer(data, "<f4", count, at).astype(np.float32, copy=False)
