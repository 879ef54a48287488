"""Pillow's resize by the kernels: equal to Pillow and to the plain version, bit for bit."""

import numpy as np
import PIL
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from penstock.errors import InvalidArgumentError
from penstock.image.resizing import pillow

FILTERS = {
    pillow.BOX: Image.Resampling.BOX,
    pillow.BILINEAR: Image.Resampling.BILINEAR,
    pillow.BICUBIC: Image.Resampling.BICUBIC,
}
NEWER = int(PIL.__version__.split(".")[0]) >= 13
needs_tested_pillow = pytest.mark.skipif(not NEWER, reason="the order of the passes is known of Pillow 13")


@st.composite
def parts(draw):
    """An image and a part of a resized window of it."""
    sizes = st.integers(1, 70)
    height, width, channels = draw(sizes), draw(sizes), draw(st.sampled_from([1, 3]))
    rows, columns = draw(st.integers(1, height)), draw(st.integers(1, width))
    top, left = draw(st.integers(0, height - rows)), draw(st.integers(0, width - columns))
    new_rows, new_columns = draw(st.one_of(st.just(rows), sizes)), draw(st.one_of(st.just(columns), sizes))
    some_rows, some_columns = draw(st.integers(1, new_rows)), draw(st.integers(1, new_columns))
    y, x = draw(st.integers(0, new_rows - some_rows)), draw(st.integers(0, new_columns - some_columns))
    image = np.random.default_rng(draw(st.integers(0, 99))).integers(0, 256, (height, width, channels), np.uint8)
    window, place = (top, left, rows, columns), (y, x, some_rows, some_columns)
    how = draw(st.booleans()), draw(st.booleans()), draw(st.sampled_from(sorted(FILTERS)))
    return image, pillow.Part(*window, new_rows, new_columns, *place, *how)


def tables(channels):
    every = np.arange(256)
    return np.tile(every.astype(np.uint8), (channels, 1)), np.sqrt(every + np.arange(channels)[:, None]).astype("f4")


@given(parts(), st.booleans(), st.booleans())
def test_the_kernel_is_equal_to_the_plain_version(given_part, planes, vertical_first):
    image, part = given_part
    for table in tables(image.shape[2]):
        shape = (image.shape[2], part.rows, part.columns) if planes else (part.rows, part.columns, image.shape[2])
        found, wanted = np.empty(shape, table.dtype), np.empty(shape, table.dtype)
        pillow.resize_part(image, part, table, found, planes=planes, vertical_first=vertical_first)
        pillow._resize_plainly(image, part, table, wanted, planes=planes, vertical_first=vertical_first)
        np.testing.assert_array_equal(found, wanted)


@needs_tested_pillow
@given(parts())
def test_it_is_equal_to_pillow(given_part):
    image, part = given_part
    window = image[part.top : part.top + part.height, part.left : part.left + part.width]
    size = part.new_width, part.new_height
    whole = np.asarray(Image.fromarray(_plain(window)).resize(size, FILTERS[part.kind]))
    wanted = whole.reshape(*whole.shape[:2], -1)[part.y : part.y + part.rows, part.x : part.x + part.columns]
    wanted = wanted[:: -1 if part.upside else 1, :: -1 if part.mirrored else 1]
    found = np.empty(wanted.shape, np.uint8)
    pillow.resize_part(image, part, tables(image.shape[2])[0], found, planes=False, vertical_first=True)
    np.testing.assert_array_equal(found, wanted)


def _plain(image):
    return image[..., 0] if image.shape[2] == 1 else image


@given(
    st.integers(1, 9),
    st.integers(1, 9),
    st.sampled_from([1, 3]),
    st.integers(1, 12),
    st.integers(1, 12),
    st.booleans(),
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(-14, 14), st.integers(-14, 14), st.booleans(), st.booleans()),
        max_size=4,
    ),
)
def test_copies_are_equal_to_the_plain_version(height, width, channels, rows, columns, planes, places):
    images = np.random.default_rng(0).integers(0, 256, (3, height, width, channels), np.uint8)
    which = np.array([place[0] for place in places], np.int64)
    copies = np.array([place[1:] for place in places], np.int64).reshape(-1, 4)
    fill = np.array([7, 8, 9][:channels], np.uint8)
    for table in tables(channels):
        shape = (len(places), channels, rows, columns) if planes else (len(places), rows, columns, channels)
        found, wanted = np.empty(shape, table.dtype), np.empty(shape, table.dtype)
        pillow.copy_parts(images, which, copies, fill, table, found, planes=planes)
        pillow._copy_plainly(images, which, copies, fill, table, wanted, planes=planes)
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("part", [pillow.Part(0, 0, 9, 9, 4, 4, 0, 0, 4, 4), pillow.Part(0, 0, 8, 8, 4, 4, 1, 0, 4, 4)])
def test_places_outside_are_refused(part):
    image, out = np.zeros((8, 8, 3), np.uint8), np.zeros((4, 4, 3), np.uint8)
    with pytest.raises(InvalidArgumentError, match="must lie inside"):
        pillow.resize_part(image, part, tables(3)[0], out, planes=False, vertical_first=True)
    numbers = np.array([1], np.int64), np.zeros((1, 4), np.int64)
    with pytest.raises(InvalidArgumentError, match="must lie inside"):
        pillow.copy_parts(image[None], *numbers, np.zeros(3, np.uint8), tables(3)[0], out[None], planes=False)
