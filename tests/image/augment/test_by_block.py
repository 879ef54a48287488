"""In a data set they run a Block at a time, give what they give element by element, and know their shapes."""

import numpy as np
import pytest
from tests.image import by_block

import penstock as ps
from penstock.block.column import DenseColumn

image = ps.image

FUNCTIONS = {
    "cutout": lambda x: image.cutout(x, (4, 2), (3, 3), constant_values=1),
    "random_cutout": lambda x: image.random_cutout(x, 4),
    "random_erasing": lambda x: image.random_erasing(x, 0.7, value="random"),
    "random_resized_crop": lambda x: image.random_resized_crop(x, (5, 4)),
    "random_resized_crop nearest": lambda x: image.random_resized_crop(x, (5, 4), method="nearest"),
    "rand_augment": lambda x: image.rand_augment(x, magnitude=20),
    "trivial_augment": lambda x: image.trivial_augment(x, fill_value=9),
    "seeded": lambda x: image.random_cutout(image.rand_augment(x, seed=1), 2, seed=2),
}


def images(rows=6):
    return np.random.default_rng(1).integers(0, 256, (rows, 9, 11, 3), np.uint8)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_by_block_it_is_what_it_is_by_element(name):
    by_block.result_of_a_block(FUNCTIONS[name], DenseColumn(images()))
    by_block.assert_same_by_block_and_by_element(FUNCTIONS[name], images())


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("known", [(9, 11, 3), (None, None, 3), (2, None, 11, 3)])
def test_shapes_are_known_before_a_pass(name, known):
    by_block.assert_shape_is_known(FUNCTIONS[name], known)


CROP = {"size": (5, 4), "scale": (0.2, 0.9), "ratio": (0.8, 1.2), "method": "bilinear", "antialias": False}
LOOK = {"interpolation": "nearest", "fill_value": None}
RANDOM = {
    "image.random_cutout": {"mask_size": 3, "constant_values": 0},
    "image.random_erasing": {"probability": 0.9, "scale": (0.1, 0.3), "ratio": (0.5, 2), "value": "random"},
    "image.random_resized_crop": CROP,
    "image.rand_augment": {"num_ops": 2, "magnitude": 20, "num_magnitude_bins": 31, **LOOK},
    "image.trivial_augment": {"num_magnitude_bins": 31, **LOOK},
}


@pytest.mark.parametrize("name", RANDOM)
def test_many_elements_draw_at_once_what_each_draws(name):
    by_block.results_of_one_by_one(name, RANDOM[name], images(30))


def test_what_differs_between_images_of_a_batch_is_not_taken_for_a_block():
    by_block.assert_numbers_of_a_batch_are_for_batches(lambda x: image.cutout(x, 2, [[1, 1]] * 6), images())


def test_workers_do_not_matter():
    def augmented(x):
        return image.random_erasing(image.trivial_augment(image.rand_augment(x)), value="random")

    ds = ps.Dataset.from_tensor_slices(images(40))
    plain = list(ds.map(augmented).iterator(epoch=3))
    np.testing.assert_array_equal(plain, list(ds.map(augmented, num_parallel_calls=3).iterator(epoch=3)))
    assert len({one.tobytes() for one in plain}) == 40
