"""Crops and paddings: parts and surroundings of images, and what they refuse."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import penstock as ps
from penstock.errors import InvalidArgumentError, InvalidTypeError

IMAGE = np.arange(4 * 5 * 3, dtype=np.uint8).reshape(4, 5, 3)
ARRAYS = hnp.arrays(
    st.sampled_from([np.uint8, np.int64, np.float32, np.bool_]), hnp.array_shapes(min_dims=1, max_dims=4, max_side=4)
)


@given(ARRAYS, st.sampled_from(["CONSTANT", "REFLECT", "SYMMETRIC"]), st.data())
def test_pad_is_numpys(x, mode, data):
    most = {"CONSTANT": [4] * x.ndim, "REFLECT": [size - 1 for size in x.shape], "SYMMETRIC": x.shape}[mode]
    paddings = [[data.draw(st.integers(0, side)) for _ in range(2)] for side in most]
    found = ps.image.pad(x, paddings, mode.lower(), 1 if mode == "CONSTANT" else 0)
    how = {"constant_values": 1} if mode == "CONSTANT" else {}
    np.testing.assert_array_equal(found, np.pad(x, paddings, mode.lower(), **how))
    assert found.dtype == x.dtype


def test_pad_of_a_number_and_of_nothing():
    assert ps.image.pad(7, []).tolist() == 7
    assert ps.image.pad(np.zeros((0, 2)), [[1, 0], [0, 1]], constant_values=2.5).tolist() == [[2.5] * 3]
    assert ps.image.pad(np.zeros((0, 2)), [[0, 0], [1, 0]], "REFLECT").shape == (0, 3)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: ps.image.pad(IMAGE, [[1], [1, 2], [0, 0]]), r"pad: paddings must be \(before, after\)"),
        (lambda: ps.image.random_crop(IMAGE, ([1], 2, 3)), r"random_crop: size must be 3 integers"),
        (lambda: ps.image.pad(IMAGE, [[1, 1]]), r"paddings must be \(before, after\) for each of 3 axes"),
        (
            lambda: ps.image.pad(IMAGE, [[1, 1], [0, -1], [0, 0]]),
            r"none below 0; got \[\[1, 1\], \[0, -1\], \[0, 0\]\]",
        ),
        (lambda: ps.image.pad(IMAGE, [[1, 1], [0, 0.5], [0, 0]]), r"pad: paddings must be"),
        (lambda: ps.image.pad(IMAGE, [[0, 0]] * 3, "EDGE"), r"pad: mode must be one of 'CONSTANT', .* got 'EDGE'"),
        (lambda: ps.image.pad(IMAGE, [[0, 0]] * 3, None), r"pad: mode must be one of .* got None"),
        (lambda: ps.image.pad(IMAGE, [[4, 0], [0, 0], [0, 0]], "REFLECT"), r"at most 3 values beside the 4 of axis 0"),
        (
            lambda: ps.image.pad(IMAGE, [[0, 0], [0, 6], [0, 0]], "SYMMETRIC"),
            r"at most 5 values beside the 5 of axis 1",
        ),
        (lambda: ps.image.pad(np.zeros(0), [[1, 0]], "REFLECT"), r"at most 0 values beside the 0 of axis 0"),
        (lambda: ps.image.pad(IMAGE, [[0, 0]] * 3, constant_values=256), r"constant_values must be a number that fits"),
        (lambda: ps.image.pad(IMAGE, [[0, 0]] * 3, constant_values="0"), r"a number that fits uint8, got '0'"),
        (lambda: ps.image.crop_to_bounding_box(IMAGE, 0, 0, 5, 5), r"rows 0 to 5 and columns 0 to 5 are not inside"),
        (lambda: ps.image.crop_to_bounding_box(IMAGE, -1, 0, 1, 1), r"offset_height must be an integer of at least 0"),
        (lambda: ps.image.crop_to_bounding_box(IMAGE, 0, 0, 0, 1), r"target_height must be an integer of at least 1"),
        (lambda: ps.image.crop_to_bounding_box(IMAGE, 0, 1.5, 1, 1), r"offset_width must be .* got 1.5"),
        (lambda: ps.image.pad_to_bounding_box(IMAGE, 1, 0, 4, 5), r"at row 1 and column 0 is not inside 4 x 5"),
        (lambda: ps.image.pad_to_bounding_box(IMAGE, 0, -1, 4, 5), r"offset_width must be an integer of at least 0"),
        (lambda: ps.image.resize_with_crop_or_pad(IMAGE, 0, 5), r"target_height must be an integer of at least 1"),
        (lambda: ps.image.central_crop(IMAGE, 0.0), r"central_fraction must be above 0 and at most 1, got 0.0"),
        (lambda: ps.image.central_crop(IMAGE, np.nan), r"central_fraction must be above 0"),
        (lambda: ps.image.central_crop(IMAGE, "half"), r"central_fraction must be above 0 .* got 'half'"),
        (lambda: ps.image.central_crop(IMAGE[0], 0.5), r"central_crop needs shape .* got shape \(5, 3\)"),
        (
            lambda: ps.image.random_crop(IMAGE, (2, 2)),
            r"random_crop: size must be 3 integers of at least 0, one for each",
        ),
        (lambda: ps.image.random_crop(IMAGE, (5, 2, 3)), r"size \[5, 2, 3\] does not fit into an array of shape"),
        (lambda: ps.image.stateless_random_crop(IMAGE, (5, 2, 3), 1), r"stateless_random_crop: a part of size"),
    ],
)
def test_what_is_wrong_is_said(call, said):
    with pytest.raises(InvalidArgumentError, match=said):
        call()


def test_pad_needs_numbers():
    with pytest.raises(InvalidTypeError, match=r"pad needs an array of numbers, got \|S3"):
        ps.image.pad(np.array([b"abc"]), [[1, 1]])


def test_what_only_cuts_is_a_view():
    for part in (
        ps.image.crop_to_bounding_box(IMAGE, 1, 1, 2, 3),
        ps.image.central_crop(IMAGE, 0.5),
        ps.image.resize_with_crop_or_pad(IMAGE, 2, 5),
        ps.image.random_crop(IMAGE, (2, 2, 3)),
    ):
        assert np.shares_memory(part, IMAGE)
    assert not np.shares_memory(ps.image.pad(IMAGE, [[0, 0]] * 3), IMAGE)


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9), st.integers(1, 9))
def test_crop_or_pad_keeps_the_centre(height, width, target_height, target_width):
    image = np.full((height, width, 1), 5, np.uint8)
    found = ps.image.resize_with_crop_or_pad(image, target_height, target_width)
    assert found.shape == (target_height, target_width, 1)
    kept = found[:, :, 0] == 5
    assert kept.sum() == min(height, target_height) * min(width, target_width)
    for axis, (size, target) in enumerate([(height, target_height), (width, target_width)]):
        first = int(kept.any(1 - axis).argmax())
        assert first == max((target - size) // 2, 0)


def test_crops_are_drawn_evenly_and_follow_from_their_seed():
    image = np.arange(5 * 6).reshape(5, 6, 1)
    first = [int(ps.image.stateless_random_crop(image, (3, 5, 1), (7, seed))[0, 0, 0]) for seed in range(600)]
    counts = {place: first.count(place) for place in set(first)}
    assert sorted(counts) == [0, 1, 6, 7, 12, 13]
    assert min(counts.values()) > 70
    for seed in range(20):
        crop = ps.image.random_crop(image, (3, 5, 1), seed=seed)
        np.testing.assert_array_equal(crop, ps.image.stateless_random_crop(image, [3, 5, 1], seed))
    crops = [ps.image.random_crop(image, (3, 5, 1), seed=seed) for seed in (-3, np.int64(-3))]
    np.testing.assert_array_equal(*crops)
    assert ps.image.random_crop(5, [], seed=1).shape == ()
    assert ps.image.random_crop(np.arange(8), [0], seed=1).shape == (0,)
    assert ps.image.random_crop(np.arange(8), [8], seed=1).tolist() == list(range(8))
    drawn = {int(ps.image.random_crop(np.arange(1000), [1])[0]) for _ in range(20)}
    assert len(drawn) > 10  # without a seed every call draws anew
