"""A function made of colour functions runs a Block at a time, with the numbers that it has per element."""

import numpy as np
import pytest

import penstock as ps
from penstock.block.spec import TensorSpec
from penstock.block.structure import flatten
from penstock.image import rules
from penstock.trace.traced import trace

IMAGES = np.random.default_rng(8).integers(0, 256, (9, 6, 5, 3), dtype=np.uint8)
image = ps.image
FUNCTIONS = {
    "brightness": lambda x: image.adjust_brightness(x, 0.1),
    "contrast": lambda x: image.adjust_contrast(x, 1.3),
    "saturation": lambda x: image.adjust_saturation(x, 1.3),
    "hue": lambda x: image.adjust_hue(x, 0.1),
    "gamma": lambda x: image.adjust_gamma(x, 2.0, 0.9),
    "grey": lambda x: image.rgb_to_grayscale(x),
    "grey and back": lambda x: image.grayscale_to_rgb(image.rgb_to_grayscale(x)),
    "hsv": lambda x: image.hsv_to_rgb(image.rgb_to_hsv(image.convert_image_dtype(x, np.float32))),
    "standardization": lambda x: image.per_image_standardization(x),
    "normalize": lambda x: image.normalize(x, (120, 110, 100), (60, 50, 40)),
    "invert": lambda x: image.invert(x),
    "posterize": lambda x: image.posterize(x, 3),
    "solarize": lambda x: image.solarize(x, 100),
    "autocontrast": lambda x: image.autocontrast(x),
    "equalize": lambda x: image.equalize(x),
    "sharpness": lambda x: image.adjust_sharpness(x, 1.7),
    "stateless": lambda x: image.stateless_random_contrast(x, 0.5, 1.5, (3, 4)),
    "chain": lambda x: image.adjust_contrast(image.adjust_hue(image.adjust_brightness(x, 0.1), -0.2), 0.7) / 255.0,
}


def traced_as(function):
    leaves, structure = flatten(TensorSpec((6, 5, 3), np.uint8))
    found = trace(function, structure, leaves)
    return found.graph, found.reason


@pytest.mark.parametrize("name", FUNCTIONS)
def test_blocks_give_what_elements_give(name):
    function = FUNCTIONS[name]
    graph, why = traced_as(function)
    assert graph is not None, why
    expected = np.stack([function(x) for x in IMAGES])
    found = list(ps.Dataset.from_tensor_slices(IMAGES).map(function))
    np.testing.assert_array_equal(found, expected)
    assert found[0].dtype == expected.dtype
    (output,) = graph.outputs
    assert graph.spec_of(output) == TensorSpec(expected.shape[1:], expected.dtype)


def test_images_of_any_size():
    sized = [IMAGES[0], IMAGES[1, :3], IMAGES[2, :, :2]]
    ds = ps.Dataset.from_generator(lambda: sized, output_signature=ps.TensorSpec((None, None, 3), np.uint8))
    for made, given in zip(ds.map(FUNCTIONS["chain"]), sized, strict=True):
        np.testing.assert_array_equal(made, FUNCTIONS["chain"](given))


def test_elements_that_are_batches():
    ds = ps.Dataset.from_tensor_slices(IMAGES.reshape(3, 3, 6, 5, 3)).map(FUNCTIONS["contrast"])
    np.testing.assert_array_equal(np.concatenate(list(ds)), FUNCTIONS["contrast"](IMAGES))


def test_rules():
    spec = TensorSpec((None, None, 3), np.uint8)
    assert rules.one_channel(spec) == TensorSpec((None, None, 1), np.uint8)
    assert rules.three_channels(rules.one_channel(spec)) == spec
    assert rules.as_float32(spec, mean=0, std=1) == TensorSpec((None, None, 3), np.float32)
