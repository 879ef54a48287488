"""Walking over the messages inside tf.train.Example, in plain Python: what the compiled parser must agree with.

Both follow protobuf: fields come in any order, unknown ones are skipped, of map entries with one key the last counts,
lists may be packed or not and in several parts, of different kinds in one feature the last counts. A feature that was
not asked for is passed over unseen.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.io.values import BYTES, FLOAT, INT64, NO_KIND
from penstock.io.wire import MalformedError, packed_varints, signed, skip, span, varint


class ValueLists:
    """The values of one feature, gathered from the parts of its list: small lists, or arrays."""

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
    """Name → (start, end) of every `Feature` in a serialized `Example`."""
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
    """(kind, values) of a `Feature` message; the values are read only where the kind is `wanted`."""
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
    """An array, as it keeps the bits: a Python float in between would make a signalling NaN quiet."""
    return np.frombuffer(data, "<f4", count, at).astype(np.float32, copy=False)
