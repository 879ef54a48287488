"""Records, damaged at random, and the comparison of the compiled parser with the plain one on them."""

import numpy as np
import pytest

from penstock import io
from penstock.block.tensors import RaggedTensor, SparseTensor
from penstock.errors import PenstockError


def same(a, b):
    """Whether two results are equal to the bit: kind, dtype, shape and values."""
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (SparseTensor, RaggedTensor)):
        return a.equals(b)
    if isinstance(a, bytes):
        return type(b) is bytes and a == b
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return a.tolist() == b.tolist() if a.dtype == object else a.tobytes() == b.tobytes()


def plain(serialized, features):
    """One result or error per record."""
    found = []
    for record in serialized:
        try:
            found.append(io.parse_single_example(record, features))
        except PenstockError as error:
            found.append(error)
    return found


def fast(serialized, features):
    buffer = np.frombuffer(b"".join(serialized), np.uint8)
    lengths = np.array([len(record) for record in serialized], np.int64)
    columns = io.parse_columns(buffer, np.cumsum(lengths) - lengths, lengths, features)
    singles = {name: column.singles() for name, column in columns.items()}
    return [{name: rows[i] for name, rows in singles.items()} for i in range(len(serialized))]


def check(serialized, features):
    expected = plain(serialized, features)
    errors = [i for i, result in enumerate(expected) if isinstance(result, PenstockError)]
    if errors:
        with pytest.raises(type(expected[errors[0]])) as caught:
            fast(serialized, features)
        assert caught.value.message == expected[errors[0]].message
        assert caught.value.context.element == errors[0]
    good = [
        record for record, result in zip(serialized, expected, strict=True) if not isinstance(result, PenstockError)
    ]
    wanted = [result for result in expected if not isinstance(result, PenstockError)]
    for a, b in zip(fast(good, features), wanted, strict=True):
        assert same(a, b), (a, b)
    return len(good)


MUTANT_SPEC = {
    "id": io.FixedLenFeature((), np.int64),
    "score": io.FixedLenFeature((), np.float32, 0.5),
    "image": io.FixedLenFeature((), bytes, b"none"),
    "box": io.FixedLenFeature((4,), np.float32),
    "a_name_of_more_than_sixteen_bytes": io.FixedLenFeature((2,), np.int64, [7, 8]),
    "words": io.VarLenFeature(bytes),
    "tokens": io.RaggedFeature(np.int64),
}


def originals(rng):
    for i in range(20):
        features = {
            "id": int(rng.integers(-(2**63), 2**63 - 1)) >> int(rng.integers(64)),
            "score": rng.random(),
            "image": rng.bytes(int(rng.integers(300))),
            "box": rng.random(4).astype(np.float32),
            "a_name_of_more_than_sixteen_bytes": [i, -i],
            "words": [rng.bytes(3) for _ in range(int(rng.integers(4)))] or np.empty(0, "S1"),
            "tokens": rng.integers(0, 1 << 40, int(rng.integers(6))),
            "not asked for": [1.5],
        }
        order = rng.permutation(list(features)) if i % 2 else list(features)
        yield io.encode_example({str(name): features[str(name)] for name in order})


def mutated(rng, record):
    damaged = bytearray(record)
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(len(damaged))) if damaged else 0
        match int(rng.integers(5)):
            case 0:
                damaged[at : at + 1] = bytes([int(rng.integers(256))])
            case 1:
                del damaged[at : at + int(rng.integers(1, 5))]
            case 2:
                damaged[at:at] = rng.bytes(int(rng.integers(1, 4)))
            case 3:
                del damaged[at:]
            case 4:
                damaged[at : at + 1] = rng.choice([b"\xff", b"\x80", b"\x00", b"\x0a", b"\x12", b"\x1a", b"\x7f"])
    return bytes(damaged)
