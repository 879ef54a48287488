"""`map(executor=)`: who calls a function; never what comes of it."""

import os
import threading

import numpy as np
import pytest
from tests.golden.golden import assert_golden

import penstock as ps
from penstock import errors
from penstock.plan.fingerprint import fingerprint
from penstock.plan.node import EXECUTORS
from penstock.testing import assert_same_elements, resumed

PARALLEL = [None, 1, 2, ps.AUTOTUNE]


def triple(x):
    return x * 3 if x % 2 else -x


def place(x):
    return x, os.getpid(), threading.get_ident() % (1 << 62)


def places(executor, parallel):
    ds = ps.Dataset.range(20).map(place, num_parallel_calls=parallel, executor=executor)
    found = [tuple(map(int, element)) for element in ds]
    assert [element[0] for element in found] == list(range(20))
    return {element[1] for element in found}, {element[2] for element in found}


HERE = threading.get_ident() % (1 << 62)


# -- the argument

ARGUMENTS = {
    "unknown": lambda ds: ds.map(triple, executor="gpu"),
    "near": lambda ds: ds.map(triple, executor="processes"),
    "capital": lambda ds: ds.map(triple, executor="Thread"),
    "number": lambda ds: ds.map(triple, executor=3),
    "none": lambda ds: ds.map(triple, executor=None),
    "list": lambda ds: ds.map(triple, executor=["thread"]),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_another_executor_is_refused_and_the_nearest_named(name):
    with pytest.raises(errors.PenstockError) as caught:
        ARGUMENTS[name](ps.Dataset.range(3))
    assert_golden(f"argument_map_executor_{name}", f"{type(caught.value).__name__}: {caught.value}")


def test_it_is_given_by_name():
    with pytest.raises(TypeError, match="positional"):
        ps.Dataset.range(3).map(triple, 2, True, "thread")


# -- what comes of it


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("parallel", PARALLEL)
def test_the_elements_are_the_same(executor, parallel):
    ds = ps.Dataset.range(50).map(triple, num_parallel_calls=parallel, executor=executor)
    assert [int(x) for x in ds] == [x * 3 if x % 2 else -x for x in range(50)]


PIPELINES = {
    "map": lambda executor: ps.Dataset.range(12).map(triple, 2, executor=executor),
    "map one at a time": lambda executor: ps.Dataset.range(12).map(triple, executor=executor),
    "maps": lambda executor: ps.Dataset.range(12).map(triple, 2, executor=executor).map(np.int32, 2, executor=executor),
    "map in front of another": lambda executor: ps.Dataset.range(12).map(triple, 2, executor=executor).map(triple, 2),
    "map and batch": lambda executor: ps.Dataset.range(12).map(triple, 2, executor=executor).batch(2),
    "map and filter": lambda executor: ps.Dataset.range(40).map(triple, executor=executor).filter(lambda x: x % 2 == 0),
    "shuffle": lambda executor: ps.Dataset.range(12).map(triple, 2, executor=executor).shuffle(4, seed=1).repeat(2),
}


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("after", EXECUTORS)
@pytest.mark.parametrize("before", EXECUTORS)
def test_a_state_goes_on_under_any_other(pipeline, before, after):
    first, second = PIPELINES[pipeline](before), PIPELINES[pipeline](after)
    wanted = list(first.iterator(epoch=0))
    for count in (0, 1, 3, len(wanted) - 1):
        with first.iterator(epoch=0) as elements:
            given = [next(elements) for _ in range(count)]
            state = elements.state_dict()
        assert_same_elements([*given, *resumed(second, state)], wanted)


def test_it_takes_no_part_in_fingerprints():
    for build in PIPELINES.values():
        assert len({fingerprint(build(executor)._plan) for executor in EXECUTORS}) == 1
        assert len({build(executor).fingerprint() for executor in EXECUTORS}) == 1


def test_a_failure_takes_the_place_of_one_element():
    def fails(x):
        if x == 3:
            raise KeyError("no such breed")
        return [int(x)]

    for executor in EXECUTORS:
        with ps.Dataset.range(6).map(fails, 2, executor=executor).iterator() as elements:
            assert [int(next(elements)[0]) for _ in range(3)] == [0, 1, 2]
            with pytest.raises(KeyError, match="no such breed"):
                next(elements)
            assert [int(x[0]) for x in elements] == [4, 5]


# -- who calls


@pytest.mark.parametrize("parallel", PARALLEL)
def test_processes_are_other_processes(parallel):
    processes, _ = places("process", parallel)
    assert os.getpid() not in processes


@pytest.mark.parametrize("parallel", PARALLEL)
def test_threads_are_threads_of_this_process(parallel):
    processes, threads = places("thread", parallel)
    assert processes == {os.getpid()}
    assert (threads == {HERE}) == (parallel is None)


@pytest.mark.parametrize("parallel", PARALLEL)
def test_inline_is_the_thread_that_asks(parallel):
    assert places("inline", parallel) == ({os.getpid()}, {HERE})


def test_inline_stays_in_the_loop_behind_parallel_steps():
    ds = ps.Dataset.range(20).map(triple, 2).map(place, 2, executor="inline").batch(4)
    assert {int(thread) for batch in ds for thread in batch[2]} == {HERE}


def test_a_function_that_cannot_go_is_named():
    lock = threading.Lock()
    ds = ps.Dataset.range(3).map(lambda x: (x, lock)[0], 2, executor="process")
    with pytest.raises(errors.InvalidArgumentError, match="lock"):
        list(ds)


def test_auto_keeps_what_can_be_seen_in_this_process():
    seen = []
    ds = ps.Dataset.range(200).map(lambda x: seen.append(int(x)) or x, ps.AUTOTUNE)
    assert [int(x) for x in ds] == list(range(200))
    assert sorted(seen) == list(range(200))


# -- what explain() says


def appends(seen):
    def appending(x):
        seen.append(x)
        return x

    return appending


def shown(ds):
    return [line.strip() for line in ds.explain().splitlines()]


BASE = ps.Dataset.range(10)


@pytest.mark.parametrize(
    ("dataset", "said"),
    [
        (BASE.map(triple, 2), "auto: threads, or worker processes if measurements show that they are faster"),
        (
            BASE.map(appends([]), 2),
            "auto: threads; processes are not considered: it appends to `seen` (line 160); "
            'executor="process" asks for them',
        ),
        (
            BASE.map(triple, 2).map(appends([]), 2),
            "auto: threads; processes are not considered: of map(appending) it appends to `seen` (line 160); "
            'executor="process" asks for them',
        ),
        (BASE.map(triple, 2, executor="thread"), "thread: threads"),
        (BASE.map(triple, 2, executor="process"), "process: worker processes"),
        (BASE.map(triple, executor="process"), "map(triple): in a worker process, one call at a time"),
        (BASE.map(triple, 2, executor="inline"), "map(triple): in the thread that reads this step"),
    ],
)
def test_explain_says_who_calls_and_why(dataset, said):
    assert said in shown(dataset)


def test_explain_is_silent_where_the_puller_calls_anyway():
    assert not [line for line in shown(BASE.map(triple)) if line.startswith(("auto:", "thread:", "inline:"))]
