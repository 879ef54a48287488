"""A failed iteration releases its objects when its error is dropped, without a garbage collection."""

import contextlib
import functools
import gc
import os
import sys
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from penstock.frames import kept, tidied

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="counts descriptors in /proc")


@pytest.fixture
def names(tmp_path):
    for number in range(20):
        (tmp_path / f"{number:02}.txt").write_text("a\nb\n" * 3000)
    return sorted(str(path) for path in tmp_path.iterdir())


@pytest.fixture
def no_collection():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def descriptors(names):
    """Return the number of open descriptors of these files."""
    found = [Path("/proc/self/fd", number) for number in os.listdir("/proc/self/fd")]  # noqa: PTH208 - now
    return sum(os.path.realpath(number) in names for number in found)


class Left:
    """An iterator without references. The workers of its iteration first leave their functions."""

    def __init__(self, elements):
        self._gone = threading.Event()
        self._elements = weakref.ref(elements, lambda _: self._gone.set())

    def is_freed(self):
        return self._gone.wait(20)


def spoiled(*parts):
    raise ValueError("spoiled")


STEPS = {
    "map": lambda ds: ds.map(spoiled),
    "map in parallel": lambda ds: ds.map(spoiled, num_parallel_calls=2),
    "filter": lambda ds: ds.filter(spoiled),
    "shuffle": lambda ds: ds.shuffle(20).map(spoiled).shuffle(4),
    "flat_map": lambda ds: ds.flat_map(spoiled),
    "scan": lambda ds: ds.scan(np.int64(0), lambda state, x: spoiled()),
    "ragged": lambda ds: ds.map(lambda x: np.zeros(np.random.randint(1, 9))).batch(30),
    "prefetch": lambda ds: ds.map(spoiled).prefetch(2),
    "cache": lambda ds: ds.map(spoiled).cache(),
    "batch in parallel": lambda ds: ds.map(spoiled).batch(4, num_parallel_calls=2),
}


@pytest.mark.parametrize("executor", ["inline", "thread"])
@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("parallel", [None, 4])
def test_a_pass_ends_once_the_error_is_dropped(name, executor, parallel, names, no_collection):
    files = ps.Dataset.from_tensor_slices(names).interleave(ps.TextLineDataset, 12, num_parallel_calls=parallel)
    ds = STEPS[name](files)

    def fail():
        elements = ds.iterator(executor=executor)
        with pytest.raises((ValueError, ps.errors.PenstockError)):
            list(elements)
        return Left(elements)

    assert fail().is_freed()


@pytest.mark.parametrize("executor", ["inline", "thread"])
@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("parallel", [None, 4])
def test_files_are_closed_once_the_error_is_dropped(name, executor, parallel, names, no_collection):
    source = ps.Dataset.from_tensor_slices(names)
    files = source.interleave(ps.TextLineDataset, cycle_length=12, num_parallel_calls=parallel)
    ds = STEPS[name](files)
    list(source.batch(2).iterator(executor=executor))
    before = descriptors(names)

    def fail():
        elements = ds.iterator(executor=executor)
        left = Left(elements)
        with pytest.raises((ValueError, ps.errors.PenstockError)):
            list(elements)
        return left

    left = fail()
    assert left.is_freed()
    assert descriptors(names) == before == 0


def sometimes(line):
    if line.endswith(b"a"):
        raise ValueError("spoiled")
    return line


WAITING = {  # failures that wait in buffers when the loop is left
    "shuffle": lambda ds: ds.map(sometimes).shuffle(9),
    "two shuffles": lambda ds: ds.map(sometimes).shuffle(9).batch(2).shuffle(9),
    "batch in parallel": lambda ds: ds.map(spoiled).shuffle(9).batch(4, num_parallel_calls=2),
    "padded_batch": lambda ds: ds.map(sometimes).shuffle(9).padded_batch(4),
    "window": lambda ds: ds.map(sometimes, num_parallel_calls=2).shuffle(9).window(4),
    "unbatch": lambda ds: ds.map(sometimes).batch(3).unbatch().batch(4, num_parallel_calls=2),
    "zip": lambda ds: ps.Dataset.zip((ds.map(sometimes), ds.map(sometimes).shuffle(4))),
    "group_by_window": lambda ds: ds.map(sometimes).group_by_window(lambda x: 0, lambda key, w: w.batch(3), 4),
    "repeat": lambda ds: ds.map(sometimes).shuffle(9).repeat(2).prefetch(2),
    "ignore_errors": lambda ds: ds.map(sometimes).shuffle(9).batch(4, num_parallel_calls=2).ignore_errors(),
    "an inner pass": lambda ds: ds.map(lambda x: sum(ps.Dataset.range(3).map(spoiled).shuffle(2))).shuffle(9),
}


@pytest.mark.parametrize("executor", ["inline", "thread"])
@pytest.mark.parametrize("name", WAITING)
def test_failures_that_still_wait_hold_no_iterator(name, executor, names, no_collection):
    ds = WAITING[name](ps.Dataset.from_tensor_slices(names).interleave(ps.TextLineDataset, cycle_length=12))

    def leave():
        elements = ds.iterator(executor=executor)
        for _ in range(3):
            with contextlib.suppress(ValueError, ps.errors.PenstockError):
                next(elements)
        return Left(elements)

    assert leave().is_freed()


def test_what_another_thread_is_inside_of_keeps_no_frame_of_this_one(no_collection):
    """A failure that is handed over leads to frames of the worker that raised it, which continues to work."""
    made, leave, failures = threading.Event(), threading.Event(), []

    def fail():
        try:
            tidied(spoiled)
        except ValueError as error:
            kept(error)
            failures.append(error)

    def work():
        fail()
        made.set()
        assert leave.wait(20)

    def keep():
        fail()
        kept(failures[0])  # the failure came with the input of this step

    maker = threading.Thread(target=tidied, args=(work,))
    maker.start()
    try:
        assert made.wait(20)
        steps = [functools.partial(keep)]
        held = weakref.ref(steps[0])
        tidied(steps.pop())  # only a frame of this test references it now
        tidied(int)
        assert held() is None
    finally:
        leave.set()
        maker.join()


def test_a_user_s_own_variables_stay_for_the_debugger():
    def function(x):
        seen = int(x) * 7
        raise ValueError(seen)

    with pytest.raises(ValueError, match="0") as caught:
        list(ps.Dataset.range(3).map(function))
    at = caught.value.__traceback__
    while at.tb_next is not None:
        at = at.tb_next
    assert at.tb_frame.f_locals["seen"] == 0


def test_a_pass_goes_on_behind_failures_that_are_kept():
    ds = ps.Dataset.range(9).map(lambda x: 6 // (x % 3), num_parallel_calls=2).shuffle(3).map(lambda x: x + 1)
    with np.errstate(all="raise"):
        kept, found = [], []
        elements = iter(ds)
        while True:
            try:
                found.append(int(next(elements)))
            except StopIteration:
                break
            except Exception as error:
                kept.append(error)
    assert len(kept) + len(found) == 9
