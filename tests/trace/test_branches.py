"""Functions that branch on values: on Blocks they give the bits, random numbers and errors of single elements."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.trace.test_items import graph_of, outcome, same
from tests.trace.test_rowwise import bits

import penstock as ps
from penstock.block.structure import flatten

IMAGES = np.random.default_rng(1).integers(0, 256, (24, 6, 8, 3), np.uint8)
TABLE = np.arange(30)
LIMITS = (3, 11, 17)


def steps(x):
    if x < 3:
        return x * 2
    if x < 11 and x != 5:
        return -x
    return np.abs(x) + 1


def looped(x):
    total = x
    for limit in LIMITS:
        if x > limit:
            total += limit
    return total


def ended(x):
    return {"a": x, "b": x * 2.5 if not x % 3 else np.float64(-0.0), "c": b"odd" if x % 2 else b"even"}


def asked_twice(x):
    small = x < 7
    y = x + 1 if small else x - 1
    return y * 3 if small else y


FUNCTIONS = {
    "steps": steps,
    "looped": looped,
    "ended": ended,
    "asked twice": asked_twice,
    "an expression": lambda x: x if x > 3 else -x,
    "a number": lambda x: x * 2 if x % 4 else x,
    "the larger": lambda x: (max(x, 9), min(x, x * x), x or 5),
    "a member": lambda x: x in LIMITS,
    "constants": lambda x: (x, 7 if x > 3 else 9),
    "shapes": lambda x: np.arange(3) * x if x > 9 else np.ones(4, np.int64) * x,
    "looked up": lambda x: TABLE[x] if x < 10 else x,
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.float32])
def test_each_way_runs_for_the_rows_that_take_it(name, dtype):
    rows = np.random.default_rng(0).integers(0, 20, 60).astype(dtype)
    if name not in ("looked up", "shapes", "the larger") or dtype == np.int64:
        same(FUNCTIONS[name], rows)
    if dtype == np.int64:
        assert graph_of(FUNCTIONS[name], rows) is not None


@given(st.lists(st.integers(-5, 35), min_size=1, max_size=40), st.sampled_from([*FUNCTIONS]))
@settings(max_examples=40, deadline=None)
def test_ways_of_any_rows_and_errors_of_one(rows, name):
    same(FUNCTIONS[name], np.array(rows))


def flipped(image):
    if image.mean() > 127:
        image = ps.image.flip_left_right(image)
    if image[0, 0, 0] > 60:
        return ps.image.resize(image, (4, 4)) / 255.0
    return ps.image.resize(ps.image.random_brightness(image, 0.2), (4, 4))


def drawn(image):
    coin = ps.image.random_brightness(np.zeros((1, 1, 3), np.float32) + image[0, 0, 0] * 0, 0.5)
    if coin[0, 0, 0] > 0:
        image = ps.image.random_flip_left_right(image)
        image = ps.image.random_contrast(image, 0.5, 1.5)
    return image, ps.image.random_hue(image, 0.1)


@pytest.mark.parametrize("function", [flipped, drawn])
def test_what_is_drawn_behind_a_branch_is_the_same(function):
    found = []
    for by_block in (True, False):
        options = ps.Options(seed=3)
        options.experimental_optimization.map_vectorization = by_block
        ds = ps.Dataset.from_tensor_slices(IMAGES).map(function).with_options(options)
        found.append([[bits(leaf) for leaf in flatten(one)[0]] for one in ds.iterator(epoch=0)])
        assert ("branch(" in ds.explain()) == by_block
    assert found[0] == found[1]


def too_many(x):
    for k in range(20):
        if x > k:
            x = x - k
    return x


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (too_many, "into more than 16 ways"),
        (lambda x: x if x > 3 else (x, x), "return different nests"),
        (lambda x: x if x > 3 else 0.5, "its ways return"),
        (lambda x: x if np.stack([x, x]) else 1, "it branches on an array"),
    ],
)
def test_what_has_no_graph_says_why(function, reason):
    ds = ps.Dataset.range(30).map(function)
    assert reason in ds.explain()
    outcomes = [outcome(function, np.arange(30), by_block) for by_block in (True, False)]
    assert outcomes[0] == outcomes[1]


def test_explain_shows_the_ways():
    text = ps.Dataset.range(9).map(lambda x: x * 2 if x > 3 else -x).explain()
    assert "runs by Block: greater → branch(negative | multiply)" in text
