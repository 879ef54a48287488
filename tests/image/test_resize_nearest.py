"""Nearest-neighbour resizing: the kernel copies what the reference copies, for every dtype, and refuses the rest."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.image.kernels import BAD_ARGUMENT
from penstock.image.resizing import reference
from penstock.image.resizing.reference import nearest_taps
from penstock.image.resizing.sampling import _NEAREST, resize_nearest

SIDES = st.integers(1, 40)
DTYPES = [np.bool_, np.uint8, np.int16, np.float16, np.float32, np.int64, np.float64]


@pytest.fixture(autouse=True, scope="module")
def compiled():
    return _NEAREST.loaded()


@given(
    st.tuples(st.integers(0, 3), SIDES, SIDES, st.integers(1, 6)),
    SIDES,
    SIDES,
    st.sampled_from(DTYPES),
    st.booleans(),
)
def test_the_kernel_copies_as_the_reference(shape, height, width, dtype, turned):
    images = np.random.default_rng(0).integers(0, 2 if dtype == np.bool_ else 100, shape).astype(dtype)
    images = images.transpose(0, 2, 1, 3)[:, ::-1] if turned else images
    images.flags.writeable = False
    expected = reference.resize_nearest(
        images, nearest_taps(images.shape[1], height), nearest_taps(images.shape[2], width)
    )
    result = resize_nearest(images, height, width)
    assert result.dtype == dtype
    assert result.flags.writeable
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    ("height", "width", "parts", "row", "column"),
    [
        (5, 5, 3, -1, 0),
        (5, 5, 3, 5, 0),
        (5, 5, 3, 0, -1),
        (5, 5, 3, 0, 5),
        (5, 6, 3, 0, 0),
        (1 << 40, 1 << 40, 3, 0, 0),
    ],
)
def test_what_would_read_out_of_bounds_is_refused_unwritten(compiled, height, width, parts, row, column):
    pixels, dst = np.zeros(75, np.uint8), np.full(2 * 2 * 3, 7, np.uint8)
    y, x = np.array([0, row]), np.array([column, 0])
    for array in (pixels, y, x):
        array.flags.writeable = False
    assert compiled.resize_nearest(pixels, height, width, parts, y, x, dst) == BAD_ARGUMENT
    assert (dst == 7).all()
