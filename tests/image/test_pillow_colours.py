"""Pillow's colour operations by the kernels: equal to Pillow and to the plain version, bit for bit."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image, ImageEnhance, ImageOps

from penstock.errors import InvalidArgumentError
from penstock.image.colour import pillow

ENHANCERS = {
    "brightness": ImageEnhance.Brightness,
    "contrast": ImageEnhance.Contrast,
    "saturation": ImageEnhance.Color,
    "sharpness": ImageEnhance.Sharpness,
}
FUNCTIONS = {"posterize": ImageOps.posterize, "solarize": ImageOps.solarize}
ALONE = {"invert": ImageOps.invert, "autocontrast": ImageOps.autocontrast, "equalize": ImageOps.equalize}

factors = st.floats(-1, 3, width=32) | st.sampled_from([0.0, 0.5, 1.0])
operations = st.one_of(
    st.tuples(st.sampled_from(sorted(ENHANCERS)), factors),
    st.tuples(st.just("hue"), st.integers(0, 255)),
    st.tuples(st.just("posterize"), st.integers(1, 8)),
    st.tuples(st.just("solarize"), st.integers(-1, 256) | st.floats(0, 256)),
    st.tuples(st.sampled_from(sorted(ALONE)), st.just(0)),
)


@st.composite
def images(draw):
    """Images of noise, of few levels, of equal pixels, or of equal channels."""
    height, width, channels = draw(st.integers(1, 40)), draw(st.integers(1, 40)), draw(st.sampled_from([1, 3]))
    low = draw(st.integers(0, 255))
    high = draw(st.integers(low, min(low + 3, 255)) | st.just(255))
    made = np.random.default_rng(draw(st.integers(0, 99))).integers(low, high + 1, (height, width, channels), np.uint8)
    return np.repeat(made[..., :1], channels, 2) if draw(st.integers(0, 9)) == 0 else made


def as_pillow(image):
    return Image.fromarray(image[..., 0] if image.shape[2] == 1 else image)


def by_pillow(image, name, number):
    if name in ENHANCERS:
        return ENHANCERS[name](image).enhance(number)
    if name in FUNCTIONS:
        return FUNCTIONS[name](image, number)
    if name in ALONE:
        return ALONE[name](image)
    if image.mode == "L":
        return image
    hue, saturation, value = image.convert("HSV").split()
    hue = hue.point([(level + number) % 256 for level in range(256)])
    return Image.merge("HSV", (hue, saturation, value)).convert("RGB")


def tables(channels):
    every = np.arange(256)
    return np.tile(every.astype(np.uint8), (channels, 1)), np.sqrt(every + np.arange(channels)[:, None]).astype("f4")


def adjusted(image, program, table, *, planes):
    shape = (image.shape[2], *image.shape[:2]) if planes else image.shape
    found = np.empty(shape, table.dtype)
    pillow.adjust(image, program, table, found, planes=planes)
    return found


@given(images(), st.lists(operations, max_size=5))
def test_operations_are_equal_to_pillow(image, program):
    wanted = as_pillow(image)
    for name, number in program:
        wanted = by_pillow(wanted, name, number)
    found = adjusted(image, program, tables(image.shape[2])[0], planes=False)
    np.testing.assert_array_equal(found, np.asarray(wanted).reshape(image.shape))


@given(images(), st.lists(operations, max_size=5), st.booleans())
@example(np.zeros((1, 1, 3), np.uint8), [("hue", 5)], True)
def test_kernels_are_equal_to_the_plain_versions(image, program, planes):
    for table in tables(image.shape[2]):
        found = adjusted(image, program, table, planes=planes)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pillow._NATIVE, "loaded", lambda: None)
            wanted = adjusted(image, program, table, planes=planes)
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", ["saturation", "hue"])
def test_every_colour_is_equal_to_pillow(name):
    """All colours with a blue of some levels, and some of the others."""
    square = np.stack(np.meshgrid(np.arange(256), np.arange(256), [0, 1, 127, 200, 255], indexing="ij"), -1)
    image = square.reshape(256, -1, 3).astype(np.uint8)
    for number in (0.3, 1.7) if name == "saturation" else (0, 1, 100, 254):
        wanted = np.asarray(by_pillow(as_pillow(image), name, number))
        np.testing.assert_array_equal(adjusted(image, [(name, number)], tables(3)[0], planes=False), wanted)


def test_arrays_that_do_not_fit_are_refused():
    image, table = np.zeros((4, 5, 3), np.uint8), tables(3)[0]
    for out in (np.empty((5, 4, 3), np.uint8), np.empty((4, 5, 1), np.uint8)):
        for program in ([], [("hue", 1)]):
            with pytest.raises(InvalidArgumentError):
                pillow.adjust(image, program, table, out, planes=False)
