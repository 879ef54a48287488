"""random_resized_crop: which part, and that it is resize of that part."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.image.photos import photo

from penstock.errors import InvalidArgumentError
from penstock.image import random_resized_crop, resize, stateless_random_resized_crop
from penstock.image.augment.arguments import ATTEMPTS, tried
from penstock.image.augment.random_parts import some_box
from penstock.keys import fold


def box_of(key, shape, **how):
    given_here = {"size": (8, 8), "scale": (0.08, 1.0), "ratio": (3 / 4, 4 / 3), "method": "bilinear"}
    return some_box("random_resized_crop", key, shape, **{**given_here, "antialias": False, **how})["box"]


@given(st.integers(0, 2**64 - 1), st.integers(1, 70), st.integers(1, 70))
def test_the_part_is_inside_and_keeps_to_its_ranges(key, height, width):
    scale, ratio = (0.2, 0.5), (0.8, 1.5)
    top, left, down, across = box_of(key, (height, width, 3), scale=scale, ratio=ratio).tolist()
    assert 0 <= top < top + down <= height
    assert 0 <= left < left + across <= width
    drawn = list(tried(key, height * width, scale, ratio))
    assert len(drawn) == ATTEMPTS
    fits = [(h, w) for w, h in drawn if 0 < w <= width and 0 < h <= height]
    if fits:
        assert (down, across) == fits[0]
        assert (down - 0.5) * (across - 0.5) <= 0.5 * height * width
        assert (across + 0.5) / (down - 0.5) >= 0.8


@pytest.mark.parametrize(
    ("shape", "ratio", "expected"),
    [
        ((100, 10, 3), (1.0, 1.0), [45, 0, 10, 10]),  # too high: the width stays
        ((10, 100, 3), (1.0, 2.0), [0, 40, 10, 20]),  # too wide: the height stays
        ((10, 15, 3), (1.0, 2.0), [0, 0, 10, 15]),  # as it is
        ((1, 1, 3), (0.1, 0.1), [0, 0, 1, 1]),
    ],
)
def test_what_never_fits_is_the_centre(shape, ratio, expected):
    assert box_of(1, shape, scale=(4.0, 4.0), ratio=ratio).tolist() == expected


def test_areas_forms_and_places_are_as_documented():
    boxes = box_of(np.arange(4000, dtype=np.uint64), (400, 400, 3), scale=(0.1, 0.3), ratio=(0.5, 2.0))
    tops, lefts, heights, widths = boxes.T
    areas = heights * widths / 400**2
    assert abs(areas.mean() - 0.2) < 0.004
    assert abs(areas.std() - 0.2 / 12**0.5) < 0.003
    forms = np.log(widths / heights)
    assert abs(forms.mean()) < 0.03
    assert abs(forms.std() - 2 * np.log(2) / 12**0.5) < 0.02
    for place, extent in ((tops, heights), (lefts, widths)):
        shares = place / (400 - extent)
        assert abs(shares.mean() - 0.5) < 0.02
        assert abs(shares.std() - 1 / 12**0.5) < 0.01


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize(("method", "antialias"), [("bilinear", False), ("bilinear", True), ("nearest", False)])
def test_it_is_resize_of_the_part(dtype, method, antialias):
    image = photo(40, 50).astype(dtype)
    how = {"method": method, "antialias": antialias}
    found = random_resized_crop(image, (8, 8), seed=3, **how)
    np.testing.assert_array_equal(found, stateless_random_resized_crop(image, (8, 8), 3, **how))
    top, left, height, width = box_of(fold(3), image.shape).tolist()
    part = image[top : top + height, left : left + width]
    np.testing.assert_array_equal(found, resize(part, (8, 8), **how))
    assert found.dtype == (dtype if method == "nearest" else np.float32)


def test_each_image_of_a_batch_has_its_own_part():
    batch = np.stack([photo(200, 300)] * 6)
    found = random_resized_crop(batch, (5, 7), seed=1)
    assert found.shape == (6, 5, 7, 3)
    assert len({one.tobytes() for one in found}) == 6
    assert random_resized_crop(batch[:0], (5, 7)).shape == (0, 5, 7, 3)


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ({"size": 8}, "random_resized_crop: size must be"),
        ({"size": (0, 8)}, "size must be"),
        ({"scale": (0, 1)}, "random_resized_crop: scale must be .* above 0"),
        ({"scale": 0.5}, "scale must be"),
        ({"ratio": (2, 1)}, "ratio must be .* the smaller first; got"),
        ({"ratio": (0, 1)}, "ratio must be .* above 0"),
        ({"method": "magic"}, "random_resized_crop: method must be one of"),
    ],
)
def test_what_it_refuses(how, text):
    with pytest.raises(InvalidArgumentError, match=text):
        random_resized_crop(np.zeros((4, 4, 3), np.uint8), **{"size": (2, 2), **how})


def test_an_image_without_pixels_is_refused():
    with pytest.raises(InvalidArgumentError, match=r"at least one pixel and one channel, got shape \(0, 4, 3\)"):
        random_resized_crop(np.zeros((0, 4, 3), np.uint8), (2, 2))
