"""What options do to a running data set: how many workers, whose, and when they begin."""

import threading

import numpy as np
import pytest

import penstock as ps
from penstock.runtime.scheduler import scheduler

SECONDS = 30
SIZE = 64


class Crowd:
    """A function that notes how many calls of it run at once, and in which threads."""

    def __init__(self, at_once):
        self.most = 0
        self.threads = set()
        self.called = threading.Event()
        self._inside = 0
        self._lock = threading.Lock()
        self._full = threading.Event()
        self._at_once = at_once

    def __call__(self, x):
        self.called.set()
        with self._lock:
            self._inside += 1
            self.most = max(self.most, self._inside)
            self.threads.add(threading.current_thread())
            if self._inside == self._at_once:
                self._full.set()
        assert self._full.wait(SECONDS)  # nobody leaves before as many as are expected have come
        with self._lock:
            self._inside -= 1
        return x


def run(calls, options, at_once):
    crowd = Crowd(at_once)
    ds = ps.Dataset.range(SIZE).map(crowd, calls).with_options(options)
    assert [int(x) for x in ds] == list(range(SIZE))
    return crowd


@pytest.mark.parametrize(
    ("calls", "options", "wanted"),
    [
        (4, ps.Options(), 4),
        (4, ps.Options(autotune={"cpu_budget": 2}), 2),
        (2, ps.Options(autotune={"cpu_budget": 8}), 2),
        (ps.AUTOTUNE, ps.Options(autotune={"cpu_budget": 3}), 3),
        (ps.AUTOTUNE, ps.Options(autotune={"cpu_budget": 3, "min_parallelism": 5}), 3),
        (ps.AUTOTUNE, ps.Options(autotune={"enabled": False}), 1),
        (ps.AUTOTUNE, ps.Options(autotune={"enabled": False, "cpu_budget": 3}), 1),
        (ps.AUTOTUNE, ps.Options(threading={"private_threadpool_size": 3}), 3),
        (8, ps.Options(threading={"private_threadpool_size": 3}), 3),
    ],
)
def test_as_many_calls_run_at_once_as_the_options_allow(calls, options, wanted):
    assert run(calls, options, wanted).most == wanted


def test_a_budget_holds_for_all_steps_together():
    crowd = Crowd(3)
    ds = ps.Dataset.range(SIZE).map(crowd, 8).map(lambda x: crowd(x) + 0, 4)
    assert len(list(ds.with_options(ps.Options(autotune={"cpu_budget": 3})))) == SIZE
    assert crowd.most == 3


def test_two_data_sets_with_one_worker_each_do_not_wait_for_each_other():
    options = ps.Options(autotune={"cpu_budget": 1})
    sets = [ps.Dataset.range(500).map(lambda x: x + 1, 2).shuffle(9).with_options(options) for _ in range(3)]
    passes = [iter(ds) for ds in sets]
    assert all(sorted(int(x) for x in elements) == list(range(1, 501)) for elements in passes)


def test_a_private_pool_shares_no_thread_and_ends_with_its_pass():
    crowd = run(8, ps.Options(threading={"private_threadpool_size": 2}), 2)
    assert len(crowd.threads) == 2
    assert not crowd.threads & scheduler()._threads
    for thread in crowd.threads:
        thread.join(SECONDS)
        assert not thread.is_alive()


WARM = ps.Options(experimental_warm_start=True)


@pytest.mark.parametrize(
    "after",
    [
        lambda ds: ds,
        lambda ds: ds.batch(2),
        lambda ds: ds.repeat(2),
        lambda ds: ds.shuffle(3).repeat().take(50).prefetch(2),
        lambda ds: ps.Dataset.zip(ps.Dataset.range(9), ds),
    ],
)
def test_workers_begin_before_the_first_element_if_asked_to(after):
    crowd = Crowd(1)
    ds = after(ps.Dataset.range(8).map(crowd, 2))
    wanted = [str(element) for element in ds]
    crowd.called.clear()
    with ds.with_options(WARM).iterator(epoch=0) as elements:
        assert crowd.called.wait(SECONDS)
        assert [str(element) for element in elements] == wanted


@pytest.mark.parametrize("count", [0, 1])
def test_a_warm_start_of_nothing_is_nothing(count):
    empty = ps.Dataset.range(5).map(Crowd(1), 2).take(0).repeat(count).with_options(WARM)
    assert list(empty) == []


BOUNDED = ps.Options(autotune={"ram_budget": 1 << 16, "cpu_budget": 1}, threading={"private_threadpool_size": 1})


def test_elements_do_not_depend_on_any_of_it():
    ds = ps.Dataset.range(40).interleave(
        lambda n: ps.Dataset.range(n).map(lambda x: np.full(9, x), 2), 4, num_parallel_calls=2
    )
    ds = ds.shuffle(20).repeat(2).map(lambda x: x * 2, ps.AUTOTUNE).batch(7).prefetch(2)
    wanted = [batch.tolist() for batch in ds]
    for options in (BOUNDED, WARM, ps.Options(autotune={"enabled": False})):
        assert [batch.tolist() for batch in ds.with_options(options).iterator(epoch=0)] == wanted
