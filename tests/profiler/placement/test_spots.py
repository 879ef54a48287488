"""Steps that a cache may follow: they return the same in every epoch, and have no side effects."""

import random

import numpy as np
import pytest

import penstock as ps
from penstock.profiler.analysis.places import places
from penstock.profiler.placement.spots import against, covered, turns, why_not_the_same

seen = []


def noted(x):
    seen.append(x)
    return x


def numbers():
    return ps.Dataset.range(10)


def generated():
    yield from range(3)


ALLOWED = {
    "a source": numbers,
    "arithmetic": lambda: numbers().map(lambda x: x * 2),
    "a library": lambda: numbers().map(lambda x: np.fft.fft(np.ones(4)) * x),
    "structure": lambda: numbers().batch(2).unbatch().take(8).skip(1).shard(2, 0).enumerate().prefetch(2),
    "filters": lambda: numbers().filter(lambda x: x > 3).padded_batch(2),
    "files": lambda: ps.Dataset.from_tensor_slices(["a", "b"]).interleave(ps.TFRecordDataset),
    "files by a lambda": lambda: ps.Dataset.from_tensor_slices(["a"]).flat_map(lambda f: ps.TFRecordDataset(f)),
    "an order that stays": lambda: numbers().shuffle(4, reshuffle_each_iteration=False),
    "several": lambda: ps.Dataset.zip(numbers(), numbers().concatenate(numbers()).take(10)),
    "workers in order": lambda: numbers().map(lambda x: x + 1, 2),
    "repeated": lambda: numbers().repeat(2),
}
REFUSED = {
    "another order": (lambda: numbers().shuffle(4), "another order in every epoch"),
    "all in another order": (lambda: numbers().shuffle(ps.ALL), "may yield other elements each time"),
    "behind a shuffle": (lambda: numbers().shuffle(4).map(lambda x: x + 1), "another order in every epoch"),
    "beside a shuffle": (lambda: ps.Dataset.zip(numbers(), numbers().shuffle(4)), "another order in every epoch"),
    "random numbers": (lambda: numbers().map(lambda x: x + random.random()), "uses random numbers of random.random"),
    "element keys": (lambda: numbers().map(lambda x: x + ps.element_key()), "uses random numbers of ps.element_key"),
    "random filters": (lambda: numbers().filter(lambda x: np.random.rand() < 0.5), "numbers of np.random.rand"),
    "effects": (lambda: numbers().map(noted), "may not be left out: it"),
    "a generator": (
        lambda: ps.Dataset.from_generator(generated, output_signature=ps.TensorSpec((), np.int64)),
        "comes from a generator",
    ),
    "no end": (lambda: numbers().repeat(), "has no end"),
    "free order": (lambda: numbers().map(lambda x: x, 2, deterministic=False), "in a different order each time"),
    "random data sets": (
        lambda: numbers().flat_map(lambda x: ps.Dataset.range(3).shuffle(3)),
        "opens data sets that may differ",
    ),
    "a state": (lambda: numbers().scan(0, lambda s, x: (s + x, s)), "may yield other elements each time"),
}


def found(ds, options=None):
    steps = places(ds._plan)
    return against(steps, options or ps.Options())[steps[-1].name]


@pytest.mark.parametrize("name", ALLOWED)
def test_what_gives_the_same_may_be_kept(name):
    assert found(ALLOWED[name]()) is None


@pytest.mark.parametrize("name", REFUSED)
def test_what_may_differ_is_not_kept_and_it_says_why(name):
    build, why = REFUSED[name]
    assert why in found(build())


def test_free_order_by_options_counts_where_there_are_workers():
    free = ps.Options(deterministic=False)
    assert found(numbers().map(lambda x: x), free) is None
    assert "in a different order" in found(numbers().map(lambda x: x, 2), free)
    assert found(numbers().map(lambda x: x, 2, deterministic=True), free) is None


def test_what_a_cache_of_the_user_s_keeps_from_running_needs_none():
    steps = places(numbers().map(lambda x: x).cache().batch(2)._plan)
    assert covered(steps) == {"range#1", "map#1", "cache#1"}


def test_turns_are_counted_over_all_repetitions():
    plan = numbers().map(lambda x: x).repeat(3).batch(2).repeat(2)._plan
    assert {place.name: turns(plan, place.step) for place in places(plan)} == {
        "range#1": 6, "map#1": 6, "repeat#1": 2, "batch#1": 2, "repeat#2": 1,
    }  # fmt: skip


def test_a_call_that_raises_while_it_is_looked_at_is_nobody_s_concern():
    assert why_not_the_same(lambda x: undefined(x)) is not None  # noqa: F821
