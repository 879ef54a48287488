"""The compiled kernels give the reference's numbers to the last bit, for every kind of image."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.image.colour.pictures import batches

from penstock.image.colour import means, pixels, run
from penstock.image.colour import pixels as tables

FACTORS = st.floats(-3, 3, width=32)
TURNS = st.floats(-1, 1, width=32)


@pytest.fixture(scope="module", autouse=True)
def _kernels_are_there():
    for kernels in (run._PIXELS, run._MEANS):
        kernels.loaded()
        assert kernels.loaded() is not None


def same(result, expected):
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result, expected)


def each(reference, images, factors):
    return np.stack([reference(image, factor) for image, factor in zip(images, factors, strict=True)])


@given(batches(), FACTORS)
def test_brightness(images, delta):
    deltas = np.linspace(delta, -delta, len(images), dtype=np.float32)
    same(run.brightness(images, deltas), each(pixels.brightness, images, deltas))


@given(batches(channels=(3,)), FACTORS)
def test_saturation(images, factor):
    factors = np.linspace(factor, 1, len(images), dtype=np.float32)
    same(run.saturation(images, factors), each(pixels.saturation, images, factors))


@given(batches(channels=(3,)), TURNS)
def test_hue(images, delta):
    deltas = np.linspace(delta, -delta, len(images), dtype=np.float32)
    same(run.hue(images, deltas), each(pixels.hue, images, deltas))


@given(batches(), FACTORS)
def test_contrast(images, factor):
    factors = np.linspace(factor, 1, len(images), dtype=np.float32)
    same(run.contrast(images, factors), each(means.contrast, images, factors))


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize("channels", [1, 3, 5])
def test_sums_of_every_length_are_folded_alike(dtype, channels):
    """Three foldings in one pass leave rows without a partner at the end: which, depends on the count."""
    rng = np.random.default_rng(channels)
    for count in (*range(1, 90), 127, 128, 129, 1023, 1025):
        image = (rng.random((1, 1, count, channels)) * 255).astype(dtype)
        same(run.contrast(image, np.float32([0.5])), means.contrast(image[0], 0.5)[None])


def test_every_colour_of_the_cube():
    """All ties and orders of red, green and blue, and the limits."""
    levels = np.array([0, 1, 2, 84, 85, 127, 128, 170, 253, 254, 255], np.uint8)
    cube = np.stack(np.meshgrid(levels, levels, levels), axis=-1).reshape(1, -1, 11, 3)
    for images in (cube, cube.astype(np.float32) / np.float32(255)):
        for factor in np.float32([-1, 0, 0.5, 1, 1.5, 100]):
            same(run.saturation(images, factor[None]), pixels.saturation(images, factor))
        for delta in np.float32([-1, -0.5, -1 / 6, 0, 1e-9, 1 / 6, 1 / 3, 0.5, 1]):
            same(run.hue(images, delta[None]), pixels.hue(images, delta))


@given(batches(channels=(3,), dtypes=(np.float32,)))
def test_hsv(images):
    same(run.to_hsv(images), pixels.hsv_of(images))
    same(run.to_rgb(images), pixels.rgb_of(images))


@given(batches(channels=(3,)))
def test_grey(images):
    same(run.to_grey(images), pixels.grey_of(images))
    same(run.spread(images[..., :1]), images[..., :1].repeat(3, axis=-1))


@given(batches())
def test_standardise(images):
    same(run.standardise(images), means.standardised(images))


@pytest.mark.parametrize("count", [1, 1023, 1024, 1025, 5000])
def test_sums_in_lanes_of_every_length(count):
    images = np.random.default_rng(count).normal(3, 2, (2, 1, count, 1)).astype(np.float32)
    same(run.standardise(images), means.standardised(images))


@given(batches(), st.integers(0, 1000))
def test_normalise(images, seed):
    rng = np.random.default_rng(seed)
    mean = rng.normal(size=images.shape[-1]).astype(np.float32)
    std = rng.uniform(0.1, 3, images.shape[-1]).astype(np.float32)
    same(run.normalise(images, mean, std), means.normalised(images, mean, std))


@given(batches(dtypes=(np.uint8,)), st.integers(0, 1000))
def test_tables(images, seed):
    count, _, _, channels = images.shape
    entries = np.random.default_rng(seed).integers(0, 256, (count, channels, 256), dtype=np.uint8)
    same(run.look_up(images, entries), tables.looked_up(images, entries))
    same(run.look_up(images, entries[0, 0]), tables.looked_up(images, entries[0, 0]))
    same(run.count(images), tables.counted(images))


@given(batches(), st.floats(0, 3))
def test_sharpen(images, factor):
    same(run.sharpen_by(images, factor), pixels.sharpened(images, factor))


def readable(array):
    """Which cannot be written to, as those that the kernels are compiled for."""
    array.flags.writeable = False
    return array


@pytest.mark.parametrize("kernel", ["brightness", "saturation", "hue"])
def test_kernels_write_nothing_beside_what_fits(kernel):
    """One factor for one image, but memory for two: a call that does not fit is left alone."""
    native = run._PIXELS.loaded()
    dst = np.full(24, 7, np.uint8)
    factors = readable(np.ones(1, np.float32))
    getattr(native, kernel)(readable(np.zeros(24, np.uint8)), 4, 3, factors, dst)
    assert (dst == 7).all()
    getattr(native, kernel)(readable(np.zeros(12, np.uint8)), 4, 3, factors, dst)
    assert (dst[12:] == 7).all()


def test_contrast_without_factors_enough_writes_nothing():
    native = run._MEANS.loaded()
    dst = np.full(24, 7, np.uint8)
    for pixels_, factors in ((4, 1), (0, 1), (12, 0)):
        images, ones = readable(np.zeros(24, np.uint8)), readable(np.ones(factors, np.float32))
        native.contrast(images, pixels_, 3, ones, dst)
    assert (dst == 7).all()
