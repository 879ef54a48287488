"""A traced function reads captured values when an iteration begins, as the plain call does."""

import numpy as np
import pytest

import penstock as ps

OFFSET = 1.5
WEIGHTS = np.array([1.0, 2.0])
CONFIG = {"by": 2}


def passes(function, change, count=4):
    """Return the results of iterations with changes between them: first on Blocks, then per element."""
    found = []
    for vectorise in (True, False):
        options = ps.Options()
        options.experimental_optimization.map_vectorization = vectorise
        ds = ps.Dataset.range(4).map(function).with_options(options)
        rows = []
        for number in range(count):
            change(number)
            rows.append([np.asarray(x).tolist() for x in ds])
        found.append(rows)
    return found


def assert_seen(function, change):
    by_block, per_element = passes(function, change)
    assert by_block == per_element
    assert by_block[0] != by_block[1]


def test_a_closure_variable():
    scale = 1.0

    def change(number):
        nonlocal scale
        scale = float(f"{number}.25")  # a new object each time, perhaps with the address of an old one

    assert_seen(lambda x: x * (scale + 1), change)


def test_a_closure_variable_inside_a_helper():
    scale = 1

    def change(number):
        nonlocal scale
        scale = 1000 + number

    def helper(x):
        return x + scale

    assert_seen(lambda x: helper(x) * 2, change)


def test_a_global(monkeypatch):
    assert_seen(lambda x: x + OFFSET, lambda number: monkeypatch.setitem(globals(), "OFFSET", number + 0.5))


def test_an_entry_of_a_dict():
    assert_seen(lambda x: x * CONFIG["by"], lambda number: CONFIG.update(by=number))


def test_a_key_of_a_dict():
    config = {"a": 1}

    def change(number):
        config.clear()
        config["b" if number % 2 else "a"] = 1

    def function(x):
        return x * config.get("a", 5)

    assert_seen(function, change)


@pytest.mark.parametrize("use", ["whole", "entry", "computed"])
def test_the_content_of_an_array(use):
    weights = np.array([1.0, 2.0])

    def change(number):
        weights[:] = number + 1

    functions = {
        "whole": lambda x: x * weights,
        "entry": lambda x: x * weights[0],
        "computed": lambda x: x * (weights + 1),
    }
    assert_seen(functions[use], change)


def test_a_default_argument():
    def function(x, by=2):
        return x * by

    def change(number):
        function.__defaults__ = (number,)

    assert_seen(function, change)


def test_the_code_of_a_function():
    def function(x):
        return x * 2

    def other(x):
        return x * 3

    codes = [function.__code__, other.__code__]

    def change(number):
        function.__code__ = codes[number % 2]

    assert_seen(function, change)


def test_the_shape_of_an_array():
    table = np.zeros((2, 3))

    def change(number):
        table.shape = (2, 3) if number % 2 else (3, 2)

    assert_seen(lambda x: x * (table * 0 + table.shape[0]), change)
