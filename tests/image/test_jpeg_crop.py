"""decode_and_crop_jpeg: the part of what decode_jpeg gives, and what it refuses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.image.jpegs import files, jpeg

import penstock as ps
from penstock.errors import DataLossError, InvalidArgumentError
from penstock.image import decode_and_crop_jpeg, decode_jpeg, encode_png

CONTENTS = jpeg("420", 40, 60)


@given(files(), st.data(), st.sampled_from([0, 1, 3]), st.sampled_from([1, 2, 8]), st.booleans())
def test_equals_decode_then_crop(contents, data, channels, ratio, fancy_upscaling):
    options = {"channels": channels, "ratio": ratio, "fancy_upscaling": fancy_upscaling}
    whole = decode_jpeg(contents, **options)
    y, x = data.draw(st.integers(0, whole.shape[0] - 1)), data.draw(st.integers(0, whole.shape[1] - 1))
    height, width = data.draw(st.integers(1, whole.shape[0] - y)), data.draw(st.integers(1, whole.shape[1] - x))
    part = decode_and_crop_jpeg(contents, [y, x, height, width], **options)
    np.testing.assert_array_equal(part, whole[y : y + height, x : x + width])
    assert part.flags.writeable


@pytest.mark.parametrize("window", [(-1, 0, 4, 4), (0, 0, 0, 4), (37, 0, 4, 4), (0, 57, 4, 4)])
def test_a_window_outside_of_the_picture(window):
    with pytest.raises(InvalidArgumentError, match="does not lie inside the image of 40 rows and 60 columns"):
        decode_and_crop_jpeg(CONTENTS, window)


@pytest.mark.parametrize("window", [(0, 0, 4), 7, (0, 0, 4.5, 4), "abcd", None])
def test_what_is_no_window(window):
    with pytest.raises(InvalidArgumentError, match="must be 4 integers, y, x, height and width; got"):
        decode_and_crop_jpeg(CONTENTS, window)


def test_damage_below_the_window_is_an_error_unless_accepted():
    cut = CONTENTS[:-200]
    with pytest.raises(DataLossError, match="cut short"):
        decode_and_crop_jpeg(cut, (0, 0, 4, 4))
    part = decode_and_crop_jpeg(cut, (0, 0, 4, 4), try_recover_truncated=True)
    np.testing.assert_array_equal(part, decode_jpeg(CONTENTS)[:4, :4])


def test_another_format():
    with pytest.raises(InvalidArgumentError, match="not a JPEG but PNG"):
        decode_and_crop_jpeg(encode_png(np.zeros((8, 8, 3), np.uint8)), (0, 0, 4, 4))


def test_in_a_pipeline():
    ds = ps.Dataset.from_tensor_slices([CONTENTS] * 3).map(lambda x: decode_and_crop_jpeg(x, [3, 4, 5, 6], channels=3))
    for part in ds:
        np.testing.assert_array_equal(part, decode_jpeg(CONTENTS)[3:8, 4:10])
