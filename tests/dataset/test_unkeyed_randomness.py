"""Functions that draw random numbers outside of the pipeline, and splits of a shuffle: one warning if certain."""

import random
import secrets
import time
import warnings

import numpy as np
import pytest

import penstock as ps
from penstock import hints
from penstock.errors import RandomnessWarning

RANGE = ps.Dataset.range
GENERATOR = np.random.default_rng(3)


@pytest.fixture(autouse=True)
def nothing_was_told(monkeypatch):
    monkeypatch.setattr(hints, "_TOLD", set())


def told(make):
    """What is warned of while a data set is made and read."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in make():
            pass
    return [str(one.message) for one in caught if issubclass(one.category, RandomnessWarning)]


def helper(x):
    return x + np.random.normal()


def branching(x):
    rate = random.random()
    return x if rate < 0.5 else -x


def scanned(function):
    return RANGE(3).scan(np.int64(0), lambda state, x: (state, function(x)))


CERTAIN = {
    "numpy": (scanned, lambda x: x + np.random.rand(), "np.random.rand"),
    "the standard library": (scanned, lambda x: x + random.random(), "random.random"),
    "a generator from outside": (RANGE(3).map, lambda x: x + GENERATOR.random(), "GENERATOR"),
    "secrets": (RANGE(3).map, lambda x: x + secrets.randbelow(3), "secrets.randbelow"),
    "a helper": (scanned, lambda x: helper(x), "np.random.normal"),
    "a branch behind it": (scanned, branching, "random.random"),
    "a predicate": (RANGE(3).take_while, lambda x: np.random.rand() < 0.5, "np.random.rand"),
}


@pytest.mark.parametrize("case", CERTAIN)
def test_what_is_drawn_from_outside_the_pipeline_is_told_once(case):
    make, function, drawn = CERTAIN[case]
    ds = make(function)
    (message,) = told(lambda: ds)
    assert f"uses random numbers of {drawn}, which the pipeline does not seed" in message
    assert "ps.element_key()" in message
    assert told(lambda: ds) == []


def rarely(x):
    return x + np.random.rand() if x > 100 else x


def seeded(x):
    return x + np.random.default_rng(int(x)).random() + random.Random(int(x)).random()


def keyed(x):
    return x + np.random.default_rng(ps.element_key()).random()


def timed(x):
    begun = time.time()
    return x if time.time() >= begun else -x


def reseeds(x):
    np.random.seed(0)
    return x


QUIET = {
    "in a branch": lambda: RANGE(3).map(rarely),
    "in an inner function": lambda: RANGE(3).map(lambda x: [lambda: random.random()][:0] or x),
    "seeded by the element": lambda: RANGE(3).map(seeded),
    "keyed": lambda: RANGE(3).map(keyed),
    "of penstock": lambda: ps.Dataset.from_tensors(np.zeros((2, 2, 3))).map(ps.image.random_flip_left_right),
    "a clock": lambda: RANGE(3).map(timed),
    "a seed": lambda: RANGE(3).map(reseeds),
    "seeded by the engine": lambda: RANGE(3).map(helper).filter(lambda x: random.random() < 0.5).prefetch(1),
    "on purpose": lambda: scanned(helper).with_options(ps.Options(deterministic=False)),
}


@pytest.mark.parametrize("case", QUIET)
def test_what_is_not_certain_is_not_warned_of(case):
    assert told(QUIET[case]) == []


def test_draws_that_a_cache_keeps_are_told_in_one_way_only():
    (message,) = told(lambda: RANGE(3).map(helper).cache())
    assert "stores the first ones" in message


def both(shuffled):
    return lambda: (shuffled.take(2), shuffled.skip(2))


@pytest.mark.parametrize("size", [10, ps.ALL])
@pytest.mark.parametrize("behind", [lambda ds: ds, lambda ds: ds.map(lambda x: x + 1).prefetch(1)])
def test_take_and_skip_of_one_shuffle_are_told(size, behind):
    (message,) = told(both(behind(RANGE(10).shuffle(size))))
    assert "its order differs between epochs" in message
    assert "Split first" in message


def test_and_they_do_leak():
    shuffled = RANGE(100).shuffle(100, seed=1)
    with pytest.warns(RandomnessWarning):
        kept, rest = shuffled.take(20), shuffled.skip(20)
    seen = [{int(x) for x in rest} for _ in range(2)]
    assert {int(x) for x in kept} & (seen[0] | seen[1])


SPLITS = {
    "one order": lambda: both(RANGE(10).shuffle(10, seed=0, reshuffle_each_iteration=False))(),
    "not shuffled": lambda: both(RANGE(10))(),
    "a cache keeps the order": lambda: both(RANGE(10).shuffle(10).cache())(),
    "only taken": lambda: (RANGE(10).shuffle(10).take(2),),
    "a part in the middle": lambda: (RANGE(10).shuffle(10).skip(2).take(3),),
    "two shuffles": lambda: (RANGE(10).shuffle(10).skip(2), RANGE(10).shuffle(10).take(2)),
    "taken twice": lambda: [ds.take(2) for ds in [RANGE(10).shuffle(10)] * 2],
    "all of it": lambda: [cut for ds in [RANGE(10).shuffle(10)] for cut in (ds.take(-1), ds.skip(0))],
}


@pytest.mark.parametrize("case", SPLITS)
def test_other_splits_are_not_told(case):
    assert told(SPLITS[case]) == []


@pytest.mark.parametrize("count", [0, 3, 100, 103])
@pytest.mark.parametrize("shards", [2, 4])
def test_uneven_shards_are_found_where_the_steps_differ(count, shards):
    def consumer(index):
        return RANGE(count).shard(shards, index).batch(13, drop_remainder=True)

    steps = [len(list(consumer(index))) for index in range(shards)]
    for index in range(shards):
        codes = [advice.code for advice in consumer(index).lint()]
        assert ("uneven-shards" in codes) == (len(set(steps)) > 1)
