"""What is computed strip by strip is what is computed at once."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.image.colour import means, pixels
from penstock.image.colour.pixels import STRIP, from_unit, in_strips, to_unit

OPERATIONS = {"brightness": (pixels.brightness, 0.1), "saturation": (pixels.saturation, 1.3), "hue": (pixels.hue, 0.2)}


def image_of(count, dtype):
    values = np.random.default_rng(count).integers(0, 256, (1, count, 3)).astype(dtype)
    return values if dtype == np.uint8 else values / np.float32(255)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize("count", [0, 1, STRIP, STRIP + 1, 3 * STRIP - 1])
@pytest.mark.parametrize("name", OPERATIONS)
def test_each_pixel_by_itself(name, count, dtype):
    operation, factor = OPERATIONS[name]
    image = image_of(count, dtype)
    found = in_strips(operation)(image, factor)
    assert found.dtype == image.dtype
    np.testing.assert_array_equal(found, operation(image, factor), strict=True)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_contrast_is_about_the_mean_of_all_strips(dtype):
    image = image_of(2 * STRIP + 5, dtype)
    values = to_unit(image)
    mean = means.channel_means(values)
    expected = from_unit(mean + np.float32(0.4) * (values - mean), image.dtype)
    np.testing.assert_array_equal(means.contrast(image, 0.4), expected, strict=True)
