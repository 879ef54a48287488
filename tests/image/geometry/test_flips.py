"""Flips, turns, and random flips."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import penstock as ps
from penstock.block.spec import TensorSpec
from penstock.errors import InvalidArgumentError
from penstock.image import flip_left_right, flip_up_down, rot90, rules, transpose
from penstock.image.geometry.flips import flip_left_right_where, flip_up_down_where

IMAGES = hnp.arrays(
    st.sampled_from([np.uint8, np.int64, np.float32]), hnp.array_shapes(min_dims=3, max_dims=4, max_side=5), elements={}
)
FLIPS = [(flip_left_right, flip_left_right_where, -2), (flip_up_down, flip_up_down_where, -3)]
RANDOM = [
    (ps.image.random_flip_left_right, ps.image.stateless_random_flip_left_right, -2),
    (ps.image.random_flip_up_down, ps.image.stateless_random_flip_up_down, -3),
]


@given(IMAGES)
def test_flips_reverse_one_axis_and_undo_themselves(image):
    for flip, _, axis in FLIPS:
        np.testing.assert_array_equal(flip(image), np.flip(image, axis))
        np.testing.assert_array_equal(flip(flip(image)), image)
        assert flip(image).dtype == image.dtype
        assert np.shares_memory(flip(image), image)
        assert rules.same_shape(TensorSpec(image.shape, image.dtype)).admits(flip(image))


@given(IMAGES, st.integers(-9, 9))
def test_turns(image, k):
    turned = image
    for _ in range(k % 4):
        turned = flip_up_down(transpose(turned))  # a quarter to the left
    np.testing.assert_array_equal(rot90(image, k), turned)
    np.testing.assert_array_equal(transpose(transpose(image)), image)
    assert np.shares_memory(rot90(image, k), image)


@pytest.mark.parametrize("turn", [flip_left_right, flip_up_down, rot90, transpose])
def test_they_need_an_image(turn):
    with pytest.raises(InvalidArgumentError, match=rf"{turn.__name__} needs shape .* got shape \(4, 4\)"):
        turn(np.zeros((4, 4)))


def test_a_turn_is_a_whole_number_of_right_angles():
    with pytest.raises(InvalidArgumentError, match=r"rot90: k must be an integer, got 1.5"):
        rot90(np.zeros((4, 4, 1)), 1.5)


@given(IMAGES, st.data())
def test_those_that_are_chosen_are_flipped(images, data):
    chosen = data.draw(st.booleans() if images.ndim == 3 else hnp.arrays(bool, len(images)))
    for flip, where, _ in FLIPS:
        if images.ndim == 3:
            expected = flip(images) if chosen else images
        else:
            expected = [flip(image) if one else image for image, one in zip(images, chosen, strict=True)]
        np.testing.assert_array_equal(where(images, chosen), expected)


@pytest.mark.parametrize(("random_flip", "stateless", "axis"), RANDOM)
def test_random_flips_follow_from_their_seed(random_flip, stateless, axis):
    image = np.arange(12).reshape(2, 2, 3)
    seen = [np.array_equal(random_flip(image, seed=seed), np.flip(image, axis)) for seed in range(400)]
    assert 150 < sum(seen) < 250
    for seed in range(20):
        np.testing.assert_array_equal(random_flip(image, seed=seed), stateless(image, seed))
        np.testing.assert_array_equal(stateless(image, (seed, 1)), stateless(image, np.array([seed, 1])))
    pairs = {tuple(np.ravel(stateless(image, (1, seed)))) for seed in range(20)}
    assert pairs == {tuple(image.ravel()), tuple(np.flip(image, axis).ravel())}


@pytest.mark.parametrize(("random_flip", "stateless", "axis"), RANDOM)
def test_a_batch_is_decided_image_by_image(random_flip, stateless, axis):
    batch = np.arange(64 * 12).reshape(64, 2, 2, 3)
    found = random_flip(batch, seed=3)
    flipped = [np.array_equal(one, np.flip(image, axis)) for one, image in zip(found, batch, strict=True)]
    kept = [np.array_equal(one, image) for one, image in zip(found, batch, strict=True)]
    assert [not one for one in flipped] == kept
    assert 15 < sum(flipped) < 49
    np.testing.assert_array_equal(found, stateless(batch, 3))


@pytest.mark.parametrize("seed", ["x", 1.5, (1, 2, 3), [], [[1, 2]], None])
def test_a_stateless_seed_is_one_integer_or_two(seed):
    op = ps.image.stateless_random_flip_up_down
    with pytest.raises(InvalidArgumentError, match=r"seed must be an integer or a pair of integers, got"):
        op(np.zeros((2, 2, 3)), seed)
