"""Wrong arguments: the text names the function, what it takes and what it got."""

import numpy as np
import pytest

import penstock as ps
from penstock.errors import InvalidArgumentError, InvalidTypeError

IMAGE = np.zeros((4, 5, 3), np.uint8)
ONE = {
    "adjust_brightness": (0.1,),
    "adjust_contrast": (2.0,),
    "adjust_saturation": (2.0,),
    "adjust_hue": (0.1,),
    "adjust_gamma": (2.0,),
    "adjust_sharpness": (2.0,),
    "random_brightness": (0.1,),
    "random_contrast": (0.5, 1.5),
    "random_saturation": (0.5, 1.5),
    "random_hue": (0.1,),
    "rgb_to_grayscale": (),
    "rgb_to_hsv": (),
    "hsv_to_rgb": (),
    "grayscale_to_rgb": (),
    "per_image_standardization": (),
    "normalize": (0, 1),
    "invert": (),
    "posterize": (4,),
    "solarize": (100,),
    "autocontrast": (),
    "equalize": (),
}


def refused(kind, text, name, *arguments, **options):
    with pytest.raises(kind, match=text) as caught:
        getattr(ps.image, name)(*arguments, **options)
    assert name in str(caught.value)


@pytest.mark.parametrize("name", ONE)
def test_rank_and_kind(name):
    refused(InvalidArgumentError, r"\(4, 5\).*\n.*image\[\.\.\., None\]", name, np.zeros((4, 5), np.uint8), *ONE[name])
    refused(InvalidArgumentError, r"got shape \(1, 1, 4, 5, 3\)", name, np.zeros((1, 1, 4, 5, 3)), *ONE[name])
    refused(InvalidTypeError, "got bytes", name, b"jpeg", *ONE[name])
    refused(InvalidTypeError, "dtype complex128", name, np.zeros((4, 5, 3), complex), *ONE[name])
    if name != "grayscale_to_rgb":
        refused(InvalidTypeError, "got bool", name, np.zeros((4, 5, 3), bool), *ONE[name])


@pytest.mark.parametrize("name", ["adjust_saturation", "adjust_hue", "rgb_to_grayscale", "random_hue", "rgb_to_hsv"])
def test_three_channels(name):
    refused(InvalidArgumentError, r"3 channels .*\(4, 5, 1\)\.\n.*grayscale_to_rgb", name, IMAGE[..., :1], *ONE[name])
    refused(InvalidArgumentError, r"alpha", name, np.zeros((4, 5, 4), np.uint8), *ONE[name])
    refused(InvalidArgumentError, r"got shape \(4, 5, 2\)", name, IMAGE[..., :2], *ONE[name])


@pytest.mark.parametrize(
    ("name", "arguments", "kind", "text"),
    [
        ("adjust_brightness", (np.nan,), InvalidArgumentError, "delta must be finite in float32, got nan"),
        ("adjust_brightness", (np.inf,), InvalidArgumentError, "delta must be finite in float32, got inf"),
        ("adjust_contrast", (1e39,), InvalidArgumentError, r"contrast_factor must be finite in float32, got 1e\+39"),
        ("adjust_brightness", ("bright",), InvalidTypeError, "delta must be one number, got 'bright'"),
        ("adjust_brightness", (None,), InvalidTypeError, "delta must be one number, got None"),
        ("adjust_contrast", ([1.0],), InvalidArgumentError, "contrast_factor must be a number, or one for each"),
        ("adjust_hue", (1.5,), InvalidArgumentError, "delta must be from -1 to 1, got 1.5"),
        ("adjust_gamma", (-1,), InvalidArgumentError, "gamma must be at least 0, got -1"),
        ("adjust_gamma", (1, np.inf), InvalidArgumentError, "gain must be finite"),
        ("adjust_sharpness", (-0.5,), InvalidArgumentError, "sharpness_factor must be at least 0"),
        ("random_brightness", (-0.1,), InvalidArgumentError, "max_delta must be at least 0, got -0.1"),
        ("random_hue", (0.6,), InvalidArgumentError, "max_delta must be from 0 to 0.5, got 0.6"),
        ("random_hue", (-0.1,), InvalidArgumentError, "max_delta must be from 0 to 0.5"),
        ("random_contrast", (1.5, 0.5), InvalidArgumentError, "upper must be greater than lower.*1.5 and upper=0.5"),
        ("random_contrast", (0.5, 0.5), InvalidArgumentError, "upper must be greater"),
        ("random_saturation", (-0.5, 0.5), InvalidArgumentError, "lower must be at least 0, got -0.5"),
        ("stateless_random_hue", (0.6, 1), InvalidArgumentError, "max_delta must be from 0 to 0.5"),
        ("stateless_random_contrast", (2, 1, 1), InvalidArgumentError, "upper must be greater"),
        ("stateless_random_saturation", (1, 2, "seed"), InvalidArgumentError, "seed must be an integer or a pair"),
        ("stateless_random_brightness", (0.1, (1, 2, 3)), InvalidArgumentError, "seed must be an integer or a pair"),
        ("posterize", (9,), InvalidArgumentError, "bits must be from 0 to 8, got 9"),
        ("posterize", (2.5,), InvalidArgumentError, "bits must be an integer from 0 to 8, got 2.5"),
        ("solarize", (300,), InvalidArgumentError, "threshold must be from 0 to 256, got 300"),
        ("normalize", ([1, 2], 1), InvalidArgumentError, "mean must have a number for each of 3 channels, or one"),
        ("normalize", (0, [1, 0, 1]), InvalidArgumentError, "std must not be 0"),
        ("normalize", (0, [1, np.nan, 1]), InvalidArgumentError, "std must be finite"),
        ("normalize", ("mean", 1), InvalidTypeError, "mean must be numbers"),
        ("normalize", ([[1, 2], [3]], 1), InvalidTypeError, "mean must be numbers"),
    ],
)
def test_arguments(name, arguments, kind, text):
    refused(kind, text, name, IMAGE, *arguments)


def test_what_only_one_dtype_has():
    refused(InvalidTypeError, r"floats from 0 to 1, got uint8.\n.*convert_image_dtype", "rgb_to_hsv", IMAGE)
    refused(InvalidTypeError, r"needs an image of uint8, got float32", "equalize", IMAGE.astype(np.float32))
    refused(InvalidTypeError, r"uint8 or float32, got float64", "invert", IMAGE.astype(float))
    refused(InvalidArgumentError, "threshold must be from 0 to 1", "solarize", IMAGE.astype(np.float32))
    refused(InvalidArgumentError, r"1 channel, got shape \(4, 5, 3\)", "grayscale_to_rgb", IMAGE)
    refused(InvalidArgumentError, r"at least one value, got shape \(0, 5, 3\)", "per_image_standardization", IMAGE[:0])
