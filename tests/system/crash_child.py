"""Iterations over one entry in processes that are killed. Each line of stdin is a round: path, seed, number of writers.

The iterations run in forks of this process, which has imported and compiled all modules. It answers "right", or the
fault.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

import numpy as np

import penstock as ps
from penstock.physical import storage
from penstock.store import entry_writer as writer

COUNT = 240
CALLS = ("fsync", "write", "ftruncate", "open", "close", "pwrite", "truncate", "link")


def pipeline() -> ps.Dataset:
    ds = ps.Dataset.range(COUNT).shuffle(40, seed=5, reshuffle_each_iteration=False)
    return ds.map(lambda x: (x, np.full(3, x)), num_parallel_calls=2).filter(lambda x, row: x % 5 != 0)


def stored(path: str, seed: int) -> ps.Dataset:
    return pipeline().cache(path) if seed % 2 else pipeline().snapshot(path, "LZ4")


def numbers(ds: ps.Dataset) -> list[int]:
    return [int(x) for x, row in ds if (row == x).all()]


def dies_at(call: int) -> None:
    """Kill this process before its n-th call that changes files."""
    left = [call]

    def counting(function):
        def counted(*args, **kwargs):
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*args, **kwargs)

        return counted

    for name in CALLS:
        setattr(os, name, counting(getattr(os, name)))
    for name in ("replace", "unlink", "mkdir"):
        setattr(Path, name, counting(getattr(Path, name)))


def forked(work, *args) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        work(*args)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def write(path: str, seed: int, call: int) -> None:
    if call:
        dies_at(call)
    found = numbers(stored(path, seed))
    assert found == WANTED, found


def one_round(path: str, seed: int, writers: int) -> str:
    draw = random.Random(seed)
    writer._BYTES = draw.choice([1, 500, 4000])
    writer._SECONDS = draw.choice([0.001, 5.0])
    storage._PAUSE, storage._PATIENCE = 0.002, draw.choice([0.02, 10.0])
    for _ in range(draw.randint(1, 3)):
        at_call = draw.random() < 0.5
        pids = [forked(write, path, seed, draw.randint(1, 60) if at_call else 0) for _ in range(writers)]
        if not at_call:
            for pid in pids:
                time.sleep(draw.uniform(0.0, 0.06))
                os.kill(pid, signal.SIGKILL)
        for pid in pids:
            status = os.waitpid(pid, 0)[1]
            if status not in (0, signal.SIGKILL):
                return f"a writer failed with {status}"
    for _ in range(2):
        last = forked(write, path, seed, 0)
        if os.waitpid(last, 0)[1]:
            return "the pass behind the crash was wrong"
    (manifest,) = Path(path).glob("*/manifest.json")
    if '"complete": true' not in manifest.read_text():
        return "the entry is not complete"
    return "right"


if __name__ == "__main__":
    os.fsync = lambda file: None  # a killed process leaves its written data, with or without a sync
    WANTED = numbers(pipeline())
    for number in range(2):
        with tempfile.TemporaryDirectory() as folder:
            write(folder, number, 0)
    for line in sys.stdin:
        path, seed, writers = line.split()
        print(one_round(path, int(seed), int(writers)), flush=True)
