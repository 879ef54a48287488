"""In a data set they run a Block at a time, give what they give element by element, and know their shapes."""

import numpy as np
import pytest

import penstock as ps
from penstock.block.block import Block
from penstock.block.column import DenseColumn
from penstock.block.numbers import Numbers
from penstock.block.spec import TensorSpec
from penstock.block.structure import flatten
from penstock.physical.vectorise import Vectoriser
from penstock.trace.drawing import Draws
from penstock.trace.lift import RANDOM_OPS
from penstock.trace.traced import trace

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
    function, data = FUNCTIONS[name], images()

    def opaque(x):
        print(end="")
        return function(x)

    vectoriser = Vectoriser(function)
    assert vectoriser.run(Block.single(DenseColumn(data)), None, Draws(1, Numbers(7))) is not None
    assert vectoriser.verdict.startswith("by Block: image."), vectoriser.verdict
    by_block = list(ps.Dataset.from_tensor_slices(data).map(function).iterator(epoch=1))
    by_element = list(ps.Dataset.from_tensor_slices(data).map(opaque).iterator(epoch=1))
    np.testing.assert_array_equal(by_block, by_element)
    assert by_block[0].dtype == by_element[0].dtype


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("known", [(9, 11, 3), (None, None, 3), (2, None, 11, 3)])
def test_shapes_are_known_before_a_pass(name, known):
    value = np.zeros([9 if size is None else size for size in known], np.uint8)
    graph = trace(FUNCTIONS[name], flatten(value)[1], [TensorSpec(known, np.uint8)]).graph
    assert graph is not None
    spec = graph.spec_of(graph.outputs[0])
    result = FUNCTIONS[name](value)
    assert spec.admits(result)
    assert None in known or spec.shape == result.shape


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
    """`sample` of an array of keys, and the deterministic function of a batch."""
    op, params, data = RANDOM_OPS[name], RANDOM[name], images(30)
    keys = np.random.default_rng(2).integers(0, 2**64, 30, dtype=np.uint64)
    at_once = op.becomes(data, **op.sample(keys, data.shape[1:], **params))
    one_by_one = [
        op.becomes(value, **op.sample(int(key), value.shape, **params)) for value, key in zip(data, keys, strict=True)
    ]
    np.testing.assert_array_equal(at_once, one_by_one)


def test_what_differs_between_images_of_a_batch_is_not_taken_for_a_block():
    offsets = [[1, 1]] * 6

    def function(x):
        return image.cutout(x, 2, offsets)

    with pytest.raises(ps.errors.InvalidArgumentError, match=r"for images of shape \(9, 11, 3\)"):
        list(ps.Dataset.from_tensor_slices(images()).map(function))
    batch = next(iter(ps.Dataset.from_tensor_slices(images()).batch(6).map(function)))
    np.testing.assert_array_equal(batch, function(images()))


def test_workers_do_not_matter():
    def augmented(x):
        return image.random_erasing(image.trivial_augment(image.rand_augment(x)), value="random")

    ds = ps.Dataset.from_tensor_slices(images(40))
    plain = list(ds.map(augmented).iterator(epoch=3))
    np.testing.assert_array_equal(plain, list(ds.map(augmented, num_parallel_calls=3).iterator(epoch=3)))
    assert len({one.tobytes() for one in plain}) == 40
