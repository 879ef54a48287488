"""What TensorFlow gave for stored calls: equal bits, but for sums and powers."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import penstock as ps

STORED = np.load(Path(__file__).parents[2] / "data" / "tensorflow" / "colour.npz")


def calls():
    """Each call with its result."""
    results, at = STORED["results"], 0
    for op, name, arguments, shape, dtype in json.loads(str(STORED["calls"])):
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        yield op, name, arguments, results[at : at + size].view(dtype).reshape(shape)
        at += size
    assert at == results.size


CALLS = list(calls())
NEARLY = {"adjust_gamma", "per_image_standardization"}  # for floats


@pytest.mark.parametrize("op", sorted({op for op, *_ in CALLS}))
def test_equal_bits(op):
    compared = 0
    for found, name, arguments, expected in CALLS:
        if found == op and not (op in NEARLY and expected.dtype.kind == "f"):
            result = getattr(ps.image, op)(STORED[name], *arguments)
            np.testing.assert_array_equal(result, expected, f"{op} {name} {arguments}")
            assert result.dtype == expected.dtype
            compared += 1
    assert compared or op == "per_image_standardization"


@pytest.mark.parametrize("op", sorted(NEARLY))
def test_sums_and_powers_are_near(op):
    for found, name, arguments, expected in CALLS:
        if found == op and expected.dtype.kind == "f":
            result = getattr(ps.image, op)(STORED[name], *arguments)
            np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-6, err_msg=f"{name} {arguments}")
            assert result.dtype == expected.dtype


def test_what_is_stored_covers_the_functions():
    counts = Counter(op for op, *_ in CALLS)
    assert all(counts[op] >= 60 for op in ("adjust_brightness", "adjust_contrast", "adjust_saturation", "adjust_hue"))
    assert set(counts) > {"rgb_to_hsv", "hsv_to_rgb", "rgb_to_grayscale", "grayscale_to_rgb", *NEARLY}
    assert {STORED[name].dtype.name for op, name, *_ in CALLS if op == "adjust_hue"} == {
        "uint8",
        "float32",
        "int16",
        "uint16",
        "float64",
    }
