"""Protocol buffers, as far as TensorBoard's files need them: fields, written."""

from __future__ import annotations

import struct


def varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first.

    >>> varint(300).hex()
    'ac02'
    """
    value &= (1 << 64) - 1
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def integer(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def double(field: int, value: float) -> bytes:
    return varint(field << 3 | 1) + struct.pack("<d", value)


def single(field: int, value: float) -> bytes:
    return varint(field << 3 | 5) + struct.pack("<f", value)


def content(field: int, value: bytes | str) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(data)) + data
