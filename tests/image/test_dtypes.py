"""cast and convert_image_dtype."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as hnp

from penstock.block.spec import TensorSpec
from penstock.errors import InvalidTypeError
from penstock.image import cast, convert_image_dtype, rules
from penstock.trace.graph import NotTraceable


@pytest.mark.parametrize(
    ("values", "dtype", "expected"),
    [
        (np.array([1.9, -1.9, 0.5], np.float32), np.int32, [1, -1, 0]),
        (np.array([300, -1]), np.uint8, [44, 255]),
        (np.array([0, 2]), np.bool_, [False, True]),
        (np.array([True, False]), np.float32, [1.0, 0.0]),
        (np.array([1 + 2j]), np.float32, [1.0]),
        (3, np.float32, 3.0),
    ],
)
def test_cast(values, dtype, expected):
    result = cast(values, dtype)
    assert result.dtype == dtype
    assert result.tolist() == expected


def test_cast_refuses_what_is_no_number():
    with pytest.raises(InvalidTypeError, match=r"got \|S1 to int32"):
        cast(b"7", np.int32)


@pytest.mark.parametrize(
    ("value", "dtype", "saturate", "expected"),
    [
        (np.uint8(255), np.uint16, False, 255 * 256),
        (np.uint16(65535), np.uint8, False, 255),
        (np.uint8(255), np.int8, False, 127),
        (np.int8(127), np.uint8, False, 254),
        (np.int8(-1), np.uint8, True, 0),
        (np.uint8(255), np.float32, False, 1.0),
        (np.uint16(65535), np.float64, False, 1.0),
        (np.float32(1.0), np.uint8, False, 255),
        (np.float32(0.5), np.uint8, False, 127),
        (np.float32(2.0), np.uint8, True, 255),
        (np.float32(-2.0), np.uint8, True, 0),
        (np.float32(2.0), np.int32, True, 2147483520),  # the largest float32 below 2**31
        (np.float32(0.25), np.float64, False, 0.25),
        (np.uint8(7), np.uint8, False, 7),
    ],
)
def test_convert_image_dtype(value, dtype, saturate, expected):
    result = convert_image_dtype(np.full((1, 1, 1), value), dtype, saturate)
    assert result.dtype == dtype
    assert result.ravel().tolist() == [expected]


@given(hnp.arrays(np.uint8, 16))
def test_there_and_back(values):
    for dtype in (np.uint16, np.float32, np.float64):
        np.testing.assert_array_equal(convert_image_dtype(convert_image_dtype(values, dtype), np.uint8), values)


def test_convert_image_dtype_refuses_bool():
    with pytest.raises(InvalidTypeError, match="got bool to uint8"):
        convert_image_dtype(np.array([True]), np.uint8)


def test_shape_rules():
    text = TensorSpec((), bytes)
    assert rules.decoded(text, channels=3) == TensorSpec((None, None, 3), np.uint8)
    assert rules.decoded(text, channels=0, dtype=np.uint16) == TensorSpec((None, None, None), np.uint16)
    assert rules.decoded_any(text, channels=3, dtype=np.uint8, expand_animations=True) == TensorSpec(
        (None, None, 3), np.uint8
    )  # presumed to be still
    still = rules.decoded_any(text, channels=1, dtype=np.uint8, expand_animations=False)
    assert still == TensorSpec((None, None, 1), np.uint8)
    with pytest.raises(NotTraceable):
        rules.decoded(TensorSpec((3,), np.uint8), channels=3)


def test_float16_saturates_at_its_own_limits():
    image = np.array([0, 0.5, 2, -1, 60000], np.float16)
    wide = convert_image_dtype(image[1:], np.int64, saturate=True)
    np.testing.assert_array_equal(wide, [65504, 65504, -65504, 65504])  # as TensorFlow; more does not fit float16
    np.testing.assert_array_equal(convert_image_dtype(image, np.uint8, saturate=True), [0, 127, 255, 0, 255])
