"""While the kernels are being compiled, the reference serves: the same numbers."""

import numpy as np
import pytest

import penstock as ps
from penstock.image.colour import run

IMAGES = np.random.default_rng(0).integers(0, 256, (2, 9, 7, 3), dtype=np.uint8)
FLOATS = IMAGES.astype(np.float32) / 255
CALLS = [
    (ps.image.adjust_brightness, (0.2,)),
    (ps.image.adjust_brightness, ([0.2, -0.3],)),
    (ps.image.adjust_contrast, (1.5,)),
    (ps.image.adjust_saturation, (1.5,)),
    (ps.image.adjust_hue, (0.3,)),
    (ps.image.adjust_gamma, (2.2,)),
    (ps.image.rgb_to_grayscale, ()),
    (ps.image.per_image_standardization, ()),
    (ps.image.normalize, ([1, 2, 3], [4, 5, 6])),
    (ps.image.adjust_sharpness, (1.5,)),
    (ps.image.invert, ()),
]
LEVELS = [
    (ps.image.autocontrast, ()),
    (ps.image.equalize, ()),
    (ps.image.posterize, (3,)),
    (ps.image.solarize, (100,)),
]
SPACES = [(ps.image.rgb_to_hsv, ()), (ps.image.hsv_to_rgb, ())]


class Never:
    """Kernels that are not there."""

    def loaded(self):
        return None


@pytest.mark.parametrize(
    ("function", "arguments", "images"),
    [
        *((*call, IMAGES) for call in CALLS + LEVELS),
        *((*call, FLOATS) for call in CALLS + SPACES),
        (ps.image.grayscale_to_rgb, (), IMAGES[..., :1]),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_without_kernels_the_numbers_are_the_same(function, arguments, images, monkeypatch):
    names = ("_PIXELS", "_MEANS")
    for name in names:
        assert getattr(run, name).loaded() is not None
    compiled = function(images, *arguments)
    for name in names:
        monkeypatch.setattr(run, name, Never())
    plain = function(images, *arguments)
    np.testing.assert_array_equal(plain, compiled)
    assert plain.dtype == compiled.dtype
