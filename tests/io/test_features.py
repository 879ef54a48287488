"""Descriptions of features are checked when built, and compare by content."""

import numpy as np
import pytest

from penstock import io
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.io.expected import expect


@pytest.mark.parametrize("dtype", [bytes, str, "string", np.int64, "int64", np.dtype("int64"), np.float32, "float32"])
def test_the_three_dtypes(dtype):
    assert io.VarLenFeature(dtype) == io.VarLenFeature(io.VarLenFeature(dtype).dtype)


@pytest.mark.parametrize("dtype", [np.float64, float, "uint8", np.bool_, None, 3])
@pytest.mark.parametrize("feature", [io.VarLenFeature, io.RaggedFeature, lambda dtype: io.FixedLenFeature((), dtype)])
def test_other_dtypes(feature, dtype):
    with pytest.raises(InvalidTypeError, match=r"must be bytes, np\.int64 or np\.float32"):
        feature(dtype)


@pytest.mark.parametrize("shape", [(None,), (-1,), [2, None], (1.5,)])
def test_unknown_dimensions(shape):
    with pytest.raises(InvalidArgumentError, match="must be known"):
        io.FixedLenFeature(shape, np.int64)


@pytest.mark.parametrize(
    ("shape", "dtype", "default", "text"),
    [
        ((2,), np.int64, [1], "has 1 values, and shape"),
        ((), np.int64, [1, 2], "has 2 values"),
        ((), np.int64, 0.5, "does not fit dtype int64"),
        ((), np.int64, b"", "does not fit dtype int64"),
        ((), bytes, 0, "does not fit dtype bytes"),
        ((), np.float32, "a", "does not fit dtype float32"),
        ((), np.int64, 2**63, "does not fit int64"),
    ],
)
def test_defaults_that_do_not_fit(shape, dtype, default, text):
    with pytest.raises((InvalidArgumentError, InvalidTypeError), match=text):
        io.FixedLenFeature(shape, dtype, default)


def test_defaults_are_converted():
    assert io.FixedLenFeature((), np.float32, 1).default_value == np.float32(1)
    assert io.FixedLenFeature((), bytes, "é").default_value == "é".encode()
    assert io.FixedLenFeature((2, 2), np.int64, [1, 2, 3, 4]).default_value.tolist() == [[1, 2], [3, 4]]


def test_equal_content_is_equal():
    def made():
        partitions = [io.RaggedFeature.RowSplits("s"), io.RaggedFeature.UniformRowLength(2)]
        return [
            io.FixedLenFeature([2], "int64", [1, 2]),
            io.VarLenFeature(bytes),
            io.FixedLenSequenceFeature((), np.float32, allow_missing=True),
            io.RaggedFeature(np.int64, "v", partitions),
        ]

    assert made() == made()
    assert len(set(made() + made())) == 4
    assert io.FixedLenFeature((), np.float32, 0.0) != io.FixedLenFeature((), np.float32, -0.0)
    assert io.FixedLenFeature((), np.int64) != io.FixedLenFeature((), np.int64, 0)
    assert io.RaggedFeature(np.int64, partitions=[io.RaggedFeature.RowSplits("a")]) != io.RaggedFeature(
        np.int64, partitions=[io.RaggedFeature.RowStarts("a")]
    )


def test_descriptions_are_frozen():
    with pytest.raises(AttributeError):
        io.VarLenFeature(bytes).dtype = np.int64


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: io.RaggedFeature(np.int64, ""), "value_key must be"),
        (lambda: io.RaggedFeature(np.int64, partitions="ab"), "partitions must be a list"),
        (lambda: io.RaggedFeature(np.int64, partitions=["a"]), "A partition is"),
        (lambda: io.RaggedFeature(np.int64, row_splits_dtype=np.int16), "row_splits_dtype"),
        (lambda: io.RaggedFeature(np.int64, partitions=[io.RaggedFeature.UniformRowLength(0)]), "at least 1"),
        (lambda: io.RaggedFeature(np.int64, partitions=[io.RaggedFeature.RowSplits(1)]), "name of a feature"),
        (lambda: io.FixedLenSequenceFeature((0,), np.int64), "at least one value per step"),
        (lambda: expect({}), "features is empty"),
        (lambda: expect([("a", io.VarLenFeature(bytes))]), "features must be a dict"),
        (lambda: expect({"a": np.int64}), "must be described by"),
        (lambda: expect({"a": [1]}), "must be described by"),
        (lambda: expect({1: io.VarLenFeature(bytes)}), "name of a feature is text"),
        (
            lambda: expect({"a": io.FixedLenFeature((), np.int64), "b": io.RaggedFeature(np.int64, "a")}),
            "asked for in two ways: as 1 of int64 and as any number of int64",
        ),
    ],
)
def test_wrong_descriptions(make, text):
    with pytest.raises((InvalidArgumentError, InvalidTypeError), match=text):
        make()


def test_the_same_descriptions_are_checked_once():
    assert expect({"a": io.VarLenFeature(bytes)}) is expect({"a": io.VarLenFeature(bytes)})
