"""The size of Blocks depends on the work in them, which neighbours do not reduce."""

import time

import numpy as np
import pytest

import penstock as ps
from penstock.runtime.block_sizer import BlockSizer, worked
from penstock.runtime.work import BlockWork


def want_after(blocks, seconds, nbytes=0):
    sizer = BlockSizer()
    for _ in range(blocks):
        sizer.observe(sizer.want, seconds(sizer.want), nbytes)
    return sizer.want


def test_blocks_grow_to_some_milliseconds():
    assert want_after(20, lambda elements: elements * 0.0005) == 8
    assert want_after(20, lambda elements: 0.0) == 1 << 16
    assert want_after(20, lambda elements: 1.0) == 1
    assert want_after(20, lambda elements: 0.0, nbytes=1 << 20) == 1


@pytest.mark.parametrize("seconds", [(0.0032, 0.0058), (0.0045, 0.0065)])
def test_a_trial_of_two_elements_fails_only_if_it_is_slow_and_the_elements_take_most_of_its_time(seconds):
    sizer = BlockSizer()
    for each in seconds:
        sizer.observe(sizer.want, each, 0)
    assert sizer.want == 2
    sizer.observe(2, 0.011, 0)
    assert sizer.want == 1


def test_blocks_of_more_than_four_mebibytes_become_smaller():
    for nbytes, wanted in ((1 << 22, 100), ((1 << 22) + 1, 50)):
        sizer = BlockSizer()
        sizer.resume(100)
        sizer.observe(100, 0.005, nbytes)
        assert sizer.want == wanted


def wants(sizer, seconds, blocks=12):
    """Return the requested sizes, Block after Block."""
    found = []
    for _ in range(blocks):
        found.append(sizer.want)
        sizer.observe(sizer.want, seconds(sizer.want), 0)
    return found


def test_what_is_waited_for_as_a_whole_is_asked_for_soon():
    little = wants(BlockSizer(seconds=0.016, unit=1000), lambda elements: 1e-6 * elements)
    assert little == [1, 8, 64, 512, 1000, 2000, 4000, 4000, 4000, 4000, 4000, 4000]
    assert wants(BlockSizer(seconds=0.016, unit=1000), lambda elements: 0.002 * elements)[:4] == [1, 8, 8, 8]
    assert wants(BlockSizer(seconds=0.016, unit=6), lambda elements: 0.002 * elements)[:5] == [1, 6, 6, 6, 6]
    assert wants(BlockSizer(seconds=0.016, unit=1000), lambda elements: 0.1 * elements)[:4] == [1, 1, 1, 1]


def test_several_units_are_asked_for_only_where_they_are_little_work():
    assert wants(BlockSizer(seconds=0.016, unit=64), lambda elements: 0.0001 * elements)[-1] == 64
    sizer = BlockSizer(seconds=0.016, unit=64)
    sizer.resume(256)
    assert wants(sizer, lambda elements: 0.0001 * elements)[:4] == [256, 128, 64, 64]
    assert wants(BlockSizer(unit=100), lambda elements: 0.0, 20)[-1] == 1 << 16


def test_what_a_unit_becomes_may_be_large_and_stays_alone():
    sizer = BlockSizer(unit=4)
    for _ in range(10):
        sizer.observe(sizer.want, 0.0, 8 * sizer.want, made=sizer.want << 22)
    assert sizer.want == 4
    sizer.resume(8)
    sizer.observe(8, 0.0, 64, made=8 << 22)
    assert sizer.want == 4


def test_what_a_block_costs_beside_its_elements_does_not_keep_it_small():
    assert want_after(20, lambda elements: 0.0025 + 1e-9 * elements) == 1 << 16
    assert want_after(20, lambda elements: 0.0025 + 2.5e-6 * elements) == 1024
    resumed = BlockSizer()
    resumed.resume(512)
    assert wants(resumed, lambda elements: 0.0015 + 1e-6 * elements)[-1] == 4096


def test_where_one_element_takes_a_while_two_are_tried_once():
    assert wants(BlockSizer(), lambda elements: 0.004 + 1e-6 * elements)[:4] == [1, 2, 4, 8]
    assert wants(BlockSizer(), lambda elements: 0.004 * elements)[:6] == [1, 2, 1, 1, 1, 1]
    assert wants(BlockSizer(), lambda elements: 0.006 * elements)[:3] == [1, 1, 1]


@pytest.mark.parametrize("seed", range(5))
def test_a_clock_that_is_not_exact_has_no_more_than_twice_as_many_asked_for(seed):
    drawn = np.random.default_rng(seed)
    noisy = wants(BlockSizer(), lambda elements: 0.0005 * elements * drawn.uniform(0.8, 1.25), 200)
    assert 4 <= min(noisy[8:]) <= max(noisy) <= 16


def test_of_many_components_each_may_have_some_kilobytes():
    sizer = BlockSizer()
    for _ in range(20):
        sizer.observe(sizer.want, 0.0, 4000 * sizer.want, columns=500)
    assert sizer.want == 2048
    for _ in range(20):
        sizer.observe(sizer.want, 0.0, 4000 * sizer.want, columns=5)
    assert sizer.want == 1024


def test_a_stage_that_gives_the_first_of_what_it_made_alone_is_no_faster_for_it():
    sizer = BlockSizer()
    for _ in range(50):
        made = sizer.want
        sizer.observe(1, made * 0.002, 0)
        if made > 1:
            sizer.observe(made - 1, 0.0, 0)
    assert sizer.want == 4


def test_few_elements_at_a_time_are_no_more_work_than_many():
    sizer = BlockSizer()
    sizer.resume(8)
    for _ in range(100):
        sizer.observe(1, 0.0005, 0)
    sizer.observe(8, 8 * 0.0005, 0)
    assert sizer.want == 8


@pytest.fixture
def slow_clock(monkeypatch):
    """Make each reading of the wall clock a second later; the thread's own clock stands still."""
    seconds = iter(range(10**6))
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(seconds)))
    monkeypatch.setattr(time, "thread_time", lambda: 0.0)


@pytest.mark.parametrize(
    ("function", "grows"), [(lambda x: x * np.float32(2), True), (lambda x: x if int(x) % 2 else -x, False)]
)
def test_what_only_computes_is_not_slower_for_its_neighbours(slow_clock, function, grows):
    ds = ps.Dataset.range(4096).map(function, num_parallel_calls=1)
    with ds.iterator(executor="inline") as elements:
        for _ in range(4000):
            next(elements)
        assert (work_of(elements).sizer.want > 64) == grows


def work_of(elements):
    stage = elements._run.root
    while not isinstance(getattr(stage, "work", None), BlockWork):
        (stage,) = stage.inputs
    return stage.work


def test_a_call_elsewhere_takes_its_time():
    def run(*args):
        """Run like `run_all`."""

    assert worked([], run, 2.0, 0.5) == 0.5
    run.here = False
    assert worked([], run, 2.0, 0.5) == 2.0


def test_many_threads_that_wait_have_larger_blocks_and_each_a_share_of_what_is_left():
    sizer = BlockSizer(seconds=0.016, unit=32)

    def asked_for(workers, seconds_each, left):
        sizer.aim(0.016, workers, left, 1 << 40)
        wants(sizer, lambda elements: seconds_each * elements)
        return min(sizer.want, sizer.share)

    assert asked_for(2, 0.005, None) == asked_for(16, 0.005, None) == 2
    assert asked_for(64, 0.005, None) == 8
    assert asked_for(64, 0.001, None) == 32
    assert asked_for(64, 0.1, None) == 1
    assert asked_for(64, 0.001, 640) == 10
    assert asked_for(64, 0.001, 63) == 1
    assert asked_for(64, 0.001, None) == 32


def test_many_workers_have_several_batches_in_a_block_unless_these_are_large():
    def batches(workers, seconds=0.01, nbytes=1000, made=1000, budget=1 << 40):
        sizer = BlockSizer(seconds=0.016, unit=32)
        sizer.aim(0.016, workers, None, budget)
        for _ in range(30):
            share = sizer.want / 32
            sizer.observe(sizer.want, share * seconds, int(share * nbytes), int(share * made))
        return sizer.want / 32

    assert batches(2) == batches(16) == 1
    assert batches(32) == 2
    assert batches(64) == batches(64, nbytes=3 << 20) == 4
    assert batches(64, nbytes=5 << 20) == 2
    assert batches(64, nbytes=5 << 20, budget=1 << 33) == 1
    assert batches(64, made=(1 << 20) - 1) == 2
    assert batches(64, made=1 << 20) == 1
    assert batches(2, nbytes=5 << 20) == 0.25
