"""The same hand-overs by hand: threads with a `queue.Queue` of two between them."""

from __future__ import annotations

import threading
import time
from itertools import pairwise
from queue import Queue
from typing import Any

import numpy as np

from _autotune.chain import BLOCK, COUNT, STEPS


def handed_on(threads: int) -> tuple[float, float, int]:
    """Pass arrays through `threads` threads. Return CPU seconds, wall seconds and the number of hand-overs."""
    arrays = np.arange(COUNT).reshape(-1, BLOCK)
    queues: list[Queue[Any]] = [Queue(2) for _ in range(threads + 1)]
    first, *_, last = queues

    def feed() -> None:
        for array in arrays:
            first.put(array)
        first.put(None)

    def step(taken: Queue[Any], given: Queue[Any]) -> None:
        while (array := taken.get()) is not None:
            for _ in range(STEPS // threads):
                array = array + 1
            given.put(array)
        given.put(None)

    workers = [threading.Thread(target=feed)]
    workers += [threading.Thread(target=step, args=pair) for pair in pairwise(queues)]
    cpu, wall = time.process_time(), time.perf_counter()
    for worker in workers:
        worker.start()
    while last.get() is not None:
        pass
    for worker in workers:
        worker.join()
    return time.process_time() - cpu, time.perf_counter() - wall, len(arrays) * len(queues)
