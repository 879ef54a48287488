"""A loader: passes are epochs, and its state goes on where the loop was, in any of the ways a loop ends."""

import gc
import json
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.golden.golden import assert_golden

import penstock as ps
from penstock.adaptors.feed import AheadFeed, DirectFeed
from penstock.adaptors.loader import Loader
from penstock.errors import FailedPreconditionError, InvalidArgumentError


def dataset():
    return ps.Dataset.range(10).shuffle(10).batch(3)


def loader(ahead=False, source=dataset):
    def fed(elements):
        make = lambda batch: batch.tolist()  # noqa: E731
        return AheadFeed(elements, make, 2) if ahead else DirectFeed(elements, make)

    return Loader(source(), fed)


def epochs(count):
    ds = dataset()
    return [[batch.tolist() for batch in ds] for _ in range(count)]


@pytest.mark.parametrize("ahead", [False, True])
def test_passes_are_epochs(ahead):
    one = loader(ahead)
    assert [list(one), list(one), list(one)] == epochs(3)
    assert len(one) == 4


def test_set_epoch_names_the_next_pass():
    one = loader()
    one.set_epoch(2)
    assert [list(one), list(one)] == epochs(4)[2:]


@pytest.mark.parametrize("ahead", [False, True])
def test_a_pass_that_nothing_was_asked_of_is_none(ahead):
    one = loader(ahead)
    iter(one)  # as Lightning asks whether it can
    assert [list(one), list(one)] == epochs(2)
    resumed = loader(ahead)
    resumed.load_state_dict(one.state_dict())
    iter(resumed).close()
    assert resumed.state_dict() == one.state_dict()
    held = iter(resumed)
    resumed.set_epoch(1)
    del held
    assert list(resumed) == epochs(2)[1]


@settings(max_examples=25)
@given(st.booleans(), st.integers(0, 2), st.integers(0, 4), st.sampled_from(["held", "dropped", "closed"]))
def test_a_state_taken_anywhere_goes_on_exactly(ahead, before, taken, left):
    whole = epochs(4)
    one = loader(ahead)
    for _ in range(before):
        list(one)
    running = iter(one)
    for _ in range(taken):
        next(running)
    if left == "closed":
        running.close()
    elif left == "dropped":
        del running
        gc.collect()
    state = json.loads(json.dumps(pickle.loads(pickle.dumps(one.state_dict()))))
    again = loader(not ahead)
    again.load_state_dict(state)
    assert again.state_dict() == state
    assert list(again) == whole[before][taken:]
    assert list(again) == whole[before + 1]


def test_behind_a_whole_pass_comes_the_next_epoch():
    one = loader()
    list(one)
    again = loader()
    again.load_state_dict(one.state_dict())
    assert list(again) == epochs(2)[1]


def test_a_loader_that_was_not_iterated_over_has_a_state():
    again = loader()
    again.load_state_dict(loader().state_dict())
    assert list(again) == epochs(1)[0]


def test_the_state_is_that_of_the_latest_pass():
    one = loader()
    first, second = iter(one), iter(one)
    next(first)
    next(second), next(second)
    del first
    gc.collect()
    again = loader()
    again.load_state_dict(one.state_dict())
    assert list(again) == epochs(2)[1][2:]


def test_a_closed_pass_is_at_its_end():
    running = iter(loader())
    next(running)
    running.close()
    running.close()
    assert list(running) == []


@pytest.mark.parametrize("state", [None, {}, {"version": 1}, [1, 2]], ids=str)
def test_what_is_no_state_is_refused(state):
    with pytest.raises(InvalidArgumentError) as caught:
        loader().load_state_dict(state)
    assert_golden(f"argument_loader_state_{type(state).__name__}_{len(state or ())}", str(caught.value))


def test_a_state_of_another_format_is_refused():
    with pytest.raises(FailedPreconditionError, match="format 9"):
        loader().load_state_dict({"version": 9, "epoch": 0, "elements": None})


def test_a_state_of_another_data_set_is_refused_by_the_pass():
    one, other = loader(), loader(source=lambda: ps.Dataset.range(9).batch(3))
    next(iter(one))
    other.load_state_dict(one.state_dict())
    with pytest.raises(FailedPreconditionError, match="another data set"):
        iter(other)


def test_an_unknown_length_is_a_type_error():
    with pytest.raises(TypeError, match="unknown before an iteration"):
        len(loader(source=lambda: dataset().filter(lambda x: True)))
