"""Callable objects are compared by identity, also if their classes define `==` and `hash`."""

import numpy as np
import pytest

import penstock as ps


class NoHash:
    def __hash__(self):
        raise TypeError("no hash")

    def __call__(self, x):
        return x + 1


class ArrayEqual:
    def __init__(self):
        self.weights = np.arange(3)

    def __eq__(self, other):
        return self.weights == other.weights

    def __hash__(self):
        return 1

    def __call__(self, x):
        return x + 1


class Nothing:
    """A callable that refuses comparison, truth and length."""

    __hash__ = None

    def __eq__(self, other):
        raise RuntimeError("not to be compared")

    def __bool__(self):
        raise RuntimeError("not to be looked at")

    def __len__(self):
        raise RuntimeError("not to be counted")

    def __call__(self, x):
        return x + 1


class AllEqual:
    """A callable that equals all others, and computes something else."""

    def __init__(self, more):
        self.more = more

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 1

    def __call__(self, x):
        return x + self.more


@pytest.mark.parametrize("kind", [NoHash, ArrayEqual, Nothing])
def test_a_pass_an_explanation_and_advice_compare_no_function(kind):
    first, second = kind(), kind()
    ds = ps.Dataset.range(10)
    twice = ds.map(first).filter(lambda x: x >= 0).map(second).map(first)
    assert list(twice) == list(range(3, 13))
    assert list(twice) == list(range(3, 13))
    assert list(ds.map(first, num_parallel_calls=2)) == list(range(1, 11))
    assert [int(x) for x in ds.map(first).concatenate(ds.map(second)).cache()] == [*range(1, 11)] * 2
    assert list(ds.interleave(lambda x: ps.Dataset.range(1).map(first), num_parallel_calls=2)) == [1] * 10
    assert "map" in str(twice.explain())
    twice.batch(2).lint()
    iter(twice).state_dict()


def test_functions_that_call_themselves_equal_are_two():
    first, second = AllEqual(1), AllEqual(10)
    ds = ps.Dataset.range(3)
    assert list(ds.map(first).map(second)) == [11, 12, 13]
    assert list(ds.map(second).concatenate(ds.map(first))) == [10, 11, 12, 1, 2, 3]
    for _ in range(2):
        assert list(ds.map(first)) == [1, 2, 3]
        assert list(ds.map(second)) == [10, 11, 12]
