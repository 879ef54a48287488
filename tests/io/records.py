"""Strategies: feature dicts, descriptions of them, and serialized examples spelled in all the ways protobuf allows."""

import struct

import numpy as np
from hypothesis import strategies as st

from penstock import io

NAMES = ["a", "label", "eight_by", "nine_byte", "a_feature_with_a_long_name_1", "a_feature_with_a_long_name_2", ""]
DTYPES = [bytes, np.int64, np.float32]

ints = st.integers(-(2**63), 2**63 - 1) | st.integers(0, 3)
floats = st.floats(width=32, allow_nan=False)
strings = st.binary(max_size=12)


def values(dtype, max_size=4):
    return st.lists({bytes: strings, np.int64: ints, np.float32: floats}[dtype], max_size=max_size)


def varint(value, padded=0):
    """The bytes of a varint, with `padded` more than it needs."""
    value &= (1 << 64) - 1
    found = []
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    padded = min(padded, 9 - len(found))
    if padded <= 0:
        return bytes([*found, value])
    return bytes([*found, value | 0x80, *([0x80] * (padded - 1)), 0])


def field(tag, content):
    return varint(tag) + varint(len(content)) + content


unknown_fields = st.sampled_from(
    [b"", b"\x38\x96\x01", b"\x39" + b"8 bytes.", b"\x3d" + b"four", b"\x3a\x03abc", b"\x0d" + b"four", b"\x08\x01"]
)


@st.composite
def feature(draw, dtype=None):
    """The content of a Feature message: packed or not, in parts, of several kinds, with unknown fields."""
    if draw(st.integers(0, 9)) == 0:
        return b""
    parts = []
    for _ in range(draw(st.sampled_from([1, 1, 1, 2]))):
        kind = draw(st.sampled_from(DTYPES)) if dtype is None or draw(st.integers(0, 9)) == 0 else dtype
        found = draw(values(kind, draw(st.sampled_from([1, 1, 4, 50]))))
        if kind is bytes:
            content = b"".join(field(0x0A, value) for value in found)
        elif draw(st.booleans()):
            spelled = [varint(v, draw(st.integers(0, 1))) if kind is np.int64 else struct.pack("<f", v) for v in found]
            content = field(0x0A, b"".join(spelled))
        else:
            spelled = [b"\x08" + varint(v) if kind is np.int64 else b"\x0d" + struct.pack("<f", v) for v in found]
            content = b"".join(spelled)
        if draw(st.integers(0, 5)) == 0:
            content += field(0x3A, b"unknown")
        parts.append(field(DTYPES.index(kind) * 8 + 10 if kind is bytes else (26 if kind is np.int64 else 18), content))
    return b"".join(parts) + (b"\x38\x05" if draw(st.integers(0, 9)) == 0 else b"")


@st.composite
def entry(draw, name, dtype=None):
    key, value = field(0x0A, name.encode()), field(0x12, draw(feature(dtype)))
    spelled = [key, value]
    if draw(st.integers(0, 9)) == 0:
        spelled.reverse()
    if draw(st.integers(0, 9)) == 0:
        spelled.insert(1, b"\x1a\x02??")
    return field(0x0A, b"".join(spelled))


@st.composite
def example(draw, dtypes):
    """A serialized Example with most of the features in `dtypes`, in any order, some twice, some unknown."""
    names = draw(st.permutations([*dtypes, "other", draw(st.sampled_from([*dtypes, "more"]))]))
    entries = [draw(entry(name, dtypes.get(name))) for name in names if draw(st.integers(0, 9))]
    cut = draw(st.integers(0, len(entries))) if draw(st.booleans()) else len(entries)
    found = field(0x0A, b"".join(entries[:cut])) + (field(0x0A, b"".join(entries[cut:])) if cut < len(entries) else b"")
    return found + draw(unknown_fields.filter(lambda part: not part.startswith(b"\x0a")))


@st.composite
def description(draw, dtype):
    form = draw(st.sampled_from(["fixed", "fixed", "fixed", "var", "sequence", "ragged"]))
    if form == "var":
        return io.VarLenFeature(dtype)
    if form == "ragged":
        return io.RaggedFeature(dtype)
    if form == "sequence":
        return io.FixedLenSequenceFeature(draw(st.sampled_from([(), (2,)])), dtype, allow_missing=True)
    shape = draw(st.sampled_from([(), (), (1,), (2,), (0,), (2, 2)]))
    size = int(np.prod(shape))
    default = None
    if draw(st.booleans()):
        found = draw(values(dtype, 4).filter(bool))
        default = [found[i % len(found)] for i in range(size)] if shape else found[0]
    return io.FixedLenFeature(shape, dtype, default)


@st.composite
def spec(draw):
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=5, unique=True))
    return {name: draw(description(draw(st.sampled_from(DTYPES)))) for name in names}
