"""`Dataset.statistics`: what numpy computes of all values at once, from one iteration."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import penstock as ps
from penstock.errors import InvalidArgumentError, InvalidTypeError


def check(found, values, axis=None):
    """The statistics are those of `values`, an array with an axis of elements in front."""
    wide = values.astype(np.float64)
    count = values.size if axis is None else values.size // values.shape[-1]
    axes = axis if axis is None else tuple(range(values.ndim - 1))
    assert found.count == count
    np.testing.assert_allclose(found.mean, wide.mean(axes), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.variance, wide.var(axes), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found.std, wide.std(axes), rtol=1e-10, atol=1e-5)
    np.testing.assert_array_equal(found.min, values.min(axes))
    np.testing.assert_array_equal(found.max, values.max(axes))
    assert np.asarray(found.min).dtype == np.asarray(found.max).dtype == values.dtype
    assert np.asarray(found.mean).dtype == np.float64


@given(
    st.sampled_from([np.uint8, np.int16, np.float32, np.float64, np.bool_]).flatmap(
        lambda dtype: hnp.arrays(
            dtype,
            hnp.array_shapes(min_dims=1, max_dims=4, max_side=5),
            elements={"min_value": -1000, "max_value": 1000} if np.dtype(dtype).kind == "f" else None,
        )
    ),
    st.booleans(),
)
def test_they_are_those_of_all_values(values, known):
    """Also of elements whose shape is known only when they come."""
    ds = ps.Dataset.from_tensor_slices(values)
    if not known:
        seen = []
        ds = ds.map(lambda x: seen.append(1) or np.asarray(x).copy())
    check(ds.statistics(), values, None if values.ndim == 1 else -1)


def test_many_batches():
    values = np.random.default_rng(0).normal(1e6, 1, (1000, 700)).astype(np.float32)
    check(ps.Dataset.from_tensor_slices(values).statistics(), values, -1)
    numbers = np.arange(200_000)
    check(ps.Dataset.from_tensor_slices(numbers).statistics(), numbers)


def test_small_deviations_from_a_large_mean_are_kept():
    values = 1e9 + np.arange(200_000, dtype=np.float64) % 2
    found = ps.Dataset.from_tensor_slices(values).statistics()
    assert (found.mean, found.variance) == (1e9 + 0.5, 0.25)


def test_nests():
    images = np.random.default_rng(0).integers(0, 256, (9, 4, 5, 3), np.uint8)
    nest = {"image": images, "name": [b"a"] * 9, "pair": (np.arange(9), np.ones((9, 2), np.float32))}
    found = ps.Dataset.from_tensor_slices(nest).statistics()
    check(found["image"], images, -1)
    check(found["pair"][0], np.arange(9))
    check(found["pair"][1], np.ones((9, 2), np.float32), -1)
    assert found["name"] is None


def test_images_of_differing_size_and_sounds_of_differing_length():
    images = [np.random.default_rng(n).integers(0, 256, (n, 4, 3), np.uint8) for n in (2, 5, 3)]
    sounds = [np.arange(n, dtype=np.float32) for n in (4, 4, 2, 0, 7)]
    found = ps.Dataset.from_list(images).statistics()
    check(found, np.concatenate(images), -1)
    check(ps.Dataset.from_list(sounds).statistics(), np.concatenate(sounds))
    ragged = ps.RaggedTensor.stack([sounds[0], sounds[2]])
    found = ps.Dataset.from_tensors(ragged).concatenate(ps.Dataset.from_tensors(ragged)).statistics()
    check(found, np.tile(ragged.flat_values, 2))


def test_they_normalise():
    images = np.random.default_rng(0).integers(0, 256, (9, 4, 5, 3), np.uint8)
    ds = ps.Dataset.from_tensor_slices(images)
    found = ds.statistics()
    normalised = np.stack(list(ds.map(lambda image: ps.image.normalize(image, found.mean, found.std))))
    np.testing.assert_allclose(normalised.mean((0, 1, 2)), 0, atol=1e-6)
    np.testing.assert_allclose(normalised.std((0, 1, 2)), 1, atol=1e-6)


def test_it_is_an_iteration_of_its_own():
    ds = ps.Dataset.range(20).shuffle(20)
    first = [int(x) for x in ds.iterator(epoch=0)]
    ds.statistics()
    assert [int(x) for x in ds] == first


def test_the_result_does_not_depend_on_the_parallelism():
    values = np.random.default_rng(0).normal(size=(3000, 40))
    ds = ps.Dataset.from_tensor_slices(values)
    one, other = (ds.map(lambda x: x * 3, num_parallel_calls=calls).statistics() for calls in (None, 2))
    np.testing.assert_array_equal(one.mean, other.mean)
    np.testing.assert_array_equal(one.variance, other.variance)


@pytest.mark.parametrize(
    ("ds", "text"),
    [
        (ps.Dataset.range(3).repeat(), r"statistics needs a data set that ends.*\n.*take"),
        (ps.Dataset.range(0), "found none"),
        (ps.Dataset.from_tensor_slices([b"a"]), r"real numbers, and found none.\n.*Decode"),
        (ps.Dataset.from_tensors(np.complex64(1)), "found none"),
    ],
)
def test_without_numbers(ds, text):
    with pytest.raises(InvalidArgumentError, match=text):
        ds.statistics()


def test_sparse_tensors_must_be_made_dense():
    ds = ps.Dataset.from_tensors(ps.SparseTensor(np.array([[0]]), np.array([1]), np.array([2])))
    with pytest.raises(InvalidTypeError, match="to_dense"):
        ds.statistics()
