"""Where functions run by Block, elements all over the first Blocks are compared, not the first alone."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

import penstock as ps
from penstock.block.block import Block
from penstock.block.column import DenseColumn
from penstock.block.numbers import Numbers
from penstock.physical import vectorise
from penstock.physical.vectorise import Vectoriser
from penstock.trace.drawing import Draws
from penstock.trace.lift import traceable

CALLS = []


def plus_one(column, params, rows, allocate):
    """A block form that is wrong from 5 on."""
    return [DenseColumn(column.array + 1)]


@traceable("test.capped", lambda spec, **_: spec, block=plus_one)
def capped(x):
    CALLS.append(int(x))
    return min(x + 1, np.int64(5))


def block_of(values):
    return Block.single(DenseColumn(np.array(values)))


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    CALLS.clear()
    monkeypatch.setattr(vectorise, "SECONDS", 60)


@pytest.mark.parametrize("place", range(1, vectorise.ELEMENTS))
def test_any_element_of_a_small_block_may_differ(place):
    vectoriser = Vectoriser(lambda x: capped(x))
    assert vectoriser.run(block_of([9 if i == place else 0 for i in range(vectorise.ELEMENTS)]), None) is None
    assert vectoriser.verdict == "per element: as a Block its result was another"
    assert vectoriser.run(block_of([0, 1]), None) is None


@pytest.mark.parametrize("values", [[*[0] * 999, 9], [*range(9), *[0] * 9], [*[0] * 500, *[9] * 300, *[0] * 200]])
def test_elements_all_over_a_large_block_are_compared(values):
    vectoriser = Vectoriser(lambda x: capped(x))
    assert vectoriser.run(block_of(values), None) is None


def test_small_blocks_are_compared_until_they_are_enough():
    vectoriser = Vectoriser(lambda x: capped(x))
    for value in (0, 1, 2):
        assert vectoriser.run(block_of([value]), None).elements() == [value + 1]
    assert vectoriser.run(block_of([7]), None) is None
    assert vectoriser.verdict == "per element: as a Block its result was another"


def test_a_data_set_gives_what_the_function_says():
    assert [int(x) for x in ps.Dataset.range(9).map(lambda x: capped(x))] == [1, 2, 3, 4, 5, 5, 5, 5, 5]


def test_only_a_few_elements_run_twice():
    vectoriser = Vectoriser(lambda x: capped(x))
    for _ in range(3):
        assert vectoriser.run(block_of([0, 1, 2, 3] * 5), None) is not None
    assert len(CALLS) == vectorise.ELEMENTS
    CALLS.clear()
    vectoriser = Vectoriser(lambda x: capped(x))
    for _ in range(20):
        vectoriser.run(block_of([1]), None)
    assert len(CALLS) == vectorise.ELEMENTS


def test_dear_elements_are_two(monkeypatch):
    clock = itertools.count(0, 60)
    monkeypatch.setattr(vectorise, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    vectoriser = Vectoriser(lambda x: capped(x))
    for _ in range(3):
        vectoriser.run(block_of([3, 1, 2, 0]), None)
    assert CALLS == [0, 2], "the last of them first"


@pytest.mark.parametrize("size", [2, 5, 40])
def test_random_functions_are_compared_with_their_own_draws(size):
    images = np.full((size, 4, 4, 3), 100, np.uint8)
    vectoriser = Vectoriser(lambda image: ps.image.random_brightness(image, 0.5))
    draws = Draws(3, Numbers(1000, 2))
    made = vectoriser.run(Block.single(DenseColumn(images)), None, draws)
    assert vectoriser.verdict.startswith("by Block"), vectoriser.verdict
    levels = made.columns[0].array[:, 0, 0, 0]
    assert len(set(levels.tolist())) > 1
    again = Vectoriser(lambda image: ps.image.random_brightness(image, 0.5))
    last = again.run(Block.single(DenseColumn(images[-1:])), None, Draws(3, Numbers(1000 + size - 1, 2)))
    assert last.columns[0].array[0, 0, 0, 0] == levels[-1]


def test_an_element_that_raises_leaves_the_others_by_block():
    good, bad = ps.image.encode_png(np.zeros((2, 2, 1), np.uint8)), b"no picture"
    vectoriser = Vectoriser(lambda x: ps.image.decode_png(x, 1))
    assert vectoriser.run(Block.from_elements([good, bad]), None) is None
    assert vectoriser.run(Block.from_elements([good, good]), None) is not None
    assert vectoriser.verdict.startswith("by Block")


@pytest.mark.parametrize("equal", [True, False])
def test_one_trial_is_enough_for_all_passes(monkeypatch, equal):
    looked = []
    compare = vectorise.equal_blocks
    monkeypatch.setattr(
        vectorise, "equal_blocks", lambda *found: looked.append(1) is None and equal and compare(*found)
    )
    function = eval("lambda x: x * 3 + 1")  # code of its own: what is known of one holds for all that are alike
    ds = ps.Dataset.range(100).map(function)
    counts = []
    for _ in range(3):
        assert list(ds) == [3 * x + 1 for x in range(100)]
        counts.append(len(looked))
    assert 1 <= counts[0] == counts[1] == counts[2]
