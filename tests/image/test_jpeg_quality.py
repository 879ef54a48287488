"""adjust_jpeg_quality and its random forms."""

import numpy as np
import pytest
from tests.image.photos import photo

import penstock as ps
from penstock.errors import InvalidArgumentError
from penstock.image import adjust_jpeg_quality, random_jpeg_quality, stateless_random_jpeg_quality
from penstock.image.jpeg.encode import quality_of

PHOTO = photo(24, 32)


def test_worse_quality_is_further_away():
    distance = [np.abs(adjust_jpeg_quality(PHOTO, quality).astype(int) - PHOTO).mean() for quality in (95, 50, 5)]
    assert distance == sorted(distance)
    assert 0 < distance[0] < 8


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64])
@pytest.mark.parametrize("channels", [1, 3])
def test_dtype_and_shape_stay(dtype, channels):
    image = ps.image.convert_image_dtype(PHOTO[..., :channels], dtype)
    found = adjust_jpeg_quality(image, 90)
    assert (found.dtype, found.shape) == (np.dtype(dtype), image.shape)


def test_each_image_of_a_batch_is_a_jpeg_of_its_own():
    batch = np.stack([PHOTO, PHOTO[::-1], 255 - PHOTO])
    np.testing.assert_array_equal(adjust_jpeg_quality(batch, 40), [adjust_jpeg_quality(image, 40) for image in batch])
    alike = [stateless_random_jpeg_quality(image, 5, 95, 8) for image in batch]
    np.testing.assert_array_equal(stateless_random_jpeg_quality(batch, 5, 95, 8), alike)
    np.testing.assert_array_equal(random_jpeg_quality(batch, 5, 95, seed=8), alike)
    assert adjust_jpeg_quality(batch[:0], 40).shape == (0, 24, 32, 3)


def test_random_quality_is_drawn_from_the_seed():
    found = [random_jpeg_quality(PHOTO, 10, 90, seed=seed) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(found[0], found[1])
    assert (found[0] != found[2]).any()
    pair = stateless_random_jpeg_quality(PHOTO, 10, 90, (3, 4))
    np.testing.assert_array_equal(pair, stateless_random_jpeg_quality(PHOTO, 10, 90, np.array([3, 4])))
    assert (pair != stateless_random_jpeg_quality(PHOTO, 10, 90, (4, 3))).any()


def test_every_quality_of_the_range_is_drawn():
    drawn = {quality_of(key, (), min_jpeg_quality=7, max_jpeg_quality=10)["jpeg_quality"] for key in range(200)}
    assert drawn == {7, 8, 9}


def test_in_a_pipeline_each_element_draws_its_own():
    ds = ps.Dataset.from_tensors(PHOTO).repeat(6).map(lambda image: random_jpeg_quality(image, 5, 95))
    first = [list(ds.iterator(epoch=epoch)) for epoch in (0, 0, 1)]
    np.testing.assert_array_equal(first[0], first[1])
    assert (np.array(first[0]) != first[2]).any()
    assert len({image.tobytes() for image in first[0]}) > 1


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: adjust_jpeg_quality(PHOTO, 101), "jpeg_quality must be from 0 to 100, got 101"),
        (lambda: adjust_jpeg_quality(PHOTO, 90.5), "jpeg_quality must be an integer of at least 0, got 90.5"),
        (lambda: adjust_jpeg_quality(PHOTO, "high"), "jpeg_quality must be an integer of at least 0, got 'high'"),
        (lambda: adjust_jpeg_quality(PHOTO[..., 0], 90), r"got shape \(24, 32\)"),
        (lambda: random_jpeg_quality(PHOTO[..., 0], 1, 90), r"random_jpeg_quality needs shape .* got shape \(24, 32\)"),
        (lambda: stateless_random_jpeg_quality(PHOTO[..., 0], 1, 90, 1), "stateless_random_jpeg_quality needs shape"),
        (
            lambda: stateless_random_jpeg_quality(PHOTO, 90, 1, 1),
            "stateless_random_jpeg_quality: min_jpeg_quality",
        ),
        (lambda: adjust_jpeg_quality(PHOTO[..., :2], 90), "channels must be one of 1, 3; got 2"),
        (lambda: random_jpeg_quality(PHOTO, 90, 90), "must be below max_jpeg_quality; got 90 and 90"),
        (lambda: random_jpeg_quality(PHOTO, -1, 90), "min_jpeg_quality must be an integer of at least 0, got -1"),
        (lambda: random_jpeg_quality(PHOTO, 1, 190), "max_jpeg_quality must be from 0 to 100, got 190"),
        (lambda: stateless_random_jpeg_quality(PHOTO, 1, 90, (1, 2, 3)), "an integer or a pair of integers"),
        (lambda: stateless_random_jpeg_quality(PHOTO, 1, 90, 0.5), "an integer or a pair of integers"),
    ],
)
def test_arguments_out_of_range(call, text):
    with pytest.raises(InvalidArgumentError, match=text):
        call()
