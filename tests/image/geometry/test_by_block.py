"""In a data set the functions run a Block at a time, give what they give element by element, and know their shapes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.image import by_block

import penstock as ps
from penstock.block.column import DenseColumn, ListColumn
from penstock.image import drawn
from penstock.keys import draw, units
from penstock.trace.lift import RANDOM_OPS

image = ps.image
TURN = (0.98, -0.19, 1.0, 0.19, 0.98, -0.5, 0.0, 0.001)

FUNCTIONS = {
    "flip": lambda x: image.flip_up_down(image.flip_left_right(x)),
    "crop_to_bounding_box": lambda x: image.crop_to_bounding_box(x, 1, 2, 3, target_width=4),
    "pad_to_bounding_box": lambda x: image.pad_to_bounding_box(x, 1, 2, 20, 30),
    "resize_with_crop_or_pad": lambda x: image.resize_with_crop_or_pad(x, 5, 20),
    "central_crop": lambda x: image.central_crop(x, 0.6),
    "rot90": lambda x: image.rot90(x),
    "rot90 twice": lambda x: image.rot90(x, k=2),
    "transpose": image.transpose,
    "pad": lambda x: image.pad(x, [[1, 2], [4, 4], [0, 0]], mode="REFLECT"),
    "pad constant": lambda x: image.pad(x, ((1, 2), (4, 4), (0, 1)), constant_values=3),
    "rotate": lambda x: image.rotate(x, 0.3, "bilinear", fill_mode="reflect"),
    "rotate by one": lambda x: image.rotate(x, [0.3]),
    "translate": lambda x: image.translate(x, (1.5, -2), "bilinear"),
    "shear": lambda x: image.shear_y(image.shear_x(x, 0.3, fill_value=9), level=-0.3),
    "transform": lambda x: image.transform(x, TURN, output_shape=(4, 6)),
    "random_flips": lambda x: image.random_flip_up_down(image.random_flip_left_right(x)),
    "random_crop": lambda x: image.random_crop(x, (4, 5, 3)),
    "random_rotate": lambda x: image.random_rotate(x, 0.2, "bilinear", fill_mode="nearest"),
    "seeded": lambda x: image.random_rotate(image.random_crop(x, (4, 5, 3), seed=3), 0.2, seed=4),
}


def images(rows=5, dtype=np.uint8):
    return np.random.default_rng(1).integers(0, 256, (rows, 9, 11, 3)).astype(dtype)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.int64])
def test_by_block_it_is_what_it_is_by_element(name, dtype):
    by_block.result_of_a_block(FUNCTIONS[name], DenseColumn(images(dtype=dtype)))
    by_block.assert_same_by_block_and_by_element(FUNCTIONS[name], images(dtype=dtype))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_images_of_differing_sizes_run_by_block_and_lie_as_by_element(name):
    data = [images(1)[0, : 6 + extra] for extra in range(3)]
    found = by_block.result_of_a_block(FUNCTIONS[name], ListColumn(data))
    assert all(item.flags.c_contiguous for column in found.columns for item in column.values())


BY_AXIS = {"pad", "pad constant", "random_crop", "seeded"}  # these have one number for each axis


def described(name):
    yield (9, 11, 3)
    yield (None, None, 3)
    if name not in BY_AXIS:
        yield (2, None, 11, 3)


@pytest.mark.parametrize(("name", "known"), [(name, known) for name in FUNCTIONS for known in described(name)])
def test_shapes_are_known_before_a_pass(name, known):
    by_block.assert_shape_is_known(FUNCTIONS[name], known)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: image.rotate(x, [0.1] * 5),
        lambda x: image.transform(x, [TURN] * 5),
        lambda x: image.shear_x(x, [1] * 5),
    ],
)
def test_numbers_for_each_of_a_batch_are_not_taken_for_a_block(function):
    by_block.assert_numbers_of_a_batch_are_for_batches(function, images())


def test_pad_writes_where_the_batch_lies():
    ds = ps.Dataset.from_tensor_slices(images()).map(FUNCTIONS["pad"]).batch(4)
    np.testing.assert_array_equal(next(iter(ds)), [FUNCTIONS["pad"](x) for x in images()[:4]])


RANDOM = {
    "image.random_flip_left_right": {},
    "image.random_flip_up_down": {},
    "image.random_crop": {"size": (4, 5, 3)},
    "image.random_rotate": {"max_angle": 0.3, "interpolation": "bilinear", "fill_mode": "wrap", "fill_value": 0.0},
}


@pytest.mark.parametrize("name", RANDOM)
def test_many_elements_draw_at_once_what_each_draws(name):
    one_by_one = by_block.results_of_one_by_one(name, RANDOM[name], images(40))
    assert len({np.asarray(one).tobytes() for one in one_by_one}) == 40


def test_crops_of_any_rank_at_once():
    op, data = RANDOM_OPS["image.random_crop"], np.arange(60).reshape(10, 6)
    keys = np.arange(10, dtype=np.uint64)
    at_once = op.becomes(data, **op.sample(keys, (6,), size=[2]))
    np.testing.assert_array_equal(
        at_once, [op.becomes(row, **op.sample(int(key), (6,), size=[2])) for row, key in zip(data, keys, strict=True)]
    )


@given(st.integers(0, 2**64 - 1), st.lists(st.integers(1, 2**32 - 1), max_size=4), st.floats(-5, 5), st.floats(0, 5))
def test_the_numbers_are_those_of_the_key(key, bounds, low, extent):
    assert drawn.integers(key, bounds).tolist() == [draw(key, i, bound) for i, bound in enumerate(bounds)]
    found = drawn.uniforms(key, 3, low, low + extent)
    assert ((low <= found) & ((found < low + extent) | (extent == 0) | (low + extent == low))).all()
    np.testing.assert_array_equal(drawn.uniforms(key, 3, 0, 1), units(key, 0, 3))


@pytest.mark.parametrize("most", [-0.1, np.inf, np.nan, "x", (0.1, 0.2)])
def test_the_largest_angle_is_a_number_of_radians(most):
    with pytest.raises(ps.errors.InvalidArgumentError, match="random_rotate: max_angle must be a number of radians"):
        image.random_rotate(images()[0], most)


def test_angles_are_drawn_evenly_from_both_sides():
    sample = RANDOM_OPS["image.random_rotate"].sample
    angles = sample(np.arange(2000, dtype=np.uint64), (4, 4, 3), max_angle=2.0)["angles"]
    assert angles.shape == (2000,)
    assert -2 <= angles.min() < -1.9
    assert 1.9 < angles.max() < 2
    assert abs(angles.mean()) < 0.1
    batch = sample(5, (64, 4, 4, 3), max_angle=2.0)["angles"]
    assert len(set(batch.tolist())) == 64


def test_a_batch_is_rotated_image_by_image():
    data = images(3)
    angles = RANDOM_OPS["image.random_rotate"].sample(8, data.shape, max_angle=1.0)["angles"]
    found = image.random_rotate(data, 1.0, seed=8)
    np.testing.assert_array_equal(found, [image.rotate(one, angle) for one, angle in zip(data, angles, strict=True)])
    np.testing.assert_array_equal(found, image.stateless_random_rotate(data, 1.0, seed=8))
