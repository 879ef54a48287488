"""Counted: the length is known beforehand, and a pass that finds another one says so."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.catalog.counted import counted
from penstock.errors import DataLossError
from penstock.testing import resumed


def threes(count):
    return counted(ps.Dataset.range(9).filter(lambda x: x % 3 == 0), count, "dataset_info.json")


def test_the_length_is_known_through_maps_and_batches():
    ds = threes(3).map(lambda x: x + 1).batch(2)
    assert len(ds) == 2
    assert [batch.tolist() for batch in ds] == [[1, 4], [7]]


@pytest.mark.parametrize(
    ("count", "text"), [(4, "hold only 3 examples, and 4 are on record"), (2, "hold more examples")]
)
@pytest.mark.parametrize("executor", ["thread", "inline"])
def test_another_number_is_an_error_that_names_the_file(count, text, executor):
    with pytest.raises(DataLossError, match=rf"{text}(.|\n)*in file dataset_info.json"):
        list(threes(count).iterator(executor=executor))


@pytest.mark.parametrize("taken", [0, 1, 2, 3])
def test_a_pass_continues_where_it_stopped(taken):
    ds = threes(3)
    iterator = iter(ds)
    for _ in range(taken):
        next(iterator)
    assert [int(x) for x in resumed(ds, iterator.state_dict())] == [0, 3, 6][taken:]
