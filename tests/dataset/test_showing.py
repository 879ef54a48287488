"""A look at a data set: its first elements, and what a notebook shows."""

import numpy as np
import pytest

import penstock as ps
from penstock.errors import InvalidArgumentError, InvalidTypeError

RANGE = ps.Dataset.range


@pytest.mark.parametrize("n", [0, 1, 3, 10, 11])
def test_head_is_the_first_elements(n):
    assert RANGE(10).head(n) == list(range(min(n, 10)))


def test_head_of_what_does_not_end():
    assert RANGE(3).repeat().head() == [0, 1, 2, 0, 1]


def test_head_is_no_epoch_of_the_data_set():
    ds = RANGE(50).shuffle(50, seed=1)
    other = RANGE(50).shuffle(50, seed=1)
    first = other.head(50)
    assert first == other.head(50) == list(other) == list(ds)
    assert list(other) == list(ds)


@pytest.mark.parametrize(("n", "kind"), [(-1, InvalidArgumentError), ("3", InvalidTypeError), (1.5, InvalidTypeError)])
def test_head_takes_a_count(n, kind):
    with pytest.raises(kind, match="n must be"):
        RANGE(3).head(n)


def test_a_notebook_shows_plan_and_spec_escaped_and_runs_nothing():
    def function(x):
        raise AssertionError

    function.__name__ = "<b>&"
    shown = RANGE(4).map(function).batch(2)._repr_html_()
    assert "&lt;Dataset batch(2)" in shown
    assert "map(&lt;b&gt;&amp;)" in shown
    assert "range(0, 4, 1)" in shown
    assert "<b>" not in shown
    assert "<table>" not in shown


def test_a_notebook_shows_a_line_for_each_value():
    ds = ps.Dataset.from_tensor_slices({"x": np.zeros((3, 2)), "<y>": (np.arange(3), ["a", "b", "c"])})
    shown = ds._repr_html_()
    assert "<code>&lt;Dataset from_tensor_slices: 3 elements&gt;</code>" in shown
    assert shown.count("<tr>") == 3
    for name, spec in [
        ("x", "TensorSpec(shape=(2,), dtype=float64)"),
        ("&lt;y&gt;.1", "TensorSpec(shape=(), dtype=bytes)"),
    ]:
        assert f'<code>{name}</code></td><td style="text-align: left"><code>{spec}</code>' in shown
    assert ">element<" in RANGE(4)._repr_html_()
