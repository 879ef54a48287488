"""Functions of `tf` give what TensorFlow gives: value, dtype and shape, from a table that TensorFlow has filled in."""

import importlib.util
import json

import numpy as np
import pytest
from tests.compat.expressions import CLOSE, DRAWN, EXACT, EXPECTED, evaluated

from penstock.compat import tf

STORED = json.loads(EXPECTED.read_text())


def assert_alike(found, expected, how):
    if isinstance(expected, list):
        assert isinstance(found, list)
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_alike(one, other, how)
        return
    assert (found["dtype"], found["shape"]) == (expected["dtype"], expected["shape"])
    if how == "exact":
        assert json.dumps(found["values"]) == json.dumps(expected["values"])
    elif how == "close":
        np.testing.assert_allclose(found["values"], expected["values"], rtol=3e-6)


def runnable(expression):
    """Expressions whose dtype comes with a package of its own are skipped without it."""
    missing = "bfloat16" in expression and importlib.util.find_spec("ml_dtypes") is None
    return pytest.param(expression, marks=pytest.mark.skipif(missing, reason="ml_dtypes is not installed"))


@pytest.mark.parametrize("expression", [runnable(expression) for expression in EXACT])
def test_equal_to_tensorflow(expression):
    assert_alike(evaluated(expression, tf), STORED[expression], "exact")


@pytest.mark.parametrize("expression", CLOSE)
def test_equal_to_tensorflow_to_the_sixth_digit(expression):
    assert_alike(evaluated(expression, tf), STORED[expression], "close")


@pytest.mark.parametrize("expression", DRAWN)
def test_random_functions_give_the_same_kind(expression):
    assert_alike(evaluated(expression, tf), STORED[expression], "kind")


@pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="TensorFlow is not installed")
def test_the_stored_results_are_tensorflows():
    tensorflow = importlib.import_module("tensorflow")

    now = {expression: evaluated(expression, tensorflow) for expression in [*EXACT, *CLOSE]}
    for expression, result in now.items():
        assert_alike(STORED[expression], result, "close" if expression in CLOSE else "exact")
