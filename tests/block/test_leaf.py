"""Results of user functions as leaves: numpy values keep their dtype, Python literals get the frameworks' dtypes."""

import enum

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

from penstock.block.arena import ALIGNMENT
from penstock.block.column import BytesColumn
from penstock.block.fixed import fixed_values
from penstock.block.leaf import as_leaf, settle
from penstock.block.tensors import RaggedTensor
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.testing import difference


class Colour(enum.IntEnum):
    RED = 3


def strings(*values):
    found = np.empty(len(values), object)
    found[:] = values
    return found


@pytest.mark.parametrize(
    ("value", "leaf"),
    [
        (True, np.bool_(True)),
        (3, np.int64(3)),
        (-(2**63), np.int64(-(2**63))),
        (0.5, np.float32(0.5)),
        (1j, np.complex64(1j)),
        ("é", b"\xc3\xa9"),
        (b"a\0", b"a\0"),
        (bytearray(b"ab"), b"ab"),
        (memoryview(b"ab"), b"ab"),
        (Colour.RED, np.int64(3)),
        (np.int8(3), np.int8(3)),
        (np.float64(0.5), np.float64(0.5)),
        (np.array(3, np.uint8), np.uint8(3)),
        (np.array(["a", "é"]), strings(b"a", b"\xc3\xa9")),
        (np.array([b"a\0", b"bb"]), strings(b"a", b"bb")),
        (np.str_("x"), b"x"),
        ([1, 2], np.array([1, 2])),
        ([0.5, 2], np.array([0.5, 2], np.float32)),
        ([[True], [False]], np.array([[True], [False]])),
        ([np.float64(0.5), np.float64(2)], np.array([0.5, 2])),
        ([], np.array([], np.float32)),
        (["a", b"b"], strings(b"a", b"b")),
        ([b"a\0", b"\0"], strings(b"a\0", b"\0")),
        (["a\0"], strings(b"a\0")),
        (np.bytes_(b"a\0"), b"a\0"),
        ([np.bytes_(b"a\0")], strings(b"a\0")),
        (range(3), np.arange(3)),
        (range(2**63 - 1, 2**63 - 5, -2), np.array([2**63 - 1, 2**63 - 3])),
        ([(1, 2), range(2)], np.array([[1, 2], [0, 1]])),
        ([1j, 1], np.array([1j, 1], np.complex64)),
        (np.array(["a"], np.dtypes.StringDType()), strings(b"a")),
        ([np.zeros(2, np.int16), np.ones(2, np.int16)], np.array([[0, 0], [1, 1]], np.int16)),
    ],
)
def test_conversion(value, leaf):
    found = as_leaf(value)
    assert difference(found, leaf) is None


@given(nps.arrays(nps.scalar_dtypes().filter(lambda d: d.kind in "biufc"), nps.array_shapes(min_dims=0, max_dims=3)))
def test_numpy_values_keep_dtype_shape_and_bits(array):
    found = as_leaf(array)
    native = array.astype(array.dtype.newbyteorder("="))
    assert found.dtype == native.dtype
    assert np.shape(found) == array.shape
    assert np.asarray(found).tobytes() == native.tobytes()


@pytest.mark.parametrize(
    ("value", "kind", "part"),
    [
        (2**63, InvalidArgumentError, "does not fit int64"),
        ([1, 2**70], InvalidArgumentError, "does not fit int64"),
        ([[1], [1, 2]], InvalidArgumentError, "differ in shape"),
        (None, InvalidTypeError, "None is no value"),
        ([1, "a"], InvalidTypeError, "mixes text with numbers"),
        ([1, [b"a"]], InvalidTypeError, "mixes text with numbers"),
        ([None], InvalidTypeError, "None is no part of an array"),
        ([{"a": 1}], InvalidTypeError, "a dict is no part of an array"),
        (range(2**70), InvalidArgumentError, "does not fit int64"),
        ([2**63], InvalidArgumentError, "does not fit int64"),
        ([7, 2**63 + 1024], InvalidArgumentError, "does not fit int64"),
        ([[7, True], (2**63 + 1024, 1)], InvalidArgumentError, "does not fit int64"),
        ([7, np.uint64(2**63)], InvalidTypeError, "no dtype holds int64 and uint64"),
        (object(), InvalidTypeError, "object"),
        ({1, 2}, InvalidTypeError, "set"),
        (np.array([object()]), InvalidTypeError, "byte strings and text"),
        (np.ma.masked_array([1, 2], [False, True]), InvalidTypeError, "lose its mask"),
        (np.ma.masked, InvalidTypeError, "lose its mask"),
    ],
)
def test_what_no_tensor_can_hold(value, kind, part):
    with pytest.raises(kind, match=part):
        as_leaf(value)


def test_a_masked_array_without_masked_values_is_an_array():
    found = as_leaf(np.ma.masked_array([1, 2], [False, False]))
    assert type(found) is np.ndarray
    assert found.tolist() == [1, 2]


def test_settle_keeps_a_fresh_array_and_copies_one_that_is_held():
    held = np.arange(3)
    leaves = [held]
    settle(leaves)
    assert leaves[0] is not held
    held[:] = 9
    assert leaves[0].tolist() == [0, 1, 2]

    fresh = [np.arange(3)]
    address = fresh[0].ctypes.data
    settle(fresh)
    assert fresh[0].ctypes.data == address


def test_copies_of_large_arrays_lie_in_memory_that_is_used_again():
    held = np.arange(1 << 15, dtype=np.int64)
    (first,) = settle([held])
    where = first.ctypes.data
    assert where % ALIGNMENT == 0
    np.testing.assert_array_equal(first, held)
    assert first.flags.writeable
    assert not np.shares_memory(first, held)
    del first
    (second,) = settle([held[::-1]])
    assert second.ctypes.data == where
    np.testing.assert_array_equal(second, held[::-1])


def test_settle_copies_views_whose_base_may_be_written():
    base = np.arange(6)
    leaves = [base[::2]]
    settle(leaves)
    base[:] = 9
    assert leaves[0].tolist() == [0, 2, 4]


@given(st.lists(st.one_of(st.integers(-(2**63), 2**63 - 1), st.booleans(), st.text(), st.binary())))
def test_scalars_never_raise(values):
    for value in values:
        as_leaf(value)


@given(
    st.lists(
        st.integers(-(2**64), 2**64) | st.booleans() | st.integers(2**63 - 2, 2**63 + 2).map(np.uint64), min_size=1
    )
)
def test_integers_in_a_list_are_exact_or_refused(values):
    try:
        found = as_leaf(values)
    except (InvalidArgumentError, InvalidTypeError):
        return
    assert [int(item) for item in found] == [int(item) for item in values]


@pytest.mark.parametrize("value", ["a\ud800", ["b", "a\ud800"], np.array("a\ud800"), np.array(["a\ud800"], object)])
def test_half_a_character_is_no_text(value):
    with pytest.raises(InvalidArgumentError, match=r"holds '\\ud800' at position 1.*surrogate(?s:.*)os\.fsencode"):
        as_leaf(value)


def test_composite_tensors_stay():
    ragged = RaggedTensor(np.arange(3), np.array([0, 3]))
    assert as_leaf(ragged) is ragged


class Name(bytes):
    """Byte strings of a class of the user."""


@given(st.lists(st.sampled_from([b"a", b"b\0", b"", "é", Name(b"n"), np.bytes_(b"x"), np.str_("y")]), max_size=6))
def test_an_array_of_texts_is_a_new_one_of_bytes(texts):
    array = strings(*texts)
    (found,) = settle([array])
    assert found is not array
    assert [type(text) for text in found] == [bytes] * len(texts)
    assert found.tolist() == [text.encode() if isinstance(text, str) else bytes(text) for text in texts]


def test_an_array_of_texts_lies_in_c_order_and_shares_no_memory():
    array = np.array([[b"a", b"b"], [b"c", b"d"]], object)
    (found,) = settle([array.T])
    assert found.flags.c_contiguous
    assert not np.may_share_memory(found, array)
    assert found.tolist() == [[b"a", b"c"], [b"b", b"d"]]


def test_texts_that_a_function_is_given_can_never_be_written_to():
    for value in fixed_values(BytesColumn.from_values([b"a", b"b", b"c", b"d"], (2,), 2)):
        with pytest.raises(ValueError, match="read-only"):
            value[0] = b"z"
        with pytest.raises(ValueError, match="WRITEABLE"):
            value.flags.writeable = True
