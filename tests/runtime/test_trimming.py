"""What passes have freed goes back to the system once none runs, and `memory()` counts it until then."""

import gc
import sys

import numpy as np
import pytest

import penstock as ps
from penstock.runtime.machine.heaps import FreeInHeaps, resident
from penstock.runtime.memory.trimming import Trimmer, _malloc_trim

pytestmark = pytest.mark.skipif(sys.platform != "linux" or _malloc_trim() is None, reason="needs the GNU C library")

MANY = 1 << 26  # bytes


def leave_holes():
    """Free much memory of which the end of the heap is not: what is left there is returned."""
    pieces = [np.full(1 << 12, i % 7, np.uint8) for i in range(MANY >> 12)]
    return [*pieces[:: len(pieces) // 8], np.zeros(1 << 12, np.uint8)]


def test_freed_memory_goes_back_when_no_pass_runs():
    list(ps.Dataset.range(3))  # sets the C library up
    left = leave_holes()
    gc.collect()
    free = FreeInHeaps().look()
    assert free > MANY // 2
    rows = {row.kind: row.nbytes for row in ps.Dataset.range(3).memory().rows}
    assert rows["in heaps, for reuse"] > MANY // 2
    before = resident()
    running = [True]
    trimmer = Trimmer(lambda: running[0], patience=0.0, stays=1 << 20)
    trimmer.rest()
    assert trimmer._waits.acquire(timeout=30)
    trimmer._waits.release()
    assert resident() > before - MANY // 4  # a pass runs
    running[0] = False
    trimmer.rest()
    assert trimmer._waits.acquire(timeout=30)
    assert resident() < before - MANY // 4
    assert len(left) > 1


def test_little_stays_for_the_next_pass():
    assert not Trimmer(lambda: False, stays=1 << 60).trim()
