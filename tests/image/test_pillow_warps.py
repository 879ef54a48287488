"""Pillow's affine and perspective transforms by the kernel: equal to Pillow and to the plain version, bit for bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from penstock.errors import InvalidArgumentError
from penstock.image.geometry import pillow

sizes = st.integers(1, 40)
numbers = st.floats(-2, 2) | st.sampled_from([0.0, 1.0, -1.0, 0.5])
places = st.floats(-50, 50) | st.sampled_from([0.0, 0.5, 3.0])
lengths = st.floats(1000, 1e6)  # beyond numbers of 16.16 bits


@st.composite
def affine(draw):
    first = draw(numbers | lengths)
    return (first, draw(numbers), draw(places), draw(numbers), draw(numbers), draw(places))


@st.composite
def scaling(draw):
    return (draw(numbers), 0.0, draw(places), 0.0, draw(numbers), draw(places))


@st.composite
def perspective(draw):
    small = st.floats(-0.02, 0.02)
    return (*draw(affine()), draw(small), draw(small))


@st.composite
def warps(draw):
    image = np.random.default_rng(draw(st.integers(0, 99))).integers(
        0, 256, (draw(sizes), draw(sizes), draw(st.sampled_from([1, 3]))), np.uint8
    )
    matrix = draw(st.one_of(affine(), scaling(), perspective()))
    kind = draw(st.sampled_from([pillow.NEAREST, pillow.BILINEAR, pillow.BICUBIC]))
    return image, (draw(sizes), draw(sizes)), matrix, kind


FILL = np.array([7, 100, 255], np.uint8)


def tables(channels):
    every = np.arange(256)
    return np.tile(every.astype(np.uint8), (channels, 1)), np.sqrt(every + np.arange(channels)[:, None]).astype("f4")


def warped(image, size, matrix, kind, table, *, planes):
    channels = image.shape[2]
    found = np.empty((channels, *size) if planes else (*size, channels), table.dtype)
    pillow.warp(image, matrix, kind, FILL[:channels], table, found, planes=planes)
    return found


@given(warps())
def test_it_is_equal_to_pillow(given_warp):
    image, size, matrix, kind = given_warp
    channels = image.shape[2]
    fill = int(FILL[0]) if channels == 1 else tuple(FILL.tolist())
    how = Image.Transform.PERSPECTIVE if len(matrix) == 8 else Image.Transform.AFFINE
    source = Image.fromarray(image[..., 0] if channels == 1 else image)
    wanted = np.asarray(source.transform(size[::-1], how, matrix, kind, fillcolor=fill))
    found = warped(image, size, matrix, kind, tables(channels)[0], planes=False)
    np.testing.assert_array_equal(found, wanted.reshape(found.shape))


@given(warps(), st.booleans())
def test_the_kernel_is_equal_to_the_plain_version(given_warp, planes):
    for table in tables(given_warp[0].shape[2]):
        found = warped(*given_warp, table, planes=planes)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pillow._NATIVE, "loaded", lambda: None)
            wanted = warped(*given_warp, table, planes=planes)
        np.testing.assert_array_equal(found, wanted)


def test_arrays_that_do_not_fit_are_refused():
    image, matrix = np.zeros((4, 5, 3), np.uint8), (1, 0, 0, 0, 1, 0)
    for fill, out in ((FILL[:1], np.empty((4, 5, 3), np.uint8)), (FILL, np.empty((4, 5, 1), np.uint8))):
        with pytest.raises(InvalidArgumentError, match="do not fit"):
            pillow.warp(image, matrix, pillow.NEAREST, fill, tables(3)[0], out, planes=False)
