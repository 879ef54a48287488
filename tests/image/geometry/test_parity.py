"""What TensorFlow gave for stored calls: equal bits, but for the last bit of a sine."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from penstock.image.geometry.affine import rotations

STORED = np.load(Path(__file__).parents[2] / "data" / "tensorflow" / "geometry.npz")


def calls():
    """Each call with its result."""
    results, at = STORED["results"], 0
    for op, name, arguments, options, shape, dtype in json.loads(str(STORED["calls"])):
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        yield op, name, arguments, options, results[at : at + size].view(dtype).reshape(shape)
        at += size
    assert at == results.size


CALLS = list(calls())
OPS = sorted({op for op, *_ in CALLS} - {"rotate"})


@pytest.mark.parametrize("op", OPS)
def test_equal_bits(op):
    for found, name, arguments, options, expected in CALLS:
        if found == op:
            result = getattr(ps.image, op)(STORED[name], *arguments, **options)
            np.testing.assert_array_equal(result, expected, f"{op} {name} {arguments} {options}")
            assert result.dtype == expected.dtype


def test_rotate_is_as_near_as_its_sine():
    for op, name, arguments, options, expected in CALLS:
        if op == "rotate":
            result = ps.image.rotate(STORED[name], *arguments, **options)
            levels = 1 if expected.dtype == np.uint8 else 1e-5
            np.testing.assert_allclose(result, expected, rtol=0, atol=levels, err_msg=f"{name} {options}")
            assert result.dtype == expected.dtype


def test_the_numbers_of_a_rotation_are_cosine_and_sine_about_the_centre():
    numbers = rotations(np.array([0, np.pi / 2], np.float32), (2, 3, 5, 1))
    np.testing.assert_allclose(numbers[0], [1, 0, 0, 0, 1, 0, 0, 0], atol=1e-6)
    np.testing.assert_allclose(numbers[1], [0, -1, 3, 1, 0, -1, 0, 0], atol=1e-6)


def test_what_is_stored_covers_the_functions():
    counts = Counter(op for op, *_ in CALLS)
    assert set(counts) >= {"transform", "rotate", "pad", "central_crop", "resize_with_crop_or_pad", "rot90"}
    assert {STORED[name].dtype.name for op, name, *_ in CALLS if op == "transform"} == {
        "uint8",
        "float32",
        "int32",
        "float64",
        "float16",
    }
