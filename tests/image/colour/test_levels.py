"""What RandAugment needs, beside PIL's definitions written out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.image.colour.pictures import batches

from penstock.image import adjust_sharpness, autocontrast, equalize, invert, posterize, solarize

LEVELS = batches(dtypes=(np.uint8,))


@given(LEVELS, st.integers(0, 8), st.floats(0, 256))
def test_each_value_by_itself(images, bits, threshold):
    np.testing.assert_array_equal(invert(images), 255 - images)
    np.testing.assert_array_equal(posterize(images, bits), images.astype(int) >> (8 - bits) << (8 - bits))
    np.testing.assert_array_equal(solarize(images, threshold), np.where(images >= threshold, 255 - images, images))


def test_floats():
    image = np.array([[[0.25], [0.75]]], np.float32)
    assert invert(image).ravel().tolist() == [0.75, 0.25]
    assert solarize(image, 0.5).ravel().tolist() == [0.25, 0.25]
    assert invert(image).dtype == solarize(image, 1).dtype == np.float32


@given(LEVELS)
def test_equalize_is_pils(images):
    def of_channel(channel):
        histogram = np.bincount(channel.ravel(), minlength=256).tolist()
        present = [count for count in histogram if count]
        step = (sum(present) - present[-1]) // 255
        if not step:
            return channel
        table, total = [], step // 2
        for count in histogram:
            table.append(min(total // step, 255))
            total += count
        return np.array(table, np.uint8)[channel]

    expected = [np.stack([of_channel(image[..., c]) for c in range(image.shape[-1])], -1) for image in images]
    np.testing.assert_array_equal(equalize(images), np.stack(expected))


def test_equalize_spreads_a_narrow_picture():
    image = np.random.default_rng(0).normal(100, 5, (64, 64, 3)).clip(0, 255).astype(np.uint8)
    equal = equalize(image)
    assert equal.min() < 5
    assert equal.max() > 250


@given(LEVELS)
def test_autocontrast_spans_all_levels(images):
    stretched = autocontrast(images)
    low, high = images.min(axis=(1, 2)), images.max(axis=(1, 2))
    flat = low == high
    assert (stretched.min(axis=(1, 2))[~flat] == 0).all()
    assert (stretched.max(axis=(1, 2))[~flat] >= 254).all()  # 255 / span * span may fall short of 255
    np.testing.assert_array_equal(stretched.min(axis=(1, 2))[flat], low[flat])
    exact = (images - low[:, None, None].astype(float)) * 255 / np.maximum(high - low, 1)[:, None, None]
    np.testing.assert_allclose(np.where(flat[:, None, None], images, exact), stretched, atol=1.001)


@given(LEVELS, st.sampled_from([0.0, 0.1, 0.5, 0.7, 1.0, 1.7, 2.0]))
def test_sharpness_leaves_the_border_and_small_images(images, factor):
    result = adjust_sharpness(images, factor)
    for edge in (np.s_[:, 0], np.s_[:, -1], np.s_[:, :, 0], np.s_[:, :, -1]):
        np.testing.assert_array_equal(result[edge], images[edge])
    if min(images.shape[1:3]) < 3:
        np.testing.assert_array_equal(result, images)
    elif factor == 0:
        padded = np.lib.stride_tricks.sliding_window_view(images.astype(float), (3, 3), axis=(1, 2))
        smooth = (padded.sum(axis=(-1, -2)) + 4.0 * images[:, 1:-1, 1:-1]) / 13
        np.testing.assert_array_equal(result[:, 1:-1, 1:-1], np.rint(smooth))


@pytest.mark.parametrize("factor", np.linspace(0.1, 2.9, 15).tolist())
def test_sharpness_leaves_what_is_flat(factor):
    levels = np.broadcast_to(np.arange(256, dtype=np.uint8)[:, None, None, None], (256, 5, 4, 3))
    np.testing.assert_array_equal(adjust_sharpness(levels, factor), levels)


def test_sharp_floats_stay_between_0_and_1():
    image = np.random.default_rng(1).random((9, 9, 3), dtype=np.float32)
    result = adjust_sharpness(image, 3.0)
    assert result.min() == 0
    assert result.max() == 1
    assert result.dtype == np.float32
