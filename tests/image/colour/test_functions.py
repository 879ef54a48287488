"""What the colour functions promise: dtypes, batches, what stays, what comes back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.image.colour.pictures import batches

import penstock as ps
from penstock.image import (
    adjust_brightness,
    adjust_contrast,
    adjust_gamma,
    adjust_hue,
    adjust_saturation,
    adjust_sharpness,
    autocontrast,
    convert_image_dtype,
    equalize,
    grayscale_to_rgb,
    hsv_to_rgb,
    invert,
    normalize,
    per_image_standardization,
    posterize,
    rgb_to_grayscale,
    rgb_to_hsv,
    solarize,
)

SAME_SHAPE = [
    (adjust_brightness, (0.2,)),
    (adjust_contrast, (1.5,)),
    (adjust_saturation, (1.5,)),
    (adjust_hue, (0.3,)),
    (adjust_gamma, (2.2,)),
]
OF_LEVELS = [
    (invert, ()),
    (posterize, (3,)),
    (solarize, (100,)),
    (autocontrast, ()),
    (equalize, ()),
    (adjust_sharpness, (2.0,)),
]
TO_FLOAT = [(per_image_standardization, ()), (normalize, ([1, 2, 3], 2))]
COLOUR_NAMES = [function.__name__ for function, _ in SAME_SHAPE + OF_LEVELS + TO_FLOAT]


@pytest.mark.parametrize(("function", "arguments"), SAME_SHAPE + OF_LEVELS + TO_FLOAT, ids=COLOUR_NAMES)
@given(images=batches(channels=(3,), dtypes=(np.uint8,)))
def test_a_batch_is_each_of_its_images(function, arguments, images):
    before = images.copy()
    whole = function(images, *arguments)
    np.testing.assert_array_equal(whole, np.stack([function(image, *arguments) for image in images]))
    np.testing.assert_array_equal(images, before)
    assert whole.shape == images.shape
    assert whole.dtype == (np.float32 if (function, arguments) in TO_FLOAT else np.uint8)


@pytest.mark.parametrize(("function", "arguments"), SAME_SHAPE + OF_LEVELS + TO_FLOAT, ids=COLOUR_NAMES)
def test_no_images_and_no_channels(function, arguments):
    assert function(np.zeros((0, 4, 5, 3), np.uint8), *arguments).shape == (0, 4, 5, 3)
    if function is not per_image_standardization:
        assert function(np.zeros((0, 5, 3), np.uint8), *arguments).shape == (0, 5, 3)


@pytest.mark.parametrize(("function", "arguments"), SAME_SHAPE, ids=[function.__name__ for function, _ in SAME_SHAPE])
@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.int64, np.float16, np.float64, ">f4", ">i2"])
def test_other_types_go_through_float32(function, arguments, dtype):
    dtype = np.dtype(dtype)
    values = np.random.default_rng(1).random((4, 5, 3))
    image = (values * np.iinfo(dtype).max).astype(dtype) if dtype.kind in "iu" else values.astype(dtype)
    result = function(image, *arguments)
    expected = function(convert_image_dtype(image, np.float32), *arguments)
    np.testing.assert_array_equal(result, convert_image_dtype(expected, dtype, saturate=True))
    assert result.dtype == dtype


@pytest.mark.parametrize(("function", "arguments"), SAME_SHAPE, ids=[function.__name__ for function, _ in SAME_SHAPE])
def test_a_number_for_each_image_of_a_batch(function, arguments):
    if function is adjust_gamma:
        with pytest.raises(ps.errors.InvalidTypeError, match="gamma must be one number"):
            function(np.zeros((2, 4, 5, 3)), [1, 2])
        return
    images = np.random.default_rng(2).integers(0, 256, (3, 4, 5, 3), dtype=np.uint8)
    numbers = [0.1, 0.7, -0.4]
    result = function(images, np.array(numbers))
    np.testing.assert_array_equal(
        result, np.stack([function(image, n) for image, n in zip(images, numbers, strict=True)])
    )
    with pytest.raises(
        ps.errors.InvalidArgumentError, match=r"one for each image of a batch, got 2 for \(3, 4, 5, 3\)"
    ):
        function(images, [0.1, 0.2])
    with pytest.raises(ps.errors.InvalidArgumentError, match=r"got 1 for \(4, 5, 3\)"):
        function(images[0], [0.1])


@given(batches(channels=(3,), dtypes=(np.uint8,)))
def test_what_changes_nothing(images):
    for unchanged in (adjust_brightness(images, 0), adjust_gamma(images), adjust_sharpness(images, 1)):
        np.testing.assert_array_equal(unchanged, images)
    for rounded in (adjust_saturation(images, 1), adjust_hue(images, 0), adjust_contrast(images, 1)):
        assert np.abs(rounded.astype(int) - images).max() <= 1  # truncated on the way back
    np.testing.assert_array_equal(posterize(images, 8), images)
    np.testing.assert_array_equal(solarize(images, 256), images)
    np.testing.assert_array_equal(invert(invert(images)), images)


@given(batches(channels=(3,), dtypes=(np.float32,)))
def test_hue_keeps_the_largest_and_the_smallest_value(images):
    for delta in (-1, -0.3, 0, 0.25, 1):
        turned = adjust_hue(images, delta)
        np.testing.assert_array_equal(turned.max(-1), images.max(-1))
        np.testing.assert_array_equal(turned.min(-1), images.min(-1))


@given(batches(channels=(3,), dtypes=(np.uint8,)))
def test_hsv_there_and_back(images):
    floats = convert_image_dtype(images, np.float32)
    np.testing.assert_allclose(hsv_to_rgb(rgb_to_hsv(floats)), floats, atol=1e-6)
    np.testing.assert_allclose(hsv_to_rgb(rgb_to_hsv(floats.astype(np.float64))), floats, atol=1e-12)
    assert rgb_to_hsv(floats.astype(np.float64)).dtype == np.float64


def test_no_saturation_is_grey_and_a_hue_that_rounds_to_the_full_circle_stays_red():
    image = np.random.default_rng(3).integers(0, 256, (9, 9, 3), dtype=np.uint8)
    grey = adjust_saturation(image, 0)
    assert (grey == grey[..., :1]).all()
    red = np.array([[[1, 0, 1e-9]]], np.float32)
    np.testing.assert_array_equal(adjust_saturation(red, 1), [[[1, 0, 0]]])


def test_a_pixel_without_any_range_to_speak_of_gives_no_nan():
    image = np.array([[[1e-40, 0, 0], [0, 1e-40, 0], [0, 0, 1e-40], [0, 0, 0], [-1, -2, -3]]], np.float32)
    for result in (adjust_saturation(image, 2), adjust_hue(image, 0.4), adjust_contrast(image, 2)):
        assert np.isfinite(result).all()


def test_integers_stop_at_their_limits_and_floats_do_not():
    image = np.array([[[250, 5, 100]]], np.uint8)
    assert adjust_brightness(image, 0.5).tolist() == [[[255, 132, 227]]]
    assert adjust_brightness(image, -0.5).tolist() == [[[122, 0, 0]]]
    assert adjust_brightness(np.float32([[[0.9]]]), 0.5).item() == pytest.approx(1.4)
    assert adjust_brightness(np.array([[[32767]]], np.int16), 0.5).item() == 32767


def test_standardised_images():
    images = np.random.default_rng(4).integers(0, 256, (3, 20, 30, 3), dtype=np.uint8)
    for values in (images, images.astype(np.float32), images.astype(np.int32)):
        result = per_image_standardization(values)
        np.testing.assert_allclose(result.mean(axis=(1, 2, 3)), 0, atol=1e-6)
        np.testing.assert_allclose(result.std(axis=(1, 2, 3)), 1, atol=1e-5)
    np.testing.assert_array_equal(per_image_standardization(np.full((4, 4, 3), 9.5, np.float32)), 0)
    far = np.float32(1e6) + np.arange(12, dtype=np.float32).reshape(2, 2, 3)  # where float32 sums would be lost
    np.testing.assert_allclose(per_image_standardization(far), per_image_standardization(far - np.float32(1e6)))


@given(batches(), st.integers(0, 100))
def test_normalize_is_numpys_arithmetic(images, seed):
    rng = np.random.default_rng(seed)
    mean, std = rng.random(images.shape[-1]), rng.random(images.shape[-1]) + 0.1
    expected = (images.astype(np.float32) - mean.astype(np.float32)) / std.astype(np.float32)
    np.testing.assert_array_equal(normalize(images, mean, std), expected)
    np.testing.assert_array_equal(normalize(images, 0.5, [2.0]), (images.astype(np.float32) - np.float32(0.5)) / 2)


def test_grey_and_back():
    image = np.random.default_rng(5).integers(0, 256, (5, 6, 3), dtype=np.uint8)
    grey = rgb_to_grayscale(image)
    assert grey.shape == (5, 6, 1)
    np.testing.assert_array_equal(grayscale_to_rgb(grey), np.concatenate([grey] * 3, axis=-1))
    np.testing.assert_allclose(grey[..., 0], image @ [0.2989, 0.587, 0.114], atol=1.01)
    assert grayscale_to_rgb(np.ones((2, 2, 1), bool)).dtype == bool
    assert rgb_to_grayscale(image[None] / 255).shape == (1, 5, 6, 1)
