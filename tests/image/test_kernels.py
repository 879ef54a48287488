"""The compiled kernels give the reference's numbers to the last bit, and refuse what would read out of bounds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.image.photos import photo

from penstock.errors import DataLossError, InvalidArgumentError
from penstock.image import cast, decode_jpeg, encode_jpeg, flip_left_right, flip_up_down, resize
from penstock.image.jpeg.block import JpegBlock
from penstock.image.jpeg.libjpeg import Scratch, decode_into
from penstock.image.kernels import BAD_ARGUMENT
from penstock.image.resizing import reference
from penstock.image.resizing.reference import bilinear_taps
from penstock.image.resizing.sampling import resize_bilinear_into
from penstock.native.library import Kernels

SIDES = st.integers(1, 40)
FLIPS = st.sampled_from(["", "before", "after"])


@st.composite
def images(draw, max_count=3):
    shape = (draw(st.integers(1, max_count)), draw(SIDES), draw(SIDES), draw(st.sampled_from([1, 2, 3, 4, 5])))
    values = np.random.default_rng(draw(st.integers(0, 1000))).uniform(-300, 300, shape).astype(np.float32)
    return values if draw(st.booleans()) else (np.abs(values) % 256).astype(np.uint8)


@st.composite
def scalings(draw):
    kind = draw(st.sampled_from(["none", "multiply", "divide"]))
    value = draw(st.floats(2**-10, 2**10, width=32))
    return {} if kind == "none" else {kind: value}


def flipped(image, left_right, up_down, when):
    if left_right == when:
        image = flip_left_right(image)
    return flip_up_down(image) if up_down == when else image


@given(images(), SIDES, SIDES, scalings(), FLIPS, FLIPS)
def test_native_equals_reference(image, height, width, scaling, left_right, up_down):
    dst = np.full((len(image), height, width, image.shape[3]), np.nan, np.float32)
    resize_bilinear_into(image, dst, **scaling, flip_left_right=left_right, flip_up_down=up_down)
    source = flipped(image, left_right, up_down, "before")
    taps = bilinear_taps(source.shape[1], height), bilinear_taps(source.shape[2], width)
    expected = flipped(reference.resize_bilinear(source, *taps, **scaling), left_right, up_down, "after")
    np.testing.assert_array_equal(dst, expected)


@given(images(max_count=1), SIDES, SIDES)
def test_uint8_result_equals_the_cast(image, height, width):
    image = image[0].astype(np.uint8)
    dst = np.empty((height, width, image.shape[2]), np.uint8)
    resize_bilinear_into(image, dst)
    np.testing.assert_array_equal(dst, cast(resize(image, (height, width)), np.uint8))


@given(SIDES, SIDES, st.sampled_from([1, 3, 4]), st.sampled_from([np.float32, np.uint8]))
def test_nothing_is_written_beside_the_result(height, width, channels, dtype):
    """Vectors are four values wide: their surplus must stay inside."""
    image = photo(9, 7, channels)
    size = height * width * channels
    memory = np.full(size + 32, 77, dtype)
    resize_bilinear_into(image, memory[16 : 16 + size].reshape(height, width, channels))
    assert (memory[:16] == 77).all()
    assert (memory[16 + size :] == 77).all()


def test_dividing_is_not_multiplying_by_the_reciprocal():
    image = np.arange(256, dtype=np.uint8).reshape(16, 16, 1)
    divided, multiplied = np.empty((2, 16, 16, 1), np.float32)
    resize_bilinear_into(image, divided, divide=255.0)
    resize_bilinear_into(image, multiplied, multiply=1 / 255)
    np.testing.assert_array_equal(divided, resize(image, (16, 16)) / 255.0)
    np.testing.assert_array_equal(multiplied, resize(image, (16, 16)) * (1 / 255))
    assert (divided != multiplied).any()


def test_flips_before_and_after_differ_in_the_last_bits_only():
    image = photo(31, 47)
    before, after = np.empty((2, 20, 20, 3), np.float32)
    resize_bilinear_into(image, before, flip_left_right="before")
    resize_bilinear_into(image, after, flip_left_right="after")
    np.testing.assert_allclose(before, after, atol=4e-4)


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
        *(np.float32(1), False, dst),
    )
    assert status == BAD_ARGUMENT
    assert (dst == 7).all()


@pytest.mark.parametrize(("height", "width"), [(5, 6), (0, 5), (-1, 5), (1 << 40, 1 << 40)])
def test_sizes_that_do_not_fit_the_source_are_refused(height, width):
    y, x = bilinear_taps(5, 4), bilinear_taps(5, 4)
    dst = np.full(4 * 4 * 3, 7, np.float32)
    args = (PIXELS, height, width, 3, *y, *x, np.float32(1), False, dst)
    assert native.resize_bilinear(*args) == BAD_ARGUMENT
    assert (dst == 7).all()


@pytest.mark.parametrize(
    ("src", "dst", "scaling", "text"),
    [
        (np.zeros((4, 4, 3), np.uint8), np.zeros((2, 2, 1), np.float32), {}, r"\(4, 4, 3\); got \(2, 2, 1\)"),
        (np.zeros((4, 4, 3), np.int16), np.zeros((2, 2, 3), np.float32), {}, "got int16 and float32"),
        (np.zeros((4, 4, 3), np.uint8), np.zeros((2, 2, 3), np.uint8), {"divide": 2}, "no scaling"),
        (np.zeros((4, 4, 3), np.float32), np.zeros((2, 2, 3), np.uint8), {}, "needs a uint8 image"),
        (np.zeros((4, 4, 3), np.uint8), np.zeros((2, 2, 3), np.float32), {"divide": 2, "multiply": 3}, "got both"),
        (np.zeros((4, 4, 3), np.uint8), np.zeros((2, 4, 3), np.float32)[:, ::2], {}, "C-contiguous"),
        (np.zeros((0, 4, 3), np.uint8), np.zeros((2, 2, 3), np.float32), {}, "at least one pixel"),
    ],
)
def test_arguments_that_do_not_fit(src, dst, scaling, text):
    with pytest.raises(InvalidArgumentError, match=text):
        resize_bilinear_into(src, dst, **scaling)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("scaling", [{}, {"divide": 255.0}, {"multiply": 0.5}])
def test_decode_resize_equals_the_steps(channels, scaling):
    contents = encode_jpeg(photo(60, 81))
    batch = np.full((3, 32, 24, channels), -1, np.float32)
    flips = {"flip_left_right": "before", "flip_up_down": "after"}
    assert JpegBlock([contents]).decode_resize(batch[1:2], **scaling, **flips) == {}
    expected = flip_up_down(resize(flip_left_right(decode_jpeg(contents, channels)), (32, 24)))
    if "divide" in scaling:
        expected = expected / scaling["divide"]
    if "multiply" in scaling:
        expected = expected * scaling["multiply"]
    np.testing.assert_array_equal(batch[1], expected)
    assert (batch[[0, 2]] == -1).all()


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
