"""A leaf comes back from JSON text with the same type, dtype, shape and bits."""

import json

import numpy as np
import pytest

import penstock as ps
from penstock.block.leaf import from_json, to_json
from penstock.errors import InvalidTypeError
from penstock.testing import difference

STRINGS = np.array([[b"a\x00", b""], [b"\xff", "é".encode()]], object)
LEAVES = {
    "int64": np.int64(-(2**63)),
    "uint64": np.uint64(2**64 - 1),
    "bool": np.bool_(True),
    "float16": np.float16(0.1),
    "minus zero": np.float64(-0.0),
    "infinity": np.float32(-np.inf),
    "complex": np.complex128(1 - 2j),
    "date": np.datetime64("2024-02-29T01:02:03", "ms"),
    "bytes": b"\x00\xff\n",
    "no bytes": b"",
    "vector": np.arange(5, dtype=np.int8),
    "empty": np.zeros((0, 3), np.float32),
    "no dimension": np.zeros((2, 0, 3)),
    "fortran": np.asfortranarray(np.arange(6).reshape(2, 3)),
    "slice": np.arange(20)[::3],
    "strings": STRINGS,
    "no strings": np.zeros((0, 2), object),
    "sparse": ps.SparseTensor(np.array([[0, 1]]), np.array([2.5]), np.array([2, 3])),
    "sparse strings": ps.SparseTensor(np.array([[1]]), STRINGS[0, :1], np.array([2])),
    "ragged": ps.RaggedTensor(ps.RaggedTensor(np.array([1, 2, 3]), np.array([0, 1, 3])), np.array([0, 2, 2])),
    "ragged int32": ps.RaggedTensor(STRINGS[0], np.array([0, 2], np.int32)),
}


@pytest.mark.parametrize("name", LEAVES)
def test_it_comes_back_as_it_was(name):
    leaf = LEAVES[name]
    found = from_json(json.loads(json.dumps(to_json(leaf))))
    assert difference(found, leaf) is None
    if isinstance(leaf, np.ndarray):
        found.flags.writeable = True
        found[...] = found  # the array belongs to the caller


def test_the_payload_of_a_nan_is_kept():
    odd = np.array([0x7FF8000000000123], np.uint64).view(np.float64)
    assert from_json(to_json(odd)).tobytes() == odd.tobytes()


def test_bytes_stand_in_one_order_on_every_machine():
    assert to_json(np.array([1, 2], ">i4")) == to_json(np.array([1, 2], "<i4"))


def test_row_splits_keep_their_dtype():
    assert from_json(to_json(LEAVES["ragged int32"])).row_splits.dtype == np.int32


@pytest.mark.parametrize("leaf", [ps.Dataset.range(3), np.zeros(2, "i4,f4"), object()])
def test_what_is_no_value_is_refused(leaf):
    with pytest.raises(InvalidTypeError, match="A state"):
        to_json(leaf)
