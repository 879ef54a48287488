"""The workers of an iteration end with it, however it ends."""

import contextlib
import gc
import sys
import threading
import time
import weakref
from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from penstock.runtime.segment import Aborted

SECONDS = 30
ANOTHERS = set()  # workers that another failed test left behind: not a failure of these tests


def workers():
    return [t for t in threading.enumerate() if t.name.startswith("penstock") and t not in ANOTHERS]


def staying():
    """Return the workers inside a closed run. The pool's threads leave their loop on their own, a moment later."""
    deadline = time.monotonic() + SECONDS
    for thread in workers():
        thread.join(max(deadline - time.monotonic(), 0))
    return workers()


def assert_no_worker_stays():
    assert staying() == []


@pytest.fixture(autouse=True)
def _no_workers_before_or_after():
    gc.collect()
    ANOTHERS.update(staying())
    yield
    gc.collect()
    assert_no_worker_stays()


def branching(x):
    return x if x % 2 else x + 1


def endless():
    return ps.Dataset.range(5).repeat().map(branching, 4).batch(3).prefetch(2)


def some(iterator, count=5):
    return [next(iterator) for _ in range(count)]


def test_a_pass_to_the_end():
    assert len(list(endless().take(10))) == 10


def test_a_break():
    for i, _ in enumerate(endless()):
        if i == 5:
            break


def test_no_reference_left():
    iterator = iter(endless())
    some(iterator)
    assert workers()
    del iterator


def test_garbage_in_a_cycle():
    holder = {"iterator": iter(endless())}
    holder["self"] = holder
    some(holder["iterator"])
    del holder


def test_close():
    iterator = iter(endless())
    some(iterator)
    iterator.close()
    iterator.close()
    assert_no_worker_stays()
    assert list(iterator) == []


def test_a_with_block():
    with endless().iterator() as iterator:
        some(iterator)
    assert_no_worker_stays()


def test_an_exception_in_the_loop():
    def consume():
        for _ in endless():
            raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        consume()


def test_an_exception_in_a_worker():
    def fails(x):
        if x == 3:
            raise ValueError("mine")
        return x

    with pytest.raises(ValueError, match="mine"):
        list(ps.Dataset.range(100).map(fails, 4).prefetch(2))


def test_an_iterator_never_asked():
    iterator = iter(endless())
    del iterator


def test_many_passes_started_and_abandoned_leave_nothing():
    alive = []
    for _ in range(60):
        iterator = iter(endless())
        next(iterator)
        alive.append(weakref.ref(iterator))
        assert len(workers()) < 12
    del iterator
    gc.collect()
    assert [ref for ref in alive if ref() is not None] == []


def test_several_passes_at_once_do_not_disturb_each_other():
    iterators = [iter(ps.Dataset.range(50).map(branching, 3)) for _ in range(5)]
    rounds = [[int(next(iterator)) for iterator in iterators] for _ in range(50)]
    assert rounds == [[int(branching(x))] * 5 for x in range(50)]
    assert [next(iterator, None) for iterator in iterators] == [None] * 5


def test_a_pass_inside_a_map_function():
    inner = ps.Dataset.range(4).map(branching, 2)

    def total(x):
        return x + sum(int(y) for y in inner)

    found = [int(x) for x in ps.Dataset.range(20).map(total, 4)]
    assert found == [x + 1 + 1 + 3 + 3 for x in range(20)]


def test_passes_inside_passes_inside_workers():
    def level(depth):
        if not depth:
            return ps.Dataset.range(3).map(branching, 2)
        return ps.Dataset.range(3).map(lambda x: x + sum(int(y) for y in level(depth - 1)), 2)

    def total(depth):
        if not depth:
            return [int(branching(x)) for x in range(3)]
        return [x + sum(total(depth - 1)) for x in range(3)]

    assert [int(x) for x in level(2)] == total(2)


def test_an_iterator_that_dies_inside_a_worker():
    """A worker drops the last reference to an iterator while this iterator's own workers are busy."""
    holders = []

    def drops(x):
        if x == 5:
            holders.clear()
            gc.collect()
        return x if x < 100 else -x

    iterator = iter(endless())
    some(iterator)
    holder = {"iterator": iterator}
    holder["self"] = holder
    holders.append(holder)
    del iterator, holder
    assert [int(x) for x in ps.Dataset.range(20).map(drops, 3)] == list(range(20))


def test_an_iterator_that_dies_inside_a_worker_that_the_other_pass_waits_for():
    """Dropping an iterator on a worker never waits: here its own worker continues only afterwards."""
    entered, dropped = threading.Event(), threading.Event()
    in_time = []
    holders = []

    def waits(x):
        entered.set()
        in_time.append(dropped.wait(SECONDS))
        return x if x < 100 else -x

    def drops(x):
        if x == 5:
            holders.clear()
            dropped.set()
        return x if x < 100 else -x

    holders.append(iter(ps.Dataset.range(50).map(waits, 1).prefetch(1)))
    reader = threading.Thread(target=_read_first, args=(weakref.ref(holders[0]),), daemon=True)
    reader.start()
    assert entered.wait(SECONDS)
    found = [int(x) for x in ps.Dataset.range(20).map(drops, 3)]
    reader.join(SECONDS)
    assert found == list(range(20))
    assert all(in_time)


def _read_first(ref):
    iterator = ref()
    stage = iterator._run.root
    del iterator
    with contextlib.suppress(Aborted):
        stage.next(1)


def test_a_function_that_closes_the_pass_it_runs_in():
    holders = []

    def closes(x):
        if x == 5:
            holders[0].close()
        return x if x < 100 else -x

    holders.append(ps.Dataset.range(50).map(closes, 2).iterator())
    found = [int(x) for x in holders[0]]
    assert found == list(range(50))[: len(found)]


def test_a_cached_pass_given_up_early_keeps_nothing_and_no_worker():
    calls = []

    def counted(x):
        calls.append(int(x))
        return x

    # an injected prefetch would read to the end
    options = ps.Options(experimental_optimization={"inject_prefetch": False})
    ds = ps.Dataset.range(30).map(counted, 2).cache().with_options(options)
    with ds.iterator() as iterator:
        some(iterator)
    calls.clear()
    assert [int(x) for x in ds] == list(range(30))
    assert sorted(calls) == list(range(30))
    assert [int(x) for x in ds] == list(range(30))
    assert sorted(calls) == list(range(30))


def test_buffers_are_bounded_while_nobody_reads():
    """If the consumer stops, buffering stops: the elements in buffers use at most the segments' byte bounds."""
    made = []
    megabyte = np.zeros(1 << 20, np.uint8)

    def large(x):
        made.append(int(x))
        return megabyte.copy()

    iterator = iter(ps.Dataset.range(10**6).map(large, 2).prefetch(2))
    next(iterator)
    stage = iterator._run.root
    with stage._lock:
        assert stage._changed.wait_for(lambda: not stage.counts.busy and not stage.runnable(), SECONDS)
    assert len(made) < 400
    iterator.close()


def test_a_failure_kept_in_a_buffer_does_not_keep_the_iterator():
    """Its traceback has the frames of the error, which must not lead back to the iterator."""

    def fails(x):
        if x == 7:
            raise ValueError("mine")
        return x

    for ds in (ps.Dataset.range(20).map(fails), ps.Dataset.range(20).map(fails, 2).prefetch(2)):
        iterator = iter(ds.shuffle(19))
        next(iterator)
        alive = weakref.ref(iterator)
        del iterator
        gc.collect()
        assert alive() is None


def test_an_endless_repetition_over_a_segment_ends_when_it_is_closed():
    """Closing wakes a worker inside the repetition, which must not take the closed segment for an empty epoch."""
    ds = ps.Dataset.range(1).map(branching, 1).repeat().map(branching, 2)
    for _ in range(50):
        with ds.iterator() as iterator:
            some(iterator, 3)
    assert_no_worker_stays()


def test_a_batch_larger_than_a_segment_may_hold_is_made():
    import numpy as np

    ds = ps.Dataset.range(24).map(lambda x: np.full(1 << 20, float(x)), 2).batch(12)  # 96 MiB
    assert [b[:, 0].tolist() for b in ds] == [[float(x) for x in range(k, k + 12)] for k in (0, 12)]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_hundreds_of_abandoned_iterators_leave_threads_and_descriptors_as_they_were():
    def count():
        gc.collect()
        assert_no_worker_stays()
        return threading.active_count(), len(list(Path("/proc/self/fd").iterdir()))

    ds = ps.Dataset.range(100).interleave(lambda x: ps.Dataset.range(x), 3, num_parallel_calls=ps.AUTOTUNE)
    ds = ds.map(branching, ps.AUTOTUNE).shuffle(8).batch(4).prefetch(ps.AUTOTUNE)
    some(iter(ds), 1)
    before = count()
    for _ in range(250):
        next(iter(ds))
    assert count() == before
