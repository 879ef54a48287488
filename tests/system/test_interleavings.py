"""Pipelines under hostile timing: threads switch all the time, knobs change during work, and runs end anywhere.

All random numbers follow from a seed. The operating system's timing differs, but results must not.
"""

import gc
import json
import os
import random
import sys
import threading
import time

import pytest
from tests.system.test_abandoned import assert_no_worker_stays

import penstock as ps
from penstock.runtime.autotune.figures import Knobs
from penstock.runtime.lane import Gate
from penstock.runtime.results import Results
from penstock.runtime.segment import Segment
from penstock.runtime.work import BatchWork, BlockWork

SECONDS = 60
SEEDS = range(1000 if os.environ.get("HYPOTHESIS_PROFILE") == "search" else 30)  # `make fuzz` runs all of them
YIELDS = [
    (Segment, "_let_pull"),
    (Segment, "_room"),
    (Results, "begin"),
    (Results, "put"),
    (Results, "take"),
    (Gate, "enter"),
    (Gate, "leave"),
    (BlockWork, "pull"),
    (BlockWork, "run"),
    (BatchWork, "pull"),
    (BatchWork, "run"),
]


@pytest.fixture
def hostile(monkeypatch):
    """A random generator that may let other threads run first at each call, where order could matter."""
    draws = random.Random()
    for kind, name in YIELDS:
        plain = getattr(kind, name)

        def yielding(*arguments, plain=plain):
            if draws.random() < 0.3:
                time.sleep(0)
            found = plain(*arguments)
            if draws.random() < 0.3:
                time.sleep(0)
            return found

        monkeypatch.setattr(kind, name, yielding)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield draws
    sys.setswitchinterval(interval)


def odd_one_out(x):
    return x * 3 if x % 7 else x - 1


def failing(x):
    if x % 31 == 5:
        raise ValueError(int(x))
    return x


def pipeline(draws):
    """Build segments upon segments, in order throughout."""
    ds = ps.Dataset.range(draws.randrange(20, 200)).map(odd_one_out, draws.choice([1, 3, ps.AUTOTUNE]))
    for _ in range(draws.randrange(1, 4)):
        step = draws.randrange(6)
        if step == 0:
            ds = ds.shuffle(draws.randrange(1, 30), seed=draws.randrange(5))
        elif step == 1:
            ds = ds.interleave(
                lambda x: ps.Dataset.range(x % 5).map(odd_one_out, 2),
                cycle_length=draws.randrange(1, 5),
                num_parallel_calls=draws.choice([2, ps.AUTOTUNE]),
            )
        elif step == 2:
            ds = ds.batch(draws.randrange(1, 9), num_parallel_calls=2).unbatch()
        elif step == 3:
            ds = ds.prefetch(draws.choice([1, 4, ps.AUTOTUNE]))
        elif step == 4:
            ds = ds.map(failing, ps.AUTOTUNE).ignore_errors()
        else:
            ds = ds.repeat(2)
    return ds.map(odd_one_out, draws.choice([2, ps.AUTOTUNE]))


def meddle(run, draws, stop):
    """Turn all knobs at random."""
    while not stop.is_set():
        for lane in run.driver.lanes:
            parallelism = draws.randrange(1, 7)
            lane.turn(Knobs(parallelism, "thread", draws.choice([1, 1 << 10, 1 << 26]), 0.001), None)
        run.driver.want()
        time.sleep(0)


@pytest.mark.parametrize("seed", SEEDS)
def test_elements_and_their_order_stay_whatever_the_timing(hostile, seed):
    hostile.seed(seed)
    choose = random.Random(seed)
    ds = pipeline(choose)
    expected = [int(x) for x in ds.iterator(epoch=0, executor="inline")]
    ends = choose.choice(["end", "close", "abandon", "resume"])
    stops = len(expected) if ends == "end" else choose.randrange(len(expected) + 1)
    iterator = ds.iterator(epoch=0)
    stop = threading.Event()
    meddler = threading.Thread(target=meddle, args=(iterator._run, random.Random(seed), stop))
    meddler.start()
    try:
        seen = [int(next(iterator)) for _ in range(stops)]
        if ends == "resume":
            state = json.loads(json.dumps(iterator.state_dict()))
            iterator.close()
            again = ds.iterator(epoch=0)
            again.load_state_dict(state)
            seen += [int(x) for x in again]
        elif ends == "end":
            assert list(iterator) == []
        elif ends == "close":
            iterator.close()
    finally:
        stop.set()
        meddler.join(SECONDS)
        del iterator
    assert seen == (expected if ends == "resume" else expected[:stops])
    gc.collect()
    assert_no_worker_stays()
