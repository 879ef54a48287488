"""A random function uses the same random numbers on a whole Block and element by element."""

import numpy as np
import pytest

import penstock as ps
from penstock.block.block import Block
from penstock.block.column import DenseColumn
from penstock.block.numbers import Numbers
from penstock.errors import FailedPreconditionError
from penstock.keys import uniform
from penstock.physical.vectorise import Vectoriser
from penstock.trace.drawing import UNNUMBERED, Draws, drawing, element_key
from penstock.trace.graph import Keys
from penstock.trace.lift import RANDOM_OPS, random_op, tensor, traceable


@traceable("test.shift", lambda spec, **_: tensor(spec))
def shift(value, by):
    return np.asarray(value) + np.asarray(value).dtype.type(by)


def by_how_much(key, shape, *, most):
    return {"by": uniform(key, -most, most) * (1 + len(shape))}


@random_op("test.random_shift", lambda spec, **_: tensor(spec), sample=by_how_much, becomes=shift)
def random_shift(value, most, seed=None):
    return shift(value, **by_how_much(element_key(seed), np.shape(value), most=most))


def image(x):
    return np.full((2, 3), x, np.float32)


def augmented(x):
    return random_shift(random_shift(x, 3.0) * np.float32(2), most=5.0), random_shift(x, 1.0, seed=4)


def opaque(x):
    """Return `augmented(x)`, in a function that has to run per element."""
    globals()["_called"] = True
    return augmented(x)


def made(function, **how):
    ds = ps.Dataset.range(200).map(image).map(function, **how)
    return [np.concatenate([a.ravel(), b.ravel()]) for a, b in ds.iterator(epoch=2)]


@pytest.mark.parametrize("how", [{}, {"num_parallel_calls": 3}, {"num_parallel_calls": 2, "executor": "process"}])
def test_by_block_it_is_what_it_is_by_element(how):
    by_block, by_element = made(augmented, **how), made(opaque)
    assert np.array_equal(by_block, by_element)
    assert len({row.tobytes() for row in by_block}) == 200


def test_it_is_traced_and_named():
    vectoriser = Vectoriser(augmented)
    block = Block.single(DenseColumn(np.zeros((3, 2, 3), np.float32)))
    assert vectoriser.run(block, None, Draws(1, Numbers(7))) is not None
    assert vectoriser.verdict == "by Block: test.random_shift → multiply → test.random_shift → test.random_shift"
    assert RANDOM_OPS["test.random_shift"].becomes is shift


def test_a_parameter_that_differs_between_elements_runs_per_element():
    ds = ps.Dataset.range(1, 6).map(lambda x: (random_shift(image(1), 0.0), x))
    assert [int(x) for _, x in ds] == [1, 2, 3, 4, 5]
    vectoriser = Vectoriser(lambda x: random_shift(x, x))
    assert vectoriser.run(Block.single(DenseColumn(np.ones(3))), None, Draws(1, Numbers(7))) is None
    assert "a parameter of test.random_shift that differs between elements" in vectoriser.verdict


def test_what_draws_keeps_its_place_under_a_shuffle():
    """After the shuffle, the elements would have other numbers."""
    plain = ps.Dataset.range(50).map(image).map(augmented)
    alone = {a.tobytes() for a, _ in plain.iterator(epoch=1)}
    assert {a.tobytes() for a, _ in plain.shuffle(20).iterator(epoch=1)} == alone


def test_where_elements_have_no_numbers_nothing_is_drawn():
    with pytest.raises(FailedPreconditionError, match="the elements of this step have none"):
        UNNUMBERED.of(3)(Keys(0))
    with pytest.raises(FailedPreconditionError, match="the elements of this step have none"), drawing(UNNUMBERED):
        element_key()
