"""A changed state is refused, whatever was changed; a stored and restored state is not."""

import copy
import json
import pickle
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import Pipeline, pipelines

import penstock as ps
from penstock.errors import DataLossError, FailedPreconditionError, InvalidArgumentError
from penstock.runtime import sealed
from penstock.testing import resumed

VALUES = [None, True, -1, 0, 1, 2, 7, 10**15, -(10**30), 0.5, float("nan"), "", "x", [], [0], {}, {"below": 1}]


def places(value, at=()):
    """Yield every place in nested lists and dicts."""
    yield at
    if isinstance(value, (list, dict)):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*at, key))


def edited(state, choose):
    """Return the state with one place changed, removed, doubled or swapped."""
    found = copy.deepcopy(state)
    *way, last = choose([place for place in places(found) if place])
    inside = found
    for key in way:
        inside = inside[key]
    change = choose(["set", "set", "set", "drop", "double", "swap"])
    if change == "set":
        inside[last] = choose(VALUES)
    elif change == "drop":
        del inside[last]
    elif isinstance(inside, list):
        inside[last:] = inside[last:] * 2 if change == "double" else inside[last:][::-1]
    else:
        inside[f"{last} "] = inside.pop(last)
    return found


def as_text(state):
    return json.dumps(state, sort_keys=True)


@given(pipelines(most_steps=3), st.integers(0, 9), st.integers(0, 2**32))
def test_an_edited_state_is_refused_at_once(pipeline: Pipeline, taken, seed):
    with pipeline.dataset.iterator(epoch=0, executor="inline") as elements:
        for _ in zip(range(taken), elements, strict=False):
            pass
        state = json.loads(json.dumps(elements.state_dict()))
    choose = random.Random(seed).choice
    for _ in range(10):
        changed = edited(state, choose)
        if as_text(changed) == as_text(state):
            continue
        with (
            pipeline.dataset.iterator(epoch=0, executor="inline") as other,
            pytest.raises((DataLossError, InvalidArgumentError, FailedPreconditionError)),
        ):
            other.load_state_dict(changed)


@pytest.mark.parametrize("name", ["skip", "epoch"])
def test_a_number_that_cannot_be_is_refused_even_if_the_checksum_fits(name):
    ds = ps.Dataset.range(9).repeat()
    state = iter(ds).state_dict()
    for value in (-1, None, True, "3", 0.5, [1]):
        changed = {key: part for key, part in state.items() if key not in ("checksum", "version")}
        with pytest.raises(InvalidArgumentError, match=f"{name} is a count"):
            iter(ds).load_state_dict(sealed.sealed({**changed, name: value}))


def test_a_place_far_behind_does_not_come_through():
    ds = ps.Dataset.range(9).repeat()
    with pytest.raises(DataLossError, match="skip_steps"):
        iter(ds).load_state_dict({**iter(ds).state_dict(), "skip": 10**15})


def test_an_iterator_that_refused_a_state_goes_on():
    it = iter(ps.Dataset.range(4))
    next(it)
    with pytest.raises(DataLossError):
        it.load_state_dict({**it.state_dict(), "epoch": 1})
    assert [int(x) for x in it] == [1, 2, 3]


def test_a_state_of_the_version_before_is_refused_with_what_to_do():
    state = {"version": 2, "plan": "0" * 32, "steps": [], "epoch": 0, "stages": [0, 0], "skip": 0}
    with pytest.raises(FailedPreconditionError, match="Finish the epoch"):
        iter(ps.Dataset.range(4)).load_state_dict(state)


def stored(value):
    """Return the state as some formats restore it: other classes, other order."""
    if isinstance(value, dict):
        return {name: stored(part) for name, part in reversed(value.items())}
    if isinstance(value, (list, tuple)):
        return tuple(stored(part) for part in value)
    return np.int64(value) if type(value) is int and abs(value) < 2**62 else value


@given(pipelines(most_steps=3), st.integers(0, 9))
def test_a_state_may_be_stored_in_any_way(pipeline: Pipeline, taken):
    with pipeline.dataset.iterator(epoch=0, executor="inline") as elements:
        for _ in zip(range(taken), elements, strict=False):
            pass
        state = elements.state_dict()
    for way in (lambda s: json.loads(json.dumps(s, sort_keys=True)), lambda s: pickle.loads(pickle.dumps(s)), stored):
        assert sealed.opened(way(state))["plan"] == state["plan"]


@given(
    st.recursive(
        st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_what_is_laid_flat_comes_back(value):
    for _ in range(sealed._DEEP):
        value = {"below": value, "skip": 3} if isinstance(value, list) else [value, 1]
    flat = sealed._flat(value)
    assert sealed._depth(flat) <= 5
    assert sealed._nested(json.loads(json.dumps(flat))) == value


def test_the_side_file_may_be_moved(tmp_path):
    ds = ps.Dataset.range(9).scan(np.zeros(1 << 12), lambda state, x: (state + x, state[0] + x))
    it = iter(ds)
    next(it)
    state = it.state_dict(side_file=tmp_path / "side")
    (tmp_path / "side").rename(tmp_path / "moved")
    state["side_file"]["path"] = str(tmp_path / "moved")
    assert [float(x) for x in resumed(ds, state)] == [float(x) for x in it]


def test_the_checksum_of_a_state_is_that_of_earlier_releases():
    state = sealed.sealed({"plan": "0" * 32, "epoch": 1, "stages": [3, {"a": "b"}], "skip": 0})
    assert state["checksum"] == "aa46d1e724c45d7c001a3bf9a832204d"
    assert sealed.opened(state)["stages"] == [3, {"a": "b"}]
