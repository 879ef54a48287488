"""Random colours follow from the element: the same on any executor, in any Block, after a resume."""

import pickle

import numpy as np
import pytest

import penstock as ps
from penstock.image.colour import arguments as draws
from penstock.keys import fold, uniform
from penstock.trace.lift import RANDOM_OPS
from penstock.trace.purity import why_impure

IMAGES = np.random.default_rng(7).integers(0, 256, (12, 6, 5, 3), dtype=np.uint8)
FORMS = [
    ("brightness", (0.3,), "delta", (-0.3, 0.3)),
    ("hue", (0.2,), "delta", (-0.2, 0.2)),
    ("contrast", (0.5, 1.5), "contrast_factor", (0.5, 1.5)),
    ("saturation", (0.5, 1.5), "saturation_factor", (0.5, 1.5)),
]
NAMES = [name for name, *_ in FORMS]


def named(prefix, name):
    return getattr(ps.image, f"{prefix}_{name}")


@pytest.mark.parametrize(("name", "arguments", "parameter", "bounds"), FORMS, ids=NAMES)
def test_a_seed_gives_the_deterministic_function_with_a_drawn_number(name, arguments, parameter, bounds):
    for seed in (0, 7, (1, 2), (2, 1), (-1, 3)):
        key = fold(*np.atleast_1d(seed).tolist())
        drawn = uniform(key & (1 << 64) - 1, *bounds)
        expected = named("adjust", name)(IMAGES, drawn)
        np.testing.assert_array_equal(named("stateless_random", name)(IMAGES, *arguments, seed), expected)
        if np.ndim(seed) == 0:
            np.testing.assert_array_equal(named("random", name)(IMAGES, *arguments, seed=seed), expected)


@pytest.mark.parametrize(("name", "arguments", "parameter", "bounds"), FORMS, ids=NAMES)
def test_what_is_sampled(name, arguments, parameter, bounds):
    op = RANDOM_OPS[f"image.random_{name}"]
    options = dict(zip(["max_delta"] if len(arguments) == 1 else ["lower", "upper"], arguments, strict=True))
    keys = np.random.default_rng(0).integers(0, 2**64, 4000, dtype=np.uint64)
    sampled = op.sample(keys, (6, 5, 3), **options)
    assert set(sampled) == {parameter}
    numbers = sampled[parameter]
    assert numbers.shape == keys.shape
    assert numbers.tolist() == [op.sample(int(key), (6, 5, 3), **options)[parameter] for key in keys]
    low, high = bounds
    assert ((numbers >= low) & (numbers < high)).all()
    counts, _ = np.histogram(numbers, 10, bounds)
    assert (abs(counts - 400) < 100).all()  # five standard deviations
    assert op.becomes is named("adjust", name)


@pytest.mark.parametrize(("name", "arguments", "parameter", "bounds"), FORMS, ids=NAMES)
@pytest.mark.parametrize("seed", [None, 5])
def test_in_a_data_set_each_element_draws_its_own(name, arguments, parameter, bounds, seed):
    def change(image):
        return named("random", name)(image, *arguments, seed=seed)

    ds = ps.Dataset.from_tensor_slices(IMAGES).map(change)
    first = list(ds.iterator(epoch=0))
    again = list(ds.map(lambda x: x).batch(5).unbatch().iterator(epoch=0, executor="inline"))
    np.testing.assert_array_equal(first, again)
    assert (np.array(first) != list(ds.iterator(epoch=1))).any()
    changes = {tuple(np.subtract(new, old, dtype=int).ravel()) for new, old in zip(first, IMAGES, strict=True)}
    assert len(changes) == len(IMAGES)


@pytest.mark.parametrize(("name", "arguments", "parameter", "bounds"), FORMS, ids=NAMES)
def test_a_block_draws_what_its_elements_draw(name, arguments, parameter, bounds):
    function = named("random", name)

    def traced(image):
        return function(image, *arguments)

    def as_written(image):
        return function(pickle.loads(pickle.dumps(image)), *arguments)

    assert why_impure(traced) is None
    assert "pickle" in why_impure(as_written)
    for images in (IMAGES, IMAGES.astype(np.float32) / 255):
        ds = ps.Dataset.from_tensor_slices(images)
        np.testing.assert_array_equal(list(ds.map(traced)), list(ds.map(as_written)))


@pytest.mark.parametrize(("name", "arguments", "parameter", "bounds"), FORMS, ids=NAMES)
def test_outside_a_data_set_every_call_differs(name, arguments, parameter, bounds):
    made = [named("random", name)(IMAGES[0], *arguments) for _ in range(8)]
    assert any((image != made[0]).any() for image in made[1:])


def test_nothing_to_draw_from():
    assert draws.around_zero("random_hue", 3, 0) == 0
    np.testing.assert_array_equal(ps.image.random_brightness(IMAGES, 0), IMAGES)
