"""Freed memory goes back to the system when no iteration runs; `memory()` counts it until then."""

import subprocess
import sys

import pytest

from penstock.runtime.memory.kept import Trimmer, _malloc_trim

pytestmark = pytest.mark.skipif(sys.platform != "linux" or _malloc_trim() is None, reason="needs the GNU C library")

ALONE = """
import gc

import numpy as np

import penstock as ps
from penstock.runtime.machine.malloc import FreeInHeaps, resident
from penstock.runtime.memory.kept import Trimmer

MANY = 1 << 26  # bytes


def leave_holes():
    # Free much memory of which the end of the heap is not: what is left there is returned.
    pieces = [np.full(1 << 12, i % 7, np.uint8) for i in range(MANY >> 12)]
    return [*pieces[:: len(pieces) // 8], np.zeros(1 << 12, np.uint8)]


def main():
    runs = iter(ps.Dataset.range(1_000_000))  # sets the C library up; while it runs nobody else gives memory back
    next(runs)
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
    runs.close()


main()
"""


def test_freed_memory_goes_back_when_no_pass_runs():
    """In a separate process: iterations of other tests have heaps, and other code trims them."""
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_little_stays_for_the_next_pass():
    assert not Trimmer(lambda: False, stays=1 << 60).trim()
