"""By Block where it is known to be equal; per element, with the reason, everywhere else."""

from dataclasses import dataclass

import numpy as np
import pytest

import penstock as ps
from penstock.block.block import Block
from penstock.block.column import DenseColumn
from penstock.block.numbers import Numbers
from penstock.physical.transform import MapTransform
from penstock.physical.vectorise import Vectoriser


def block_of(*values):
    return Block.single(DenseColumn(np.array(values)))


def test_the_verdict_names_the_primitives():
    vectoriser = Vectoriser(lambda x: x * 2 + 1)
    assert vectoriser.verdict == "decided at the first element"
    assert [int(x) for x in vectoriser.run(block_of(1, 2), None).elements()] == [3, 5]
    assert vectoriser.verdict == "by Block: multiply → add"


def test_each_kind_of_element_is_decided_on_its_own():
    vectoriser = Vectoriser(lambda x: x / 2)
    assert vectoriser.run(block_of(1, 2), None).elements() == [0.5, 1.0]
    assert vectoriser.run(block_of(1.0, 2.0), None).elements() == [0.5, 1.0]
    small = vectoriser.run(Block.single(DenseColumn(np.array([1, 2], np.int8))), None)
    assert small.columns[0].array.dtype == np.float64


def test_a_block_that_fails_runs_per_element_and_says_so():
    vectoriser = Vectoriser(lambda x, y: x + y)
    structure = Block.from_elements([(1, 2)]).structure
    good = Block(structure, [DenseColumn(np.zeros((2, 3))), DenseColumn(np.zeros((2, 3)))], 2)
    bad = Block(structure, [DenseColumn(np.zeros((2, 3))), DenseColumn(np.zeros((2, 4)))], 2)
    assert vectoriser.run(good, None) is not None
    assert vectoriser.run(bad, None) is None
    outcome = MapTransform(lambda x, y: x + y, "add", "here", vectorise=True).run(bad, Numbers(0))
    assert isinstance(outcome.failures[0][1], ValueError)
    assert "broadcast" in str(outcome.failures[0][1])


@dataclass
class Checked:
    x: float

    def __post_init__(self):
        if self.x < 0:
            message = "below 0"
            raise ValueError(message)


def test_a_class_that_checks_its_fields_is_rebuilt_without_a_call_of_its_code():
    block = Block.from_elements([Checked(1.0), Checked(2.0)])
    assert Vectoriser(lambda checked: checked).run(block, None) is not None
    ds = ps.Dataset.range(3).map(lambda x: Checked(x * 2.0)).map(lambda checked: checked)
    assert [checked.x for checked in ds] == [0, 2, 4]


def test_switched_off_it_is_never_used():
    options = ps.Options()
    options.experimental_optimization.map_vectorization = False

    def function(x):
        return x * 2

    ds = ps.Dataset.range(5).map(function).with_options(options)
    assert "switched off" in ds.explain()
    assert [int(x) for x in ds] == [0, 2, 4, 6, 8]


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: x if x > 3 else (x, x), "branch"),
        (lambda x: np.modf(x), "no vectorised form"),
        (lambda x: print(x) or x, "print"),
    ],
)
def test_explain_says_why_a_function_runs_per_element(function, reason):
    text = ps.Dataset.range(5).map(function).explain()
    assert "runs per element" in text
    assert reason in text


def test_explain_says_what_runs_by_block():
    assert "runs by Block: multiply → add" in ps.Dataset.range(5).map(lambda x: x * 2 + 1).explain()
