"""The first element in the order of the stream decides the nest, dtypes and ranks of what a map returns."""

import json
import threading
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.block.structure import flatten
from penstock.testing import assert_resumes_exactly

COUNT = 40
SOURCES = ["list", "generator", "range", "json"]


def source(kind, folder):
    if kind == "list":
        return ps.Dataset.from_list(list(range(COUNT)))
    if kind == "generator":
        return ps.Dataset.from_generator(lambda: iter(range(COUNT)))
    if kind == "range":
        return ps.Dataset.range(COUNT)
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps({"x": i}) + "\n" for i in range(COUNT)))
    return ps.JsonLinesDataset(path)


def number(x):
    return int(x["x"]) if isinstance(x, dict) else int(x)


class Pair(NamedTuple):
    left: int
    right: int


def two_dtypes(i):
    return np.float32(i) if i % 3 == 0 else np.int64(i)


def two_ranks(i):
    return np.int64(i) if i % 3 == 0 else np.array([i])


def two_nests(i):
    return (i, None) if i % 4 == 0 else (i, 1)


def two_sets_of_names(i):
    return {"a": i} if i % 4 == 0 else {"b": i, "a": i}


def two_sorts_of_batches(i):
    return np.float32(i) if i // 2 % 2 == 0 else np.int64(i)


def two_dtypes_after_failures(i):
    if i < 2:
        raise ValueError(i)
    return np.float32(i) if i % 2 == 0 else np.int64(i)


FUNCTIONS = [two_dtypes, two_ranks, two_nests, two_sets_of_names, two_sorts_of_batches, two_dtypes_after_failures]


class Delayed:
    """A function whose calls for the first elements end after a later element was begun, also in other processes."""

    def __init__(self, function, folder):
        self.function = function
        self.begun = str(folder / "begun")

    def __call__(self, x):
        i = number(x)
        if i < 3:
            ends = time.monotonic() + 5
            while not Path(self.begun).exists() and time.monotonic() < ends:
                threading.Event().wait(0.001)
        if i == 6:
            Path(self.begun).touch()
        return self.function(i)


def listed(ds, executor, batch=0):
    ds = ds.batch(batch) if batch else ds
    return [repr(x) for x in ds.ignore_errors().iterator(executor=executor)]


def check(function, batch, executor, ds, folder):
    wanted = listed(ds.map(lambda x: function(number(x))), "inline", batch)
    assert listed(ds.map(Delayed(function, folder), num_parallel_calls=4), executor, batch) == wanted


@pytest.mark.parametrize("batch", [0, 2, 16])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_a_later_element_that_is_done_first_decides_nothing(function, batch, tmp_path):
    check(function, batch, "thread", ps.Dataset.range(COUNT), tmp_path)


@pytest.mark.parametrize("executor", ["thread", "process"])
@pytest.mark.parametrize("kind", SOURCES)
def test_the_source_and_the_executor_make_no_difference(kind, executor, tmp_path):
    check(two_dtypes_after_failures, 0, executor, source(kind, tmp_path), tmp_path)


def test_the_size_of_blocks_makes_no_difference():
    def ranks(x):
        return np.zeros((2,) * (x % 3 // 2))

    ds = ps.Dataset.range(300)
    for function in (two_dtypes, two_sorts_of_batches, ranks):
        wanted = [x for x in range(300) if repr(type(function(x))) == repr(type(function(0)))]
        wanted = [x for x in wanted if np.ndim(function(x)) == 0]
        whole = ds.map(lambda x, function=function: (x, function(int(x))), num_parallel_calls=3).ignore_errors()
        for cut in (ds.batch(7).unbatch(), ds.batch(100).unbatch(), ds):
            found = cut.map(lambda x, function=function: (x, function(int(x))), num_parallel_calls=3).ignore_errors()
            assert [int(x) for x, _ in found] == [int(x) for x, _ in whole] == wanted


def test_the_first_element_of_each_of_several_maps_decides(tmp_path):
    """The second map sees only what the first may give; what a filter takes away has decided before."""

    def second(x):
        return np.float64(x) if x < 9 else np.float32(x)

    ds = ps.Dataset.range(COUNT)
    plain = ds.map(two_dtypes).filter(lambda x: x > 2).map(second)
    first = Delayed(two_dtypes, tmp_path)
    raced = ds.map(first, num_parallel_calls=4).filter(lambda x: x > 2).map(second, num_parallel_calls=4)
    assert listed(raced, "thread") == listed(plain, "inline") == [repr(np.float64(x)) for x in (3, 6)]
    joined = ds.map(Delayed(two_dtypes, tmp_path), num_parallel_calls=4).map(second, num_parallel_calls=4)
    assert listed(joined, "thread") == listed(ds.map(two_dtypes).map(second), "inline")


@pytest.mark.parametrize("function", [two_dtypes, two_ranks, two_nests, two_sets_of_names, two_sorts_of_batches])
def test_it_decides_also_for_those_after_a_resume(function):
    ds = ps.Dataset.range(10).map(lambda x: function(int(x)), num_parallel_calls=2).ignore_errors()
    assert_resumes_exactly(ds)
    assert_resumes_exactly(ds.batch(2))
    assert_resumes_exactly(ps.Dataset.range(6).map(function).take(6).shuffle(ps.ALL, seed=1).ignore_errors())


def test_in_free_order_all_have_one_dtype(tmp_path):
    ds = ps.Dataset.range(COUNT).map(Delayed(two_dtypes, tmp_path), num_parallel_calls=4, deterministic=False)
    found = list(ds.ignore_errors())
    assert len({x.dtype for x in found}) == 1
    assert sorted(map(int, found)) == [x for x in range(COUNT) if two_dtypes(x).dtype == found[0].dtype]


def test_worker_processes_of_a_sequential_map_follow_the_first_element():
    ds = ps.Dataset.range(COUNT).map(lambda x: two_dtypes(int(x)), executor="process")
    assert listed(ds, "thread") == listed(ds, "inline") == [repr(np.float32(x)) for x in range(0, COUNT, 3)]


def test_elements_of_a_class_whose_kind_no_state_holds_resume_too():
    ds = ps.Dataset.range(6).map(lambda x: Pair(x, x + 1), num_parallel_calls=2)
    assert_resumes_exactly(ds)


def made_or_error(ds, index):
    try:
        return ds.at(index)
    except Exception as error:
        return type(error)


def kind(element):
    leaves, structure = flatten(element)
    return structure, [(getattr(leaf, "dtype", type(leaf)), np.ndim(leaf)) for leaf in leaves]


@settings(max_examples=30)
@given(st.sampled_from(FUNCTIONS), st.permutations(range(10)), st.sampled_from([0, 2, 3]))
def test_no_element_read_by_index_decides_for_another(function, numbers, batch):
    def made():
        ds = ps.Dataset.range(10).map(function).map(str if function is two_ranks else lambda *x: x)
        return ds.batch(batch) if batch else ds

    ds = made()
    for i in numbers[:3]:
        i = min(i, len(ds) - 1)
        assert repr(made_or_error(ds, i)) == repr(made_or_error(made(), i))


STEPS = {
    "take": lambda ds: ds.take(COUNT),
    "zip": lambda ds: ps.Dataset.zip(ds, ps.Dataset.range(COUNT)),
    "batch": lambda ds: ds.batch(2),
    "unbatch": lambda ds: ds.batch(3).unbatch(),
    "concatenate": lambda ds: ds.concatenate(ds.map(lambda *x: str(x))),
    "split": lambda ds: ds.split([0.5, 0.5])[1],
}


@settings(max_examples=60)
@given(st.sampled_from(FUNCTIONS), st.sampled_from([*STEPS]), st.integers(0, 20), st.sampled_from(["inline", "thread"]))
def test_of_shuffled_numbers_the_first_that_can_be_made_decides(function, step, seed, executor):
    parallel = None if executor == "inline" else 3
    ds = STEPS[step](ps.Dataset.range(COUNT).map(lambda x: function(int(x)), num_parallel_calls=parallel))
    shuffled = ds if step == "split" else ds.shuffle(ps.ALL, seed=seed, reshuffle_each_iteration=False)
    alone = [x for i in range(len(shuffled)) if type(x := made_or_error(shuffled, i)) is not type]
    assert listed(shuffled, executor) == [repr(x) for x in alone if kind(x) == kind(alone[0])]
