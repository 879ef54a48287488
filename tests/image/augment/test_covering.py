"""cutout and random erasing: which pixels change, and to what."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.image import cutout, random_cutout, random_erasing, stateless_random_cutout, stateless_random_erasing
from penstock.image.augment.covering import erase, some_box

IMAGES = hnp.arrays(
    st.sampled_from([np.uint8, np.float32, np.int16, np.bool_]), hnp.array_shapes(min_dims=3, max_dims=4, max_side=6)
)


def covered(shape, size, offset):
    """Pixel by pixel, which ones the rectangle covers."""
    rows, columns = np.arange(shape[0])[:, None], np.arange(shape[1])[None]
    top, left = offset[0] - size[0] // 2, offset[1] - size[1] // 2
    return (rows >= top) & (rows < top + size[0]) & (columns >= left) & (columns < left + size[1])


@given(IMAGES, st.data())
def test_cutout_is_what_its_definition_says(images, data):
    batch = images if images.ndim == 4 else images[None]
    size = data.draw(st.tuples(st.integers(0, 9), st.integers(0, 9)))
    offsets = data.draw(hnp.arrays(np.int64, (len(batch), 2), elements=st.integers(-9, 9)))
    value = data.draw(st.sampled_from([0, 1]))
    images.flags.writeable = False
    found = cutout(images, size, offsets if images.ndim == 4 else offsets[0], value)
    masks = [covered(image.shape, size, offset) for image, offset in zip(batch, offsets, strict=True)]
    wanted = np.where(np.array(masks)[..., None], np.asarray(value, images.dtype), batch)
    np.testing.assert_array_equal(found if images.ndim == 4 else found[None], wanted)
    assert found.dtype == images.dtype
    assert found.flags.writeable
    assert not np.shares_memory(found, images)


def test_cutout_as_tensorflow_addons_documents_it():
    """Of its own example: a mask of 2 × 2 with its centre at (1, 1) covers the rows and columns 0 and 1."""
    found = cutout(np.ones((1, 4, 4, 1)), (2, 2), (1, 1))
    assert np.argwhere(found[0, ..., 0] == 0).tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]


def test_one_offset_serves_a_whole_batch_of_any_layout():
    images = np.random.default_rng(0).integers(1, 256, (3, 8, 9, 2), np.uint8).swapaxes(1, 2)[:, ::2]
    np.testing.assert_array_equal(cutout(images, 3, (2, 2)), [cutout(image, 3, (2, 2)) for image in images])


def test_random_cutout_has_its_centre_at_every_pixel_as_often():
    images = np.ones((6000, 4, 3, 1), np.uint8)
    centres = random_cutout(images, 1, seed=3)[..., 0].reshape(6000, 12).argmin(axis=1)
    counts = np.bincount(centres, minlength=12)
    assert ((counts - 500) ** 2 / 500).sum() < 31.3  # chi-square, 11 degrees of freedom, p = 0.001


@pytest.mark.parametrize("shape", [(7, 5, 3), (4, 7, 5, 3)])
def test_seeds_choose(shape):
    images = np.random.default_rng(0).integers(1, 256, shape, np.uint8)
    np.testing.assert_array_equal(random_cutout(images, 2, seed=5), random_cutout(images, 2, seed=5))
    np.testing.assert_array_equal(random_cutout(images, 2, seed=5), stateless_random_cutout(images, 2, 5))
    assert len({stateless_random_cutout(images, 2, (1, seed)).tobytes() for seed in range(20)}) > 5
    np.testing.assert_array_equal(random_erasing(images, 1.0, seed=5), random_erasing(images, 1.0, seed=5))
    np.testing.assert_array_equal(random_erasing(images, 1.0, seed=5), stateless_random_erasing(images, 5, 1.0))
    assert len({stateless_random_erasing(images, (1, seed), 1.0).tobytes() for seed in range(20)}) > 5


@given(st.integers(0, 2**64 - 1), st.integers(1, 60), st.integers(1, 60))
def test_what_is_erased_keeps_to_its_ranges(key, height, width):
    scale, ratio = (0.1, 0.4), (0.5, 2.0)
    how = {"probability": 1.0, "scale": scale, "ratio": ratio, "value": 0}
    box = some_box("random_erasing", key, (height, width, 3), **how)["box"]
    top, left, down, across = box.tolist()
    assert 0 <= top <= top + down <= height
    assert 0 <= left <= left + across <= width
    if down and across:
        assert down < height
        assert across < width
        assert (down - 0.5) * (across - 0.5) <= 0.4 * height * width
        assert (down + 0.5) * (across + 0.5) >= 0.1 * height * width
        assert (down - 0.5) / (across + 0.5) <= 2.0
        assert (down + 0.5) / (across - 0.5) >= 0.5


def test_erasing_happens_as_often_as_asked():
    images = np.ones((4000, 8, 8, 1), np.uint8)
    erased = (random_erasing(images, 0.3, scale=(0.2, 0.3), ratio=(1, 1), seed=1) == 0).any(axis=(1, 2, 3))
    assert abs(erased.mean() - 0.3) < 0.03
    np.testing.assert_array_equal(random_erasing(images, 0, seed=1), images)


def test_values_of_erasing():
    image = np.full((20, 20, 3), 9, np.uint8)
    box = (2, 3, 10, 12)
    np.testing.assert_array_equal(erase(image, box, (1, 2, 3), 0)[5, 5], [1, 2, 3])
    noise = erase(image, box, "random", 5)[2:12, 3:15]
    assert (noise.min(), noise.max()) > (0, 240)
    assert len(np.unique(noise)) > 100
    normal = erase(image.astype(np.float32), box, "random", 5)[2:12, 3:15]
    assert abs(normal.mean()) < 0.2
    assert abs(normal.std() - 1) < 0.2
    outside = erase(image, box, "random", 5)
    outside[2:12, 3:15] = 9
    np.testing.assert_array_equal(outside, image)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: cutout(x, -1), "cutout: mask_size must be 2 integers of at least 0, height and width; got"),
        (lambda x: cutout(x, 2.5), "mask_size"),
        (lambda x: cutout(x, (1, 2, 3)), "mask_size"),
        (lambda x: cutout(x, 2, (0.5, 1)), r"offset must be 2 integers for images of shape \(4, 4, 3\)"),
        (lambda x: cutout(x, 2, [[0, 1], [1, 2]]), "offset must be 2 integers"),
        (lambda x: cutout(x, 2, constant_values=256), "constant_values must be a number that fits uint8"),
        (lambda x: cutout(x[0], 2), "cutout needs shape"),
        (lambda x: random_cutout(x[:0], 2), "random_cutout: an image needs at least one pixel"),
        (lambda x: stateless_random_cutout(x, 2, (1, 2, 3)), "stateless_random_cutout: seed must be"),
        (lambda x: random_erasing(x, 1.5), "random_erasing: probability must be a number from 0 to 1, got 1.5"),
        (lambda x: random_erasing(x, scale=(0.5, 0.1)), "scale must be .* got \\(0.5, 0.1\\)"),
        (lambda x: random_erasing(x, scale=(0.5, 2)), "scale must be .* from 0 to 1"),
        (lambda x: random_erasing(x, ratio=(0, 1)), "ratio must be .* above 0"),
        (lambda x: random_erasing(x, ratio=(np.nan, 1)), "ratio must be"),
        (lambda x: random_erasing(x, value="noise"), "value must be a number, one for each channel, or 'random'"),
        (lambda x: random_erasing(x, value=(1, 2)), "one for each of the 3 channels"),
        (lambda x: random_erasing(x, value=-1), "value must be a number that fits uint8"),
        (lambda x: random_erasing(x, value=300), "random_erasing: value must be a number that fits uint8, got 300"),
        (lambda x: stateless_random_erasing(x, "a"), "stateless_random_erasing: seed must be"),
        (lambda x: stateless_random_erasing(x, 1, 2), "stateless_random_erasing: probability must be"),
        (
            lambda x: stateless_random_erasing(x, 1, value=(1, 2)),
            "stateless_random_erasing: value must be .* 3 channels",
        ),
        (lambda x: stateless_random_erasing(x, 1, value=300), "stateless_random_erasing: value must be a number that"),
    ],
)
def test_what_they_refuse(call, text):
    with pytest.raises(InvalidArgumentError, match=text):
        call(np.zeros((4, 4, 3), np.uint8))


def test_names_are_no_images():
    for function in (lambda x: cutout(x, 2), random_erasing):
        with pytest.raises(InvalidTypeError, match="needs an image of numbers"):
            function("a.png")
