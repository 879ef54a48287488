"""Functions that use the generators of `random` and `np.random`: seeded for each element, and given back."""

import os
import random
import threading
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.errors import RandomnessWarning
from penstock.functions.generators import generators

RANGE = ps.Dataset.range


OWN = random.Random(3)
AUGMENT = np.sqrt


class Augment:
    def __init__(self, steps):
        self.steps = steps

    def __call__(self, x):
        for step in self.steps:
            x = step(x)
        return self.noise(x)

    def noise(self, x):
        return x + np.random.normal(size=3)


def choose(x):
    return x + random.choice([1, 2, 3]) + random.gauss(0, 1)


def skewed(x):
    """Uses its generators an odd number of times, as no element may meet what another has left."""
    return [np.random.randn() for _ in range(int(x) % 3 + 1)][-1] + random.gauss(0, 1)


FUNCTIONS = {
    "np.random": lambda x: x + np.random.rand(),
    "random": choose,
    "both": skewed,
    "an object": Augment([choose]),
    "with a beginning by Block": lambda x: np.sqrt(x * 2.0 + 1) + np.random.rand(),
    "with an end by Block": lambda x: (x + np.random.randint(100)) * 2 + 1,
    "beside a key": lambda x: (np.random.rand(), ps.element_key() % 1000),
    "seeded by itself": lambda x: (np.random.seed(3), random.random(), np.random.rand())[1:],
}


def values(elements):
    return [
        np.concatenate([np.ravel(part) for part in (x if isinstance(x, tuple) else (x,))]).tolist() for x in elements
    ]


def states():
    kind, *numpy = np.random.get_state()
    return random.getstate(), kind, numpy[0].tolist(), *numpy[1:]


@st.composite
def pipelines(draw):
    """How a function may be called: where, how many elements at a time, and what stands around it."""
    function = FUNCTIONS[draw(st.sampled_from(sorted(FUNCTIONS)))]
    parallel = draw(st.sampled_from([None, 2]))
    executor = draw(st.sampled_from(["auto", "thread", "inline", "process"]))
    shuffled = draw(st.booleans())
    batch = draw(st.sampled_from([0, 4]))
    ahead = draw(st.booleans())

    def make(*, plain=False):
        ds = RANGE(12)
        ds = ds.shuffle(5, seed=3) if shuffled else ds
        ds = ds.map(function) if plain else ds.map(function, num_parallel_calls=parallel, executor=executor)
        ds = ds.batch(batch) if batch else ds
        return ds.prefetch(2) if ahead and not plain else ds

    return make


@settings(max_examples=40, deadline=None)
@given(pipelines(), st.integers(0, 2), st.integers(0, 5), st.sampled_from(["auto", "inline", "thread"]))
def test_the_elements_are_always_the_same(make, epoch, taken, executor):
    expected = values(make(plain=True).iterator(epoch=epoch, executor="inline"))
    before = states()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        elements = make().iterator(epoch=epoch, executor=executor)
        first = values(next(elements) for _ in range(min(taken, len(expected))))
        state = elements.state_dict()
        rest = values(elements)
        resumed = make().iterator()
        resumed.load_state_dict(state)
        again = values(resumed)
    assert first + rest == expected
    assert again == rest
    assert states() == before


def test_each_epoch_and_each_element_has_its_own():
    ds = RANGE(50).map(lambda x: (np.random.rand(), random.random()))
    first, second = values(ds), values(ds)
    assert len({tuple(x) for x in first + second}) == 100
    fresh = RANGE(50).map(lambda x: (np.random.rand(), random.random()))
    assert [values(fresh), values(fresh)] == [first, second]


def test_each_step_has_its_own():
    pair = next(iter(RANGE(1).map(lambda x: np.random.rand()).map(lambda x: (x, np.random.rand()))))
    assert pair[0] != pair[1]


def test_elements_by_number_are_those_of_a_pass():
    ds = RANGE(9).map(FUNCTIONS["both"])
    expected = values(ds.iterator(epoch=0))
    assert values(ds[i] for i in range(9)) == expected
    shuffled = ds.shuffle(ps.ALL, seed=1).prefetch(2)
    assert values(shuffled.iterator(epoch=0)) == values(shuffled.iterator(epoch=0, executor="inline"))


def test_no_other_thread_of_the_process_meets_seeded_generators():
    process, seen = os.getpid(), []

    def where(x):
        seen.append((os.getpid(), threading.current_thread()))  # noticed: it stays in this process
        return x + np.random.rand()

    list(RANGE(20).map(where, num_parallel_calls=4).batch(4).prefetch(2))
    assert set(seen) == {(process, threading.current_thread())}

    def pid(x):
        return os.getpid() if np.random.rand() < 2 else 0

    with_os = RANGE(20).map(pid, num_parallel_calls=4, executor="process")
    assert process not in set(map(int, with_os))


def test_where_they_cannot_be_seeded_a_warning_says_so():
    timed = ps.Options(element_timeout=60.0)
    assert values(RANGE(5).map(FUNCTIONS["both"]).with_options(timed)) == values(RANGE(5).map(FUNCTIONS["both"]))

    def inner(x):
        return RANGE(2).map(choose, num_parallel_calls=2, executor="thread")

    ds = RANGE(3).interleave(inner, num_parallel_calls=2)
    with pytest.warns(RandomnessWarning, match=r"map\(choose\) draws from random.choice, which is no part"):
        list(ds)


class Counting:
    """Uses a generator, and cannot move to another process."""

    calls = 0

    def __call__(self, x):
        self.calls += 1
        return x + np.random.rand()


OPENED = {
    "interleave": lambda ds, inner, parallel: ds.interleave(inner, cycle_length=3, num_parallel_calls=parallel),
    "flat_map": lambda ds, inner, parallel: ds.flat_map(inner).prefetch(parallel or 0),
    "flat_map, map": lambda ds, inner, parallel: ds.flat_map(inner).map(lambda x: x + 1, num_parallel_calls=parallel),
}


@pytest.mark.parametrize("function", [Counting(), choose], ids=["stays", "moves"])
@pytest.mark.parametrize("step", OPENED)
def test_elements_of_data_sets_that_a_step_opens_do_not_depend_on_the_workers(step, function):
    def made(parallel):
        return OPENED[step](RANGE(6), lambda x: RANGE(x, x + 5).map(function), parallel)

    expected = values(made(None).iterator(epoch=1, executor="inline"))
    before = states()
    for parallel in (None, 1, 4, ps.AUTOTUNE):
        for executor in ("auto", "thread", "inline"):
            assert values(made(parallel).iterator(epoch=1, executor=executor)) == expected
    assert states() == before
    assert ("in the consumer's thread, where generators" in made(4).explain()) == (function is not choose)


def test_a_data_set_that_a_function_reads_has_generators_of_its_own():
    inner = RANGE(3).map(lambda x: np.random.rand())

    def both(x):
        first = np.random.rand()
        inside = sum(float(y) for y in inner.iterator(epoch=0))
        return first, inside, np.random.rand()

    def alone(x):
        return np.random.rand(), np.random.rand()

    found = values(RANGE(4).map(both))
    assert [[x[0], x[2]] for x in found] == values(RANGE(4).map(alone))
    assert len({x[1] for x in found}) == 1


def test_an_exception_gives_the_generators_back():
    def fails(x):
        return x + np.random.rand() if x < 2 else 1 // (np.random.rand() > 2)

    before = states()
    with pytest.raises(ZeroDivisionError):
        list(RANGE(5).map(fails))
    assert states() == before


USES = {
    "a module's function": (lambda x: random.random(), {"random": "random.random"}),
    "a method of the same object": (lambda x: random.randint(0, 3), {"random": "random.randint"}),
    "both": (lambda x: np.random.rand() + random.random(), {"numpy": "np.random.rand", "random": "random.random"}),
    "by name": (np.random.poisson, {"numpy": "poisson"}),
    "in a helper": (lambda x: choose(x), {"random": "random.choice"}),
    "in a method": (Augment([]), {"numpy": "np.random.normal"}),
    "in a list of an object": (Augment([choose]), {"random": "random.choice", "numpy": "np.random.normal"}),
    "its own": (lambda x: OWN.random(), {}),
    "a generator of the element": (lambda x: np.random.default_rng(ps.element_key()).random(), {}),
    "none": (lambda x: np.sqrt(x), {}),
}


@pytest.mark.parametrize("case", USES)
def test_the_generators_that_a_function_uses(case):
    function, expected = USES[case]
    assert {name: use.spelled for name, use in generators(function).items()} == expected


def test_a_global_that_becomes_another_is_read_again(monkeypatch):
    def function(x):
        return AUGMENT(x)

    monkeypatch.setitem(globals(), "AUGMENT", np.sqrt)
    assert generators(function) == {}
    monkeypatch.setitem(globals(), "AUGMENT", choose)
    assert set(generators(function)) == {"random"}


def test_a_variable_that_becomes_another_is_read_again():
    used = np.sqrt

    def function(x):
        return used(x)

    assert generators(function) == {}
    used = choose
    assert set(generators(function)) == {"random"}
