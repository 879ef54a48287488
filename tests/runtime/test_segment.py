"""Segments: parallel work in order, within bounds, where one slow element holds up nobody but its own place."""

import threading
import time

import numpy as np
import pytest

import penstock as ps
from penstock.runtime.block_sizer import BlockSizer
from penstock.runtime.machine.granted import granted_cpus

SECONDS = 30


def test_a_slow_element_does_not_idle_the_others():
    """Element 0 waits until a later one has been through: with a window of its own this ends, without it hangs."""
    later = threading.Event()

    def function(x):
        if x == 0:
            assert later.wait(SECONDS), "no later element was worked on meanwhile"
        elif x >= 20:
            later.set()
        return x if x < 1000 else -x

    assert [int(x) for x in ps.Dataset.range(50).map(function, 2)] == list(range(50))


def test_as_many_calls_run_at_once_as_were_asked_for_and_no_more():
    together = threading.Barrier(3, timeout=SECONDS)
    lock, running, most = threading.Lock(), 0, 0

    def function(x):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        if x < 3:
            together.wait()
        with lock:
            running -= 1
        return x if x < 1000 else -x

    assert [int(x) for x in ps.Dataset.range(3).map(function, 3)] == [0, 1, 2]
    assert most == 3


class Meeting:
    """Work of a few milliseconds, from `begin` on held until `count` calls are at it; `met` tells whether they were."""

    def __init__(self, count, begin=0, result=None):
        self.count, self.begin, self.result = count, begin, result
        self.inside, self.lock, self.met = 0, threading.Lock(), threading.Event()

    def __call__(self, x):
        time.sleep(0.006)  # long enough for a Block of its own
        if x >= self.begin:
            with self.lock:
                self.inside += 1
                if self.inside == self.count:
                    self.met.set()
            self.met.wait(30)
            with self.lock:
                self.inside -= 1
        return x if self.result is None else self.result()


def test_large_results_keep_no_worker_out():
    """A window begins with 64 MB, which four of these results fill."""
    meeting = Meeting(8, begin=16, result=lambda: np.empty(1 << 24, np.uint8))
    ds = ps.Dataset.range(40).map(lambda x: meeting(x), num_parallel_calls=8)
    assert sum(1 for _ in ds) == 40
    assert meeting.met.is_set()


def test_sources_that_one_line_makes_have_their_calls_each():
    calls = granted_cpus() + 6  # more than could compute at once: they wait
    meeting = Meeting(2 * calls, begin=2 * calls)  # when both are under way
    one, other = (ps.Dataset.range(6 * calls).map(lambda x: meeting(x), num_parallel_calls=calls) for _ in range(2))
    assert sum(1 for _ in ps.Dataset.zip((one, other))) == 6 * calls
    assert meeting.met.is_set()


def test_without_num_parallel_calls_functions_are_called_one_at_a_time_in_order():
    lock, seen = threading.Lock(), []

    def function(x):
        assert lock.acquire(blocking=False), "two calls at once"
        seen.append(int(x))
        lock.release()
        return x

    list(ps.Dataset.range(200).map(function).prefetch(4))
    assert seen == list(range(200))


def test_prefetch_holds_about_as_many_elements_as_it_was_given():
    made = []

    def function(x):
        made.append(int(x))
        return x

    with ps.Dataset.range(10_000).map(function).prefetch(4).iterator() as elements:
        next(elements)
        held_when_full(elements)
        assert 5 <= len(made) < 20


def held_when_full(elements):
    """Bytes of the last segment once its workers have stopped."""
    segment = elements._run.root
    with segment._lock:
        assert segment._changed.wait_for(lambda: not segment.counts.busy and not segment.runnable(), SECONDS)
    return segment.statistics().nbytes


def test_whether_its_input_is_seen_is_said_when_whoever_pulls_knows():
    """An interleave would keep what was said before: one element at a time, for the whole pass."""
    found = []
    with ps.Dataset.range(10_000).map(lambda x: x).prefetch(4).iterator() as elements:
        next(elements)
        held_when_full(elements)
        segment = elements._run.root
        segment._known, segment._pulling = False, True  # as a worker that has just begun
        asking = threading.Thread(target=lambda: found.append(segment.seen_below))
        asking.start()
        asking.join(0.01)
        segment._look_below()
        asking.join(SECONDS)
        segment._pulling = False
    assert found == [False]


def test_of_what_is_seen_no_more_is_made_at_a_time_than_is_wanted_ahead():
    with ps.Dataset.range(10_000).map(lambda x: x, num_parallel_calls=2).prefetch(8).iterator() as elements:
        next(elements)
        held_when_full(elements)
        segment = elements._run.root
        ahead = segment.statistics().ahead
        for wanted, made in ((0, None), (1, 1), (ahead + 1, 1), (ahead + 8, 4), (ahead + 9, 4)):
            segment._wanted = wanted
            assert segment._may_make() == made


@pytest.mark.parametrize("parallel", [None, 2])
def test_prefetch_holds_what_it_was_given_where_memory_allows(parallel):
    ds = ps.Dataset.range(10_000).map(lambda x: np.empty(1 << 20, np.uint8), parallel).prefetch(100)
    for ram, least, most in ((1 << 30, 95, 130), (1 << 25, 1, 32)):
        with ds.with_options(ps.Options(autotune={"ram_budget": ram})).iterator() as elements:
            next(elements)
            assert least <= held_when_full(elements) >> 20 <= most


def test_prefetch_works_while_nobody_asks():
    made = threading.Semaphore(0)

    def function(x):
        made.release()
        return x

    with ps.Dataset.range(100).map(function).prefetch(4).iterator() as elements:
        next(elements)
        for _ in range(4):
            assert made.acquire(timeout=SECONDS)


def test_workers_write_into_the_batch_and_it_is_whole():
    def function(x):
        return np.full((64, 64), x, np.float32)

    batches = list(ps.Dataset.range(100).map(function, 4).batch(16))
    assert [len(batch) for batch in batches] == [16] * 6 + [4]
    for number, batch in enumerate(batches):
        assert (batch == np.arange(number * 16, number * 16 + len(batch), dtype=np.float32)[:, None, None]).all()


def test_a_batch_that_is_held_is_never_written_again():
    ds = ps.Dataset.range(400).map(lambda x: np.full((64, 64), x, np.float32), 4).batch(16).prefetch(2)
    held = [(batch, batch.copy()) for batch in ds]
    assert all((batch == copy).all() for batch, copy in held)


def test_memory_of_batches_nobody_holds_is_used_again():
    ds = ps.Dataset.range(640).map(lambda x: np.full((64, 64), x, np.float32), 2).batch(16)
    addresses = [batch.__array_interface__["data"][0] for batch in ds.iterator(executor="inline")]
    assert len(set(addresses)) < len(addresses) / 2


@pytest.mark.parametrize("parallel", [1, 4])
def test_batches_of_dicts_bytes_and_ragged_components(parallel):
    def function(x):
        return {"id": x, "name": b"n" * (int(x) % 3), "pixels": np.full((2, 2), x)}

    ds = ps.Dataset.range(10).map(function, parallel).batch(4)
    last = list(ds)[-1]
    assert last["id"].tolist() == [8, 9]
    assert last["name"].tolist() == [b"nn", b""]
    assert last["pixels"].shape == (2, 2, 2)


def test_the_block_size_grows_while_blocks_are_cheap_and_falls_when_they_are_not():
    sizer = BlockSizer()
    assert sizer.want == 1
    for _ in range(40):
        sizer.observe(sizer.want, 1e-6, 8)
    most = sizer.want
    assert most > 1000
    sizer.observe(sizer.want, 10.0, 8)
    assert sizer.want < most
    small = sizer.want
    sizer.observe(small, 1e-6, 1 << 30)
    assert sizer.want < small


def test_the_block_size_learns_nothing_from_a_source_that_gave_less():
    sizer = BlockSizer()
    for _ in range(5):
        sizer.observe(sizer.want, 1e-6, 8)
    before = sizer.want
    sizer.observe(1, 1e-6, 8)
    assert sizer.want == before


def test_the_block_size_keeps_to_its_bound():
    sizer = BlockSizer(3)
    for _ in range(10):
        sizer.observe(sizer.want, 1e-6, 8)
    assert sizer.want <= 3


def test_the_recorder_sees_what_workers_did():
    recorder = ps.Recorder()
    list(ps.Dataset.range(100).map(lambda x: x + 1, 2).iterator(instrument=recorder))
    assert {span[1] for span in recorder.spans} == {"map(<lambda>)"}
    assert all(start <= stop for _, _, start, stop in recorder.spans)


class Reads:
    """How many inputs are read at once; each waits until `together` have met, or nobody else can come."""

    def __init__(self, together):
        self.barrier = threading.Barrier(together)
        self.lock = threading.Lock()
        self.inside = self.most = 0

    def input(self, number):
        def elements():
            with self.lock:
                self.inside += 1
                self.most = max(self.most, self.inside)
            self.barrier.wait(SECONDS)
            with self.lock:
                self.inside -= 1
            yield int(number)

        return ps.Dataset.from_generator(elements, output_signature=ps.TensorSpec((), np.int64))


@pytest.mark.parametrize("at_once", [1, 3])
def test_an_interleave_reads_as_many_inputs_at_once_as_it_was_told(at_once):
    reads = Reads(at_once)
    ds = ps.Dataset.range(12).interleave(reads.input, cycle_length=4, num_parallel_calls=at_once)
    assert sorted(int(x) for x in ds) == list(range(12))
    assert reads.most == at_once


def test_inputs_are_opened_and_read_before_their_turn():
    """With a cycle of one the second input is begun while the first has not ended: else this hangs."""
    reads = Reads(2)
    ds = ps.Dataset.range(4).interleave(reads.input, cycle_length=1, num_parallel_calls=2)
    assert [int(x) for x in ds] == [0, 1, 2, 3]
