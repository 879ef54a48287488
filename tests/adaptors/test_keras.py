"""to_keras: `fit`, `evaluate` and `predict` on every backend that is installed; class weights."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.golden.golden import assert_golden

import penstock as ps
from penstock.adaptors.keras import ClassWeights
from penstock.errors import InvalidArgumentError, MissingDependencyError, PenstockError

SCRIPT = Path(__file__).with_name("keras_fit.py")
needs_keras = pytest.mark.skipif(importlib.util.find_spec("keras") is None, reason="Keras is not installed")


@needs_keras
@pytest.mark.slow
@pytest.mark.parametrize("backend", ["torch", "jax", "tensorflow"])
def test_fit_evaluate_predict(backend):
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed")
    done = subprocess.run(
        [sys.executable, SCRIPT, backend],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    printed, _, last = done.stdout.rstrip().rpartition("\n")
    assert last == "fits"
    assert_golden(f"argument_keras_{backend}", printed)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=8), st.sampled_from(["flat", "column", "one hot"]))
def test_weights_are_those_of_the_classes(classes, form):
    y = np.array(classes)
    given = {"flat": y, "column": y[:, None], "one hot": np.eye(6)[y]}[form]
    x, labels, weights = ClassWeights({1: 5.0, 3: 0.5})(("x", given))
    assert (x, labels is given, weights.dtype) == ("x", True, np.float32)
    assert weights.tolist() == [{1: 5.0, 3: 0.5}.get(c, 1.0) for c in classes]


WRONG = {
    "a_list": lambda: ClassWeights([1.0, 2.0]),
    "empty": lambda: ClassWeights({}),
    "negative": lambda: ClassWeights({-1: 2.0}),
    "no_pair": lambda: ClassWeights({1: 2.0})((1, 2, 3)),
    "no_tuple": lambda: ClassWeights({1: 2.0})({"x": 1}),
    "rank": lambda: ClassWeights({1: 2.0})((1, np.zeros((2, 3, 4)))),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_weights_teach(name):
    with pytest.raises(PenstockError) as caught:
        WRONG[name]()
    assert_golden(f"argument_class_weight_{name}", str(caught.value))


@needs_keras
@pytest.mark.slow
def test_a_data_set_without_batches_is_an_error():
    adapter = ps.Dataset.range(3).batch(4, drop_remainder=True).to_keras()
    with pytest.raises(InvalidArgumentError, match="has no batch for Keras"):
        next(adapter.get_numpy_iterator())


def test_without_keras_the_error_says_what_to_install(monkeypatch):
    from penstock.adaptors.keras import adapter_type

    adapter_type.cache_clear()
    monkeypatch.setitem(sys.modules, "keras", None)
    with pytest.raises(MissingDependencyError) as caught:
        ps.Dataset.range(2).to_keras()
    assert_golden("missing_keras", str(caught.value))
