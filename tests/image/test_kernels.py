"""The compiled kernels give the reference's numbers to the last bit, and refuse what would read out of bounds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.image.photos import photo

from penstock.errors import DataLossError
from penstock.image import decode_jpeg, encode_jpeg, flip_left_right, flip_up_down, resize
from penstock.image.jpeg.block import JpegBlock
from penstock.image.jpeg.libjpeg import Scratch, decode_into
from penstock.image.kernels import BAD_ARGUMENT, DIVIDE, MULTIPLY
from penstock.image.resizing import reference
from penstock.image.resizing.reference import bilinear_taps
from penstock.image.resizing.sampling import resize_bilinear
from penstock.native.library import Kernels

SIDES = st.integers(1, 40)


@st.composite
def images(draw, max_count=3):
    shape = (draw(st.integers(1, max_count)), draw(SIDES), draw(SIDES), draw(st.sampled_from([1, 2, 3, 4, 5])))
    values = np.random.default_rng(draw(st.integers(0, 1000))).uniform(-300, 300, shape).astype(np.float32)
    return values if draw(st.booleans()) else (np.abs(values) % 256).astype(np.uint8)


@given(images(), SIDES, SIDES)
def test_native_equals_reference(image, height, width):
    taps = bilinear_taps(image.shape[1], height), bilinear_taps(image.shape[2], width)
    expected = reference.resize_bilinear(image, *taps)
    np.testing.assert_array_equal(resize_bilinear(image, height, width), expected)


@given(SIDES, SIDES, st.sampled_from([1, 3, 4]), st.sampled_from([np.float32, np.uint8]))
def test_nothing_is_written_beside_the_result(height, width, channels, dtype):
    """Vectors are four values wide: their surplus must stay inside."""
    image = photo(9, 7, channels).astype(dtype)
    image.flags.writeable = False
    size = height * width * channels
    memory = np.full(size + 32, 77, np.float32)
    taps = bilinear_taps(9, height), bilinear_taps(7, width)
    assert native.resize_bilinear(image.reshape(-1), 9, 7, channels, *taps[0], *taps[1], memory[16 : 16 + size]) == 0
    assert (memory[:16] == 77).all()
    assert (memory[16 + size :] == 77).all()
    np.testing.assert_array_equal(memory[16 : 16 + size], resize(image, (height, width)).reshape(-1))


PIXELS = np.zeros(75, np.uint8)
native = Kernels("penstock.image.resizing.bilinear_native").loaded()


@pytest.mark.parametrize("which", range(4))
@pytest.mark.parametrize("wrong", [-1, 5])
def test_a_tap_outside_the_source_is_refused_unwritten(which, wrong):
    y, x = bilinear_taps(5, 4), bilinear_taps(5, 4)
    indices = [y.low.copy(), y.high.copy(), x.low.copy(), x.high.copy()]
    indices[which][2] = wrong
    dst = np.full(4 * 4 * 3, 7, np.float32)
    status = native.resize_bilinear(
        PIXELS,
        *(5, 5, 3),
        *(indices[0], indices[1], y.weight),
        *(indices[2], indices[3], x.weight),
        dst,
    )
    assert status == BAD_ARGUMENT
    assert (dst == 7).all()


@pytest.mark.parametrize(("height", "width"), [(5, 6), (0, 5), (-1, 5), (1 << 40, 1 << 40)])
def test_sizes_that_do_not_fit_the_source_are_refused(height, width):
    y, x = bilinear_taps(5, 4), bilinear_taps(5, 4)
    dst = np.full(4 * 4 * 3, 7, np.float32)
    args = (PIXELS, height, width, 3, *y, *x, dst)
    assert native.resize_bilinear(*args) == BAD_ARGUMENT
    assert (dst == 7).all()


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("scaling", [(), [(DIVIDE, (255.0,) * 3)], [(MULTIPLY, (0.5,) * 3)]])
def test_decode_resize_equals_the_steps(channels, scaling):
    contents = encode_jpeg(photo(60, 81))
    batch = np.full((3, 32, 24, channels), -1, np.float32)
    flips = {"flip_left_right": "before", "flip_up_down": "after"}
    assert JpegBlock([contents]).decode_resize(batch[1:2], last=scaling, **flips) == {}
    expected = flip_up_down(resize(flip_left_right(decode_jpeg(contents, channels)), (32, 24)))
    for code, numbers in scaling:
        expected = expected / numbers[0] if code == DIVIDE else expected * numbers[0]
    np.testing.assert_array_equal(batch[1], expected)
    assert (batch[[0, 2]] == -1).all()


def test_dividing_is_not_multiplying_by_the_reciprocal():
    block = JpegBlock([encode_jpeg(photo(16, 16))])
    divided, multiplied, plain = np.empty((3, 1, 16, 16, 3), np.float32)
    for out, last in ((divided, [(DIVIDE, (255.0,) * 3)]), (multiplied, [(MULTIPLY, (1 / 255,) * 3)]), (plain, [])):
        assert block.decode_resize(out, last=last) == {}
    np.testing.assert_array_equal(divided, plain / 255.0)
    np.testing.assert_array_equal(multiplied, plain * (1 / 255))
    assert (divided != multiplied).any()


def test_flips_before_and_after_differ_in_the_last_bits_only():
    block = JpegBlock([encode_jpeg(photo(31, 47))])
    before, after = np.empty((2, 1, 20, 20, 3), np.float32)
    block.decode_resize(before, flip_left_right="before")
    block.decode_resize(after, flip_left_right="after")
    np.testing.assert_allclose(before, after, atol=4e-4)


def test_decode_resize_leaves_the_place_alone_when_the_file_is_cut():
    contents = encode_jpeg(photo(60, 81))
    dst = np.full((1, 32, 24, 3), -1, np.float32)
    (failed,) = JpegBlock([contents[:-100]]).decode_resize(dst).values()
    assert isinstance(failed, DataLossError)
    assert "cut short" in str(failed)
    assert (dst == -1).all()


def test_scratch_serves_pictures_of_any_size_in_any_order():
    scratch = Scratch()
    for height, width in [(8, 8), (60, 81), (5, 3)]:
        contents = encode_jpeg(photo(height, width))
        image = decode_into(memoryview(contents), scratch.of, 3)
        np.testing.assert_array_equal(image, decode_jpeg(contents))
    assert scratch.of(1).size >= 60 * 81 * 3


@pytest.mark.parametrize("method", ["bilinear", "nearest", "bicubic", "area"])
def test_an_image_at_an_odd_address(method):
    """As slices of a file's bytes may be."""
    image = np.random.default_rng(0).random((7, 9, 3), np.float32)
    odd = np.ndarray(image.shape, np.float32, np.zeros(image.nbytes + 1, np.uint8), offset=1)
    odd[...] = image
    assert not odd.flags.aligned
    found, wanted = (resize(each, (4, 5), method=method) for each in (odd, image))
    np.testing.assert_array_equal(found, wanted)
