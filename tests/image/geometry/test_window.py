"""The window kernel gives the values of the plain version, which are parts of the images."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InvalidArgumentError
from penstock.image.geometry.window import _NATIVE, cut, window_batch
from penstock.image.kernels import BAD_ARGUMENT

KINDS = st.sampled_from([np.uint8, np.float32, np.int64, np.float16, np.bool_])


@st.composite
def windows(draw):
    shape = draw(st.tuples(*[st.integers(1, 3), st.integers(1, 9), st.integers(1, 40), st.integers(1, 5)]))
    images = (np.random.default_rng(draw(st.integers(0, 99))).random(shape) * 200).astype(draw(KINDS))
    if draw(st.booleans()):
        images = np.repeat(images, 2, axis=2)[:, :, ::2]  # not contiguous
    images.flags.writeable = draw(st.booleans())
    places = {}
    size = []
    for name, extent in (("top", shape[1]), ("left", shape[2])):
        size.append(draw(st.integers(1, extent)))
        place = st.integers(0, extent - size[-1])
        places[name] = np.array([draw(place) for _ in range(shape[0])])
    flips = {name: draw(st.lists(st.booleans(), min_size=shape[0], max_size=shape[0])) for name in ("up", "side")}
    return images, tuple(size), places, np.array(flips["up"]), np.array(flips["side"])


@pytest.fixture(scope="module", autouse=True)
def _compiled():
    assert _NATIVE.loaded() is not None


@given(windows())
def test_native_equals_the_plain_version(window):
    images, size, places, up, side = window
    found = window_batch(images, size, **places, upside_down=up, mirrored=side)
    expected = np.empty_like(found)
    cut(images, places["top"], places["left"], up, side, expected)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == images.dtype


@given(windows())
def test_a_window_is_a_part_of_the_image(window):
    images, (height, width), places, up, side = window
    found = window_batch(images, (height, width), **places, upside_down=up, mirrored=side)
    for i, (top, left) in enumerate(zip(places["top"], places["left"], strict=True)):
        part = images[i, top : top + height, left : left + width]
        part = part[::-1] if up[i] else part
        np.testing.assert_array_equal(found[i], part[:, ::-1] if side[i] else part)


@pytest.mark.parametrize("beside", [{"top": -1}, {"top": 3}, {"left": [0, -2]}, {"left": [4, 0]}])
def test_a_window_that_is_not_inside_is_refused(beside):
    images = np.zeros((2, 4, 5, 3), np.uint8)
    with pytest.raises(
        InvalidArgumentError, match=r"Windows of \(2, 2\) pixels from .* are not inside images of 4 x 5"
    ):
        window_batch(images, (2, 2), **beside)


def test_the_kernel_refuses_what_does_not_fit():
    native = _NATIVE.loaded()
    src, dst, place, no = np.zeros(12, np.uint8), np.zeros(12, np.uint8), np.zeros(1, np.int64), np.zeros(1, bool)
    window = [src, 1, 2, 2, 3, place, place, no, no, 2, 2, dst]
    assert native.window(*window) == 0
    for position, wrong in [(1, 2), (2, 3), (3, 1 << 62), (4, 0), (5, place[:0]), (5, place - 1), (6, place + 1),
                            (9, -1), (10, 1 << 60), (11, dst[:-1])]:  # fmt: skip
        assert native.window(*window[:position], wrong, *window[position + 1 :]) == BAD_ARGUMENT
