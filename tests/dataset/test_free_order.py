"""`deterministic=False`: the order is free, and still every element comes exactly once, also over a resume."""

import gc
import json
import threading
from collections import Counter
from itertools import islice

import numpy as np
import pytest

import penstock as ps
from penstock.runtime.free_order import Log
from penstock.testing import assert_resumes_exactly, resumed


def plain(x):
    return x * 2 + 1


def branching(x):
    return x * 10 if x % 3 else x + 1


def slow_at_times(x):
    if x % 7 == 0:
        threading.Event().wait(0.001)
    return x if x % 3 else x + 0


def numbers(elements):
    return Counter(int(x) for element in elements for x in np.reshape(element, -1))


MAPPED = {
    "mapped by Block": lambda: ps.Dataset.range(40).map(plain, 4, deterministic=False),
    "mapped per element": lambda: ps.Dataset.range(40).map(branching, 4, deterministic=False),
    "filtered": lambda: ps.Dataset.range(40).map(branching, 4, deterministic=False).filter(lambda x: x % 2 == 0),
    "interleaved": lambda: ps.Dataset.range(6).interleave(ps.Dataset.range, 3, 2, 3, deterministic=False),
    "ahead": lambda: ps.Dataset.range(40).map(branching, 4, deterministic=False).prefetch(3),
}


@pytest.mark.parametrize("name", MAPPED)
def test_every_element_comes_exactly_once_over_a_resume(name):
    assert_resumes_exactly(MAPPED[name](), across=False, ordered=False)


@pytest.mark.parametrize("name", ["mapped per element", "filtered"])
def test_elements_behind_a_shuffle_come_exactly_once_over_a_resume(name):
    assert_resumes_exactly(MAPPED[name]().shuffle(8), across=False, ordered=False)


def test_later_elements_overtake_a_slow_one_and_none_is_lost():
    """Element 0 waits until the consumer has another one in its hands."""
    gate = threading.Event()

    def function(x):
        if x == 0:
            assert gate.wait(30)
        return x if x < 1000 else -x  # a branch: runs per element

    with ps.Dataset.range(60).map(function, 2, deterministic=False).iterator() as elements:
        found = [int(next(elements))]
        gate.set()
        found.extend(int(x) for x in elements)
    assert found[0] != 0
    assert sorted(found) == list(range(60))


@pytest.mark.parametrize("step", range(0, 40, 3))
def test_a_resume_after_overtaking_gives_the_slow_one_once(step):
    def first_is_slow(x, gate):
        if x == 0:
            assert gate.wait(30)
        return x if x < 1000 else -x

    gate = threading.Event()
    ds = ps.Dataset.range(60).map(lambda x: first_is_slow(x, gate), 2, deterministic=False)
    given = []
    with ds.iterator() as elements:
        for _ in range(step):
            given.append(next(elements))
            if len(given) == 30:
                gate.set()
        state = json.loads(json.dumps(elements.state_dict()))
        gate.set()
    rest = list(resumed(ds, state))
    assert numbers(given + rest) == Counter(range(60))


@pytest.mark.parametrize("step", range(0, 12, 2))
def test_batches_in_free_order_hold_every_element_once_over_a_resume(step):
    ds = ps.Dataset.range(50).map(branching, 4, deterministic=False).batch(4, num_parallel_calls=2, deterministic=False)
    given = []
    with ds.iterator() as elements:
        for _ in range(step):
            given.append(next(elements))
        state = elements.state_dict()
    rest = list(resumed(ds, state))
    assert numbers(given + rest) == Counter(int(branching(x)) for x in range(50))


def ones(x):
    return np.repeat(np.int64(x), 1 + int(x) % 3)


def free(ds):
    return ds.map(slow_at_times, 4, deterministic=False)


FREE = free(ps.Dataset.range(1, 30))
# behind a map in free order, steps that keep elements back, and of which each element comes out once
KEPT_BACK = {
    "nothing": lambda ds: ds,
    "shuffle": lambda ds: ds.shuffle(8),
    "two shuffles": lambda ds: ds.shuffle(5, seed=1).shuffle(9, seed=2),
    "shuffle, epochs": lambda ds: ds.shuffle(8).repeat(2),
    "batch": lambda ds: ds.batch(3, num_parallel_calls=2, deterministic=False).unbatch(),
    "window": lambda ds: ds.window(4).flat_map(lambda window: window),
    "windows by key": lambda ds: ds.group_by_window(lambda x: x % 3, lambda _, window: window.batch(4), 4).unbatch(),
    "buckets": lambda ds: ds.bucket_by_sequence_length(lambda x: x % 4, [1, 2, 3], [2, 3, 4, 5]).unbatch(),
    "rows": lambda ds: ds.map(ones).pack(7, open_rows=8).map(lambda row: row["tokens"]),
    "tokens": lambda ds: ds.map(ones).batch_by_tokens(9, sort_window=20),
    "inputs": lambda ds: ds.interleave(lambda x: ps.Dataset.from_tensors(x), 3, num_parallel_calls=2),
    "free twice": lambda ds: ds.shuffle(6).map(lambda x: x, 3, deterministic=False).shuffle(5),
    "epochs, shuffle": lambda ds: ds.shuffle(5).repeat(2).shuffle(8),
    "one behind the other": lambda ds: FREE.concatenate(ds).repeat(2).shuffle(40),
    "made by functions": lambda ds: ds.take(3).flat_map(lambda _: FREE).shuffle(8),
    "in turn": lambda ds: ds.take(5).interleave(lambda _: FREE, 2, num_parallel_calls=2).repeat(2).shuffle(8),
    "in windows": lambda ds: ds.group_by_window(lambda x: x % 3, lambda _, window: free(window), 8).shuffle(9),
    "in windows, twice, in windows": lambda ds: (
        ps.Dataset.range(1, 25)
        .group_by_window(lambda x: x % 3, lambda _, window: free(window).repeat(2), 8)
        .window(4)
        .flat_map(lambda window: window)
    ),
    "all in all": lambda ds: (
        ps.Dataset.range(2).flat_map(lambda _: ps.Dataset.range(2).interleave(lambda _: FREE, 2).repeat(2)).shuffle(9)
    ),
}


@pytest.mark.parametrize("cuts", [1, 2, 5])
@pytest.mark.parametrize("name", KEPT_BACK)
def test_every_element_comes_exactly_once_however_often_a_pass_is_gone_on_with(name, cuts):
    """Also where a step keeps a state that it was itself restored from, in front of what it keeps back."""
    made = KEPT_BACK[name](ps.Dataset.range(1, 60).map(slow_at_times, 4, deterministic=False))
    wanted, padding = numbers(made), Counter({0: 1000})
    for seed in range(3):
        rng, given = np.random.default_rng(seed), Counter()
        elements = made.iterator(executor="inline" if seed == 2 else "thread")  # which workers go on with
        for _ in range(cuts):
            with elements:
                given += numbers(islice(elements, int(rng.integers(1, 14))))
                state = elements.state_dict()
                if seed % 2:
                    state = json.loads(json.dumps(state))
                for _ in islice(elements, int(rng.integers(0, 9))):
                    pass  # lost with the process
            elements = made.iterator()
            elements.load_state_dict(state)
        with elements:
            given += numbers(elements)
        assert given - padding == wanted - padding


def alive(kind):
    gc.collect()
    return [found for found in gc.get_objects() if type(found) is kind]


@pytest.mark.parametrize(("behind", "most"), [("nothing", 3), ("shuffle", 150)])
def test_what_epochs_have_given_is_forgotten(behind, most):
    """But for what a state that somebody keeps has to tell: a shuffle has some 64 of them."""
    before = len(alive(Log))
    free_epochs = ps.Dataset.range(50).map(plain, 4, deterministic=False).repeat()
    with KEPT_BACK[behind](free_epochs).iterator() as elements:
        for _ in islice(elements, 20_000):
            pass
        logs = alive(Log)
        assert len(logs) <= before + most
        assert sum(len(log._kept[1]) for log in logs) < 50 * most


@pytest.mark.parametrize("deterministic", [True, False])
def test_a_cache_in_memory_that_is_gone_is_told_of_where_it_is_filled_in_another_order(deterministic, caplog):
    def made():  # as in another process, which has nothing in memory
        return ps.Dataset.range(20).map(plain, 4, deterministic=deterministic).cache().repeat(2)

    with made().iterator() as elements:
        assert len(list(islice(elements, 30))) == 30
        state = json.loads(json.dumps(elements.state_dict()))
    caplog.clear()
    assert len(list(resumed(made(), state))) == 10
    assert ("in the memory of a process that has ended" in caplog.text) != deterministic
