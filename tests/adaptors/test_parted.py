"""Parts of a data set: disjoint, together everything but a remainder, and of equally many steps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.golden.golden import assert_golden

import penstock as ps
from penstock.adaptors.loader import Share
from penstock.dataset.frameworks import parted
from penstock.errors import InvalidArgumentError
from penstock.rewrite.driver import optimise


def part(ds, count, index):
    return ps.Dataset._of(parted(ds._plan, count, index), ds.options())


STEPS = {
    "batch": lambda ds, size: ds.batch(size),
    "batch whole": lambda ds, size: ds.batch(size, drop_remainder=True),
    "padded": lambda ds, size: ds.map(lambda x: np.full(int(x) % 3, x)).padded_batch(size, padding_values=-1),
    "map behind": lambda ds, size: ds.batch(size).map(lambda x: x).prefetch(2),
    "none": lambda ds, size: ds,
    "rebatch": lambda ds, size: ds.batch(2).rebatch(size),
}


@given(st.sampled_from(sorted(STEPS)), st.integers(0, 40), st.integers(1, 5), st.integers(1, 4))
def test_parts_are_disjoint_and_of_equal_length(step, size, batch_size, count):
    ds = STEPS[step](ps.Dataset.range(size).shuffle(10), batch_size)
    parts = [[np.asarray(x) for x in part(ds, count, i).iterator(epoch=0)] for i in range(count)]
    assert len({len(one) for one in parts}) == 1
    assert len({str([batch.shape[:1] for batch in one]) for one in parts}) == 1 or step == "rebatch"
    assert len(parts[0]) == part(ds, count, 0).cardinality() or step == "rebatch"
    if step in ("batch", "map behind", "none"):
        flat = [int(x) for one in parts for batch in one for x in np.ravel(batch)]
        assert len(set(flat)) == len(flat) == size - size % count
        assert set(flat) <= set(range(size))


def test_elements_are_parted_before_they_are_batched():
    ds = ps.Dataset.range(9).batch(2).map(lambda x: x).prefetch(1)
    assert [x.tolist() for x in part(ds, 2, 0)] == [[0, 2], [4, 6]]
    assert [x.tolist() for x in part(ds, 2, 1)] == [[1, 3], [5, 7]]


def test_an_endless_data_set_has_endless_parts():
    ds = ps.Dataset.range(5).repeat().batch(2)
    assert [x.tolist() for x in part(ds, 2, 1).take(3)] == [[1, 3], [0, 2], [4, 1]]


def test_repeated_batches_are_parted_in_each_round():
    ds = ps.Dataset.range(5).batch(2).repeat(2)
    assert [x.tolist() for x in part(ds, 2, 1)] == [[1, 3], [1, 3]]


def test_rewrites_carry_the_shard_to_the_source():
    ds = ps.Dataset.range(8).map(lambda x: x * 2).batch(2)
    labels = [node.label for node in optimise(part(ds, 2, 1)._plan, ds.options()).walk()]
    assert labels[-1] == "range(0, 8, 1)[1::2]"


def test_an_unknown_number_of_elements_is_an_error_with_ways_out():
    ds = ps.Dataset.range(9).filter(lambda x: x > 2).batch(2)
    with pytest.raises(InvalidArgumentError) as caught:
        part(ds, 2, 0)
    assert_golden("argument_parted_unknown", str(caught.value))
    known = ps.Dataset.range(9).filter(lambda x: x > 2).assert_cardinality(6).batch(2)
    assert [x.tolist() for x in part(known, 2, 0)] == [[3, 5], [7]]


@given(st.sampled_from(sorted(STEPS)), st.integers(0, 12), st.integers(1, 5), st.integers(2, 4))
def test_parts_without_a_step_are_refused(step, size, batch_size, count):
    ds = STEPS[step](ps.Dataset.range(size), batch_size)
    parts = [[*part(ds, count, i)] for i in range(count)]
    if any(parts) or not [*ds]:
        assert [len([*ds._part(Share(count, i, own=False))]) for i in range(count)] == [len(parts[0])] * count
    else:
        for i in range(count):
            with pytest.raises(InvalidArgumentError, match=rf"Each of {count} ranks needs an element or a full batch"):
                ds._part(Share(count, i, own=False))
