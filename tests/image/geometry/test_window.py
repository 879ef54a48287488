"""The window kernel gives the reference's values, and a window is what cutting a padded image gives."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock.errors import InvalidArgumentError
from penstock.image.geometry import window_reference as reference
from penstock.image.geometry.window import _NATIVE, window_batch
from penstock.image.kernels import BAD_ARGUMENT

MODES = {"CONSTANT": reference.CONSTANT, "REFLECT": reference.REFLECT, "SYMMETRIC": reference.SYMMETRIC}
KINDS = st.sampled_from([np.uint8, np.float32, np.int64, np.float16, np.bool_])


@st.composite
def windows(draw):
    shape = draw(st.tuples(*[st.integers(1, 3), st.integers(1, 9), st.integers(1, 40), st.integers(1, 5)]))
    images = (np.random.default_rng(draw(st.integers(0, 99))).random(shape) * 200).astype(draw(KINDS))
    if draw(st.booleans()):
        images = np.repeat(images, 2, axis=2)[:, :, ::2]  # not contiguous
    images.flags.writeable = draw(st.booleans())
    mode = draw(st.sampled_from(sorted(MODES)))
    places = {}
    size = []
    for name, extent in (("top", shape[1]), ("left", shape[2])):
        beside = {"CONSTANT": 20, "REFLECT": extent - 1, "SYMMETRIC": extent}[mode]
        size.append(draw(st.integers(1, min(45, extent + 2 * beside))))
        place = st.integers(-beside, extent + beside - size[-1])
        places[name] = np.array([draw(place) for _ in range(shape[0])])
    flips = {name: draw(st.lists(st.booleans(), min_size=shape[0], max_size=shape[0])) for name in ("up", "side")}
    return images, tuple(size), mode, places, np.array(flips["up"]), np.array(flips["side"])


@pytest.fixture(scope="module", autouse=True)
def _compiled():
    assert _NATIVE.loaded() is not None


@given(windows())
def test_native_equals_reference(window):
    images, size, mode, places, up, side = window
    fill = images.dtype.type(1)
    found = window_batch(images, size, **places, upside_down=up, mirrored=side, mode=MODES[mode], fill=fill)
    expected = reference.window(images, places["top"], places["left"], up, side, MODES[mode], fill, *size)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == images.dtype


@given(windows())
def test_a_window_is_a_part_of_the_padded_image(window):
    images, (height, width), mode, places, up, side = window
    reach = [20 if mode == "CONSTANT" else extent - (mode == "REFLECT") for extent in images.shape[1:3]]
    padded = ps.image.pad(images, [[0, 0], [reach[0]] * 2, [reach[1]] * 2, [0, 0]], mode)
    found = window_batch(images, (height, width), **places, upside_down=up, mirrored=side, mode=MODES[mode])
    for i, (top, left) in enumerate(zip(places["top"] + reach[0], places["left"] + reach[1], strict=True)):
        part = padded[i, top : top + height, left : left + width]
        part = part[::-1] if up[i] else part
        np.testing.assert_array_equal(found[i], part[:, ::-1] if side[i] else part)


def test_a_window_that_reaches_too_far_is_refused():
    images = np.zeros((1, 4, 5, 3), np.uint8)
    with pytest.raises(InvalidArgumentError, match=r"begins at -4 and ends at 0 needs more than the 3 mirrored pixels"):
        window_batch(images, (4, 5), top=-4, mode=reference.REFLECT)
    with pytest.raises(InvalidArgumentError, match="more than the 5 mirrored pixels that 5 give"):
        window_batch(images, (4, 16), left=-5, mode=reference.SYMMETRIC)


def test_the_kernel_refuses_what_does_not_fit():
    native = _NATIVE.loaded()
    src, dst, place, no = np.zeros(12, np.uint8), np.zeros(12, np.uint8), np.zeros(1, np.int64), np.zeros(1, bool)
    fill = np.zeros(3, np.uint8)
    window = [src, 1, 2, 2, 3, place, place, no, no, reference.REFLECT, fill, 2, 2, dst]
    assert native.window(*window) == 0
    for position, wrong in [(1, 2), (2, 3), (3, 1 << 62), (4, 0), (5, place[:0]), (6, place + 9), (10, fill[:2]),
                            (11, -1), (12, 1 << 60), (13, dst[:-1])]:  # fmt: skip
        assert native.window(*window[:position], wrong, *window[position + 1 :]) == BAD_ARGUMENT
