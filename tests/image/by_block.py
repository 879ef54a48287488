"""Checks of image functions in a data set: they run a Block at a time and know the shapes of their results."""

import re

import numpy as np
import pytest

import penstock as ps
from penstock.block.block import Block
from penstock.block.numbers import Numbers
from penstock.block.spec import TensorSpec
from penstock.block.structure import flatten
from penstock.physical.vectorise import Vectoriser
from penstock.trace.drawing import Draws
from penstock.trace.lift import RANDOM_OPS
from penstock.trace.traced import trace


def result_of_a_block(function, column):
    """The result of a function that runs on a whole column."""
    vectoriser = Vectoriser(function)
    found = vectoriser.run(Block.single(column), None, Draws(1, Numbers(7)))
    assert vectoriser.verdict.startswith("by Block: image."), vectoriser.verdict
    assert found is not None
    return found


def assert_same_by_block_and_by_element(function, images):
    def opaque(x):
        print(end="")
        return function(x)

    by_block = list(ps.Dataset.from_tensor_slices(images).map(function).iterator(epoch=1))
    by_element = list(ps.Dataset.from_tensor_slices(images).map(opaque).iterator(epoch=1))
    np.testing.assert_array_equal(by_block, by_element)
    assert by_block[0].dtype == by_element[0].dtype


def assert_shape_is_known(function, known):
    """The result of an image of this shape is as the graph says. None is an extent that is not known."""
    value = np.zeros([9 if size is None else size for size in known], np.uint8)
    graph = trace(function, flatten(value)[1], [TensorSpec(known, np.uint8)]).graph
    assert graph is not None
    spec = graph.spec_of(graph.outputs[0])
    result = function(value)
    assert spec.admits(result)
    assert None in known or spec.shape == result.shape


def results_of_one_by_one(name, parameters, images):
    """What a random operation gives for each image. `sample` of an array of keys has to give the same."""
    op = RANDOM_OPS[name]
    keys = np.random.default_rng(2).integers(0, 2**64, len(images), dtype=np.uint64)
    at_once = op.becomes(images, **op.sample(keys, images.shape[1:], **parameters))
    one_by_one = [
        op.becomes(image, **op.sample(int(key), image.shape, **parameters))
        for image, key in zip(images, keys, strict=True)
    ]
    np.testing.assert_array_equal(at_once, one_by_one)
    return one_by_one


def assert_numbers_of_a_batch_are_for_batches(function, images):
    """A function with one number for each image of a batch takes that batch, and no Block of single images."""
    with_images = ps.Dataset.from_tensor_slices(images)
    with pytest.raises(ps.errors.InvalidArgumentError, match=re.escape(f"for images of shape {images.shape[1:]}")):
        list(with_images.map(function))
    batch = next(iter(with_images.batch(len(images)).map(function)))
    np.testing.assert_array_equal(batch, function(images))
