"""cache(): one complete pass is kept and served; nothing less, nothing twice."""

import threading
from collections import deque

import numpy as np
import pytest

import penstock as ps
from penstock.testing import assert_resumes_exactly, resumed


@pytest.fixture
def counted():
    """A function that notes its calls, and the list it notes them in."""
    calls = deque()  # and no list: the content of a list a function closes over is part of its fingerprint

    def function(x):
        calls.append(int(x))
        return np.full(3, x)

    return function, calls


@pytest.mark.parametrize("executor", ["inline", "thread"])
def test_an_impure_function_is_called_once_per_element(counted, executor):
    function, calls = counted
    ds = ps.Dataset.range(20).map(function).cache()
    passes = [[int(x[0]) for x in ds.iterator(executor=executor)] for _ in range(3)]
    assert passes == [list(range(20))] * 3
    assert list(calls) == list(range(20))


def test_epochs_of_repeat_read_the_store(counted):
    function, calls = counted
    ds = ps.Dataset.range(10).map(function).cache().repeat(3)
    assert [int(x[0]) for x in ds] == list(range(10)) * 3
    assert list(calls) == list(range(10))


@pytest.mark.parametrize("given", [0, 1, 5, 10])
def test_a_pass_that_stops_early_keeps_nothing(counted, given):
    function, calls = counted
    ds = ps.Dataset.range(10).map(function).cache()
    with ds.iterator(executor="inline") as elements:
        for _ in range(given):
            next(elements)
    calls.clear()
    assert [int(x[0]) for x in ds] == list(range(10))
    assert list(calls) == list(range(10))


def test_data_sets_built_on_one_cache_share_it(counted):
    function, calls = counted
    cached = ps.Dataset.range(10).map(function).cache()
    list(cached.batch(2))
    assert [int(x[0]) for x in cached.take(3)] == [0, 1, 2]
    assert len(calls) == 10


def test_two_calls_of_cache_do_not_share(counted):
    function, calls = counted
    mapped = ps.Dataset.range(10).map(function)
    list(mapped.cache())
    list(mapped.cache())
    assert len(calls) == 20


def test_what_is_kept_cannot_be_written():
    ds = ps.Dataset.range(4).map(lambda x: np.full(3, x)).cache()
    for _ in range(2):
        for element in ds:
            with pytest.raises(ValueError, match="read-only"):
                element[0] = 9


def test_a_step_behind_the_cache_does_not_change_what_is_kept():
    ds = ps.Dataset.range(6).cache().map(lambda x: x * 2).shuffle(3)
    assert sorted(int(x) for x in ds) == sorted(int(x) for x in ds) == [0, 2, 4, 6, 8, 10]


def test_the_pass_kept_is_epoch_0_whichever_epoch_fills_it():
    def build():
        return ps.Dataset.range(30).shuffle(30).cache()

    early = [int(x) for x in build().iterator(epoch=0)]
    late = [int(x) for x in build().iterator(epoch=5)]
    assert early == late


def test_a_shuffle_behind_the_cache_still_reshuffles():
    ds = ps.Dataset.range(30).cache().shuffle(30)
    assert [int(x) for x in ds] != [int(x) for x in ds]


def test_an_error_in_the_first_pass_keeps_nothing():
    fail = [True]

    def function(x):
        if x == 5 and fail[0]:
            raise ValueError("once")
        return x

    ds = ps.Dataset.range(10).map(function).cache()
    with pytest.raises(ValueError, match="once"):
        list(ds)
    fail[0] = False
    assert [int(x) for x in ds] == list(range(10))


def test_a_pass_continued_in_the_middle_keeps_nothing_and_is_right(counted):
    function, calls = counted
    ds = ps.Dataset.range(10).map(function).cache()
    with ds.iterator(executor="inline") as elements:
        for _ in range(4):
            next(elements)
        state = elements.state_dict()
    rest = ps.Dataset.range(10).map(function).cache()
    assert [int(x[0]) for x in resumed(rest, state, "inline")] == list(range(4, 10))
    calls.clear()
    assert [int(x[0]) for x in rest] == list(range(10))
    assert list(calls) == list(range(10))


def test_a_state_taken_before_the_cache_was_full_serves_after():
    ds = ps.Dataset.range(10).map(lambda x: x + 1).cache().batch(3)
    with ds.iterator() as elements:
        next(elements)
        state = elements.state_dict()
    list(ds)
    assert [b.tolist() for b in resumed(ds, state)] == [[4, 5, 6], [7, 8, 9], [10]]


def test_a_full_cache_resumes_at_every_step():
    ds = ps.Dataset.range(12).shuffle(5).cache().repeat(2).batch(5)
    list(ds)
    assert_resumes_exactly(ds, across=False)


def test_passes_that_fill_at_the_same_time_agree():
    ds = ps.Dataset.range(200).map(lambda x: x * 2, 2).cache()
    found = []
    threads = [threading.Thread(target=lambda: found.append([int(x) for x in ds.iterator(epoch=0)])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == [[2 * x for x in range(200)]] * 4
    assert [int(x) for x in ds] == found[0]
