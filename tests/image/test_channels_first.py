"""Images whose channels come first are refused by what moves pixels: its axes would be the wrong ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock.errors import InvalidArgumentError

image = ps.image
ONE = {
    "resize": lambda x: image.resize(x, (8, 8)),
    "resize, nearest": lambda x: image.resize(x, (8, 8), method="nearest"),
    "resize_with_pad": lambda x: image.resize_with_pad(x, 8, 8),
    "resize_with_crop_or_pad": lambda x: image.resize_with_crop_or_pad(x, 8, 8),
    "crop_to_bounding_box": lambda x: image.crop_to_bounding_box(x, 0, 0, 1, 1),
    "pad_to_bounding_box": lambda x: image.pad_to_bounding_box(x, 0, 0, 99, 99),
    "central_crop": lambda x: image.central_crop(x, 0.5),
    "random_resized_crop": lambda x: image.random_resized_crop(x, (8, 8)),
    "flip_left_right": image.flip_left_right,
    "flip_up_down": image.flip_up_down,
    "random_flip_left_right": image.random_flip_left_right,
    "random_flip_up_down": image.random_flip_up_down,
    "rot90": image.rot90,
    "rotate": lambda x: image.rotate(x, 30.0),
    "transpose": image.transpose,
    "translate": lambda x: image.translate(x, (1, 1)),
    "shear_x": lambda x: image.shear_x(x, 0.1),
    "random_rotate": lambda x: image.random_rotate(x, 10.0),
    "random_cutout": lambda x: image.random_cutout(x, 2),
    "random_erasing": image.random_erasing,
    "adjust_contrast": lambda x: image.adjust_contrast(x, 2.0),
    "rand_augment": image.rand_augment,
}
TOLD = r"needs an image with its channels last.*channels come first\.\n  .*np\.moveaxis\(image, -3, -1\)"
SHAPES = [(3, 24, 24), (1, 28, 28), (4, 9, 12)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("operation", ONE)
def test_it_is_refused_with_what_to_write(operation, shape):
    for given_shape in (shape, (2, *shape)):
        with pytest.raises(InvalidArgumentError, match=TOLD):
            ONE[operation](np.zeros(given_shape, np.uint8))


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 4))
def test_what_has_its_channels_last_is_taken(height, width, channels):
    pixels = np.zeros((height, width, channels), np.uint8)
    assert image.flip_left_right(pixels).shape == pixels.shape
    assert image.resize(pixels, (2, 5)).shape == (2, 5, channels)
    moved = np.moveaxis(np.moveaxis(pixels, -1, -3), -3, -1)  # as the error says
    assert image.rot90(moved).shape == (width, height, channels)


@pytest.mark.parametrize("executor", ["inline", "thread"])
def test_elements_of_a_pipeline_are_refused_one_by_one(executor):
    images = [np.zeros((24, 24, 3), np.uint8), np.zeros((3, 24, 24), np.uint8)] * 4
    ds = ps.Dataset.from_list(images).map(lambda x: image.flip_left_right(image.resize(x, (8, 8))) / 255.0)
    assert len([*ds.ignore_errors().iterator(executor=executor)]) == 4
