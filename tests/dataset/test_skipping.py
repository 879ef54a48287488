"""Iterator.skip_steps: elements left out of a pass, made or not."""

import json
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dataset.test_indexing import indexed
from tests.golden.golden import assert_golden
from tests.strategies import MOST, Pipeline, pipelines

import penstock as ps
from penstock import errors
from penstock.testing import assert_same_elements, resumed

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # sums of small integers that overflow
EXECUTORS = st.sampled_from(["inline", "thread"])


def check(dataset, before, count, executor, other):
    """A pass that leaves out `count` elements behind `before`, and one continued from a state saved there."""
    with dataset.iterator(epoch=1, executor="inline") as elements:
        wanted = list(islice(elements, 3 * MOST))
    with dataset.iterator(epoch=1, executor=executor) as elements:
        assert_same_elements(list(islice(elements, before)), wanted[:before])
        elements.skip_steps(count)
        state = json.loads(json.dumps(elements.state_dict()))
        left = wanted[before:][count:]
        found = list(islice(elements, len(left)))
        later = elements.state_dict()
    assert_same_elements(found, left)
    for saved, rest in ((state, left), (later, [])):
        with resumed(dataset, saved, other) as again:
            assert_same_elements(list(islice(again, len(rest))), rest)


@given(indexed(), st.integers(0, 20), st.integers(0, 40), EXECUTORS, EXECUTORS)
def test_a_pass_goes_on_behind_what_is_left_out(pipeline: Pipeline, before, count, executor, other):
    check(pipeline.dataset, before, count, executor, other)


@given(pipelines(), st.integers(0, 20), st.integers(0, 40), EXECUTORS, EXECUTORS)
def test_elements_without_numbers_are_made_and_dropped(pipeline: Pipeline, before, count, executor, other):
    check(pipeline.dataset, before, count, executor, other)


@pytest.mark.parametrize("parallel", [None, 2])
@pytest.mark.parametrize("executor", ["inline", "thread"])
def test_no_function_is_called_for_what_is_left_out(executor, parallel):
    calls = []
    ds = ps.Dataset.range(10**9).shard(2, 1).map(lambda x: calls.append(int(x)) or x, parallel)
    ds = ds.enumerate().batch(4).prefetch(1).repeat(2)
    with ds.iterator(executor=executor) as elements:
        next(elements)
        elements.skip_steps(10**8)
        numbers, values = next(elements)
        assert numbers.tolist() == [4 * (10**8 + 1) + i for i in range(4)]
        assert values.tolist() == [2 * n + 1 for n in numbers.tolist()]
        elements.skip_steps(25 * 10**6 - 1)  # into the second turn
        assert next(elements)[0].tolist() == [4, 5, 6, 7]
    assert not [call for call in calls if 10**8 < call < 8 * 10**8]


@pytest.mark.parametrize("executor", ["inline", "thread"])
def test_failures_count_as_elements(executor):
    def fail(x):
        if x % 3 == 1:
            raise KeyError(int(x))
        return x

    for base in (ps.Dataset.range(20), ps.Dataset.range(20).filter(lambda x: x >= 0)):
        with base.map(fail).iterator(executor=executor) as elements:
            assert next(elements) == 0
            elements.skip_steps(5)
            assert next(elements) == 6
            with pytest.raises(KeyError):
                next(elements)
            elements.skip_steps(3)
            assert next(elements) == 11


def test_skipping_behind_the_end_ends():
    for ds in (ps.Dataset.range(5).batch(2), ps.Dataset.range(5).filter(lambda x: x > 1)):
        elements = iter(ds)
        elements.skip_steps(50)
        assert list(elements) == []
        elements.skip_steps(1)
        assert list(elements) == []


def test_a_negative_count_is_refused():
    with pytest.raises(errors.InvalidArgumentError) as caught:
        iter(ps.Dataset.range(3)).skip_steps(-1)
    assert_golden("argument_skip_steps", f"{type(caught.value).__name__}: {caught.value}")
