"""assert_cardinality: the length is known beforehand, and a pass that finds another one says so."""

import pytest
from tests.golden.golden import assert_golden
from tests.positions import assert_continues_everywhere, positions, texts

import penstock as ps
from penstock.errors import DataLossError, FailedPreconditionError
from penstock.plan.stateful import AssertCardinality


def threes(count, **more):
    ds = ps.Dataset.range(9).filter(lambda x: x % 3 == 0)
    return ds._then(AssertCardinality, expected_cardinality=count, **more)


def test_the_length_is_known_through_maps_and_batches():
    ds = threes(3).map(lambda x: x + 1).batch(2)
    assert len(ds) == 2
    assert texts(list(ds)) == [[1, 4], [7]]


@pytest.mark.parametrize("want", [1, 2, 100])
@pytest.mark.parametrize(("count", "given"), [(4, [0, 3, 6]), (2, [0, 3]), (1, [0]), (0, []), (-1, [0, 3, 6])])
def test_another_number_is_an_error_behind_the_elements_and_then_the_end(count, given, want):
    found = positions(threes(count), want)
    assert texts(found) == [*given, "FailedPreconditionError"]
    assert_golden(f"element_stateful_cardinality_{count}", f"{type(found[-1]).__name__}: {found[-1]}")


@pytest.mark.parametrize("executor", ["thread", "inline"])
@pytest.mark.parametrize("count", [4, 2])
def test_a_number_from_a_file_makes_it_data_loss(count, executor):
    with pytest.raises(DataLossError, match=r"in file dataset_info.json"):
        list(threes(count, file="dataset_info.json").iterator(executor=executor))


@pytest.mark.parametrize("count", [-1, 0, 2, 3, 4])
def test_a_pass_continues_where_it_stopped(count):
    assert_continues_everywhere(threes(count))


def test_no_element_and_infinitely_many():
    assert list(ps.Dataset.range(0).assert_cardinality(0)) == []
    endless = ps.Dataset.counter().filter(lambda x: x % 2 == 0).assert_cardinality(ps.INFINITE_CARDINALITY)
    assert endless.cardinality() == ps.INFINITE_CARDINALITY
    assert texts(list(endless.take(3))) == [0, 2, 4]


def test_an_element_that_fails_is_one_of_those_expected():
    failing = ps.Dataset.range(4).scan(0, lambda s, x: (s, 6 // int(x != 1)))
    assert texts(positions(failing.assert_cardinality(4))) == [6, "ZeroDivisionError", 6, 6]
    last = failing.take(3).scan(0, lambda s, x: (s, x)).skip(1)
    assert isinstance(positions(last.assert_cardinality(0))[0], FailedPreconditionError)
    assert_continues_everywhere(failing.assert_cardinality(2))
