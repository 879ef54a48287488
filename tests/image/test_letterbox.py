"""resize_with_pad: TensorFlow's stored results, sizes, and the texts of its errors."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.image.photos import photo

import penstock as ps
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.image import resize, resize_with_pad
from penstock.image.resizing.resize import fitted

STORED = np.load(Path(__file__).parents[1] / "data" / "tensorflow" / "resize.npz")
SIDES = st.integers(1, 5000)


@pytest.mark.parametrize("name", [name for name in STORED.files if name.startswith("resize_with_pad/")])
def test_equals_tensorflow_to_the_last_bit(name):
    _, image, size, method, antialias = name.split("/")
    height, width = map(int, size.split("x"))
    result = resize_with_pad(STORED[f"in/{image}"], height, width, method, antialias == "1")
    assert result.dtype == STORED[name].dtype
    np.testing.assert_array_equal(result, STORED[name])


def test_wide_and_tall():
    wide = resize_with_pad(np.full((10, 20, 3), 5, np.uint8), 8, 8)
    assert wide.shape == (8, 8, 3)
    assert (wide[2:6] == 5).all()
    assert not wide[:2].any()
    assert not wide[6:].any()
    tall = resize_with_pad(np.full((20, 10, 3), 5, np.uint8), 8, 8)
    np.testing.assert_array_equal(tall, wide.transpose(1, 0, 2))


def test_a_size_of_the_same_ratio_is_a_resize():
    image = photo(30, 40)
    np.testing.assert_array_equal(resize_with_pad(image, 15, 20), resize(image, (15, 20)))


@given(SIDES, SIDES, SIDES, SIDES)
def test_what_is_fitted_stays_inside_and_keeps_its_ratio(height, width, target_height, target_width):
    size, before = fitted(height, width, (target_height, target_width))
    for side, start, target in zip(size, before, (target_height, target_width), strict=True):
        assert side >= 1
        assert start >= 0
        assert start + side <= target
    ratio = max(height / target_height, width / target_width)
    for side, whole in zip(size, (height, width), strict=True):
        assert max(whole / ratio - 1.01, 1) <= side + 1e-3 * side <= max(whole / ratio, 1) * 1.002


def test_a_thread_of_an_image_keeps_one_column():
    result = resize_with_pad(np.full((1000, 1, 3), 9, np.uint8), 10, 10)
    assert (result[:, 4] == 9).all()
    assert result.sum() == 10 * 3 * 9


def test_nearest_keeps_the_dtype_and_batches_are_images_one_by_one():
    batch = np.stack([photo(7, 9, seed=s) for s in range(3)])
    result = resize_with_pad(batch, 12, 6, "nearest")
    assert result.dtype == np.uint8
    for image, padded in zip(batch, result, strict=True):
        np.testing.assert_array_equal(padded, resize_with_pad(image, 12, 6, "nearest"))


def test_in_a_pipeline():
    images = np.stack([photo(7, 9, seed=s) for s in range(4)])
    ds = ps.Dataset.from_tensor_slices(images).map(lambda x: resize_with_pad(x, 6, 6)).batch(2)
    assert ds.element_spec.shape == (None, 6, 6, 3)
    np.testing.assert_array_equal(np.concatenate(list(ds)), resize_with_pad(images, 6, 6))


@pytest.mark.parametrize(
    ("image", "arguments", "kind", "text"),
    [
        (np.zeros((4, 4)), (2, 2), InvalidArgumentError, r"resize_with_pad needs shape \(height, width, channels\)"),
        (np.zeros((4, 4, 3)), (0, 2), InvalidArgumentError, r"resize_with_pad: size.*at least 1; got \(0, 2\)"),
        (np.zeros((4, 4, 3)), (2, 2.5), InvalidArgumentError, r"resize_with_pad: size.*two integers"),
        (np.zeros((4, 4, 3)), (2, 2, "cubic"), InvalidArgumentError, "resize_with_pad: method must be one of"),
        (np.zeros((0, 4, 3)), (2, 2), InvalidArgumentError, r"resize_with_pad: an image needs at least one pixel"),
        (b"\xff\xd8", (2, 2), InvalidTypeError, "resize_with_pad needs an image of numbers"),
    ],
)
def test_errors_teach(image, arguments, kind, text):
    with pytest.raises(kind, match=text):
        resize_with_pad(image, *arguments)
