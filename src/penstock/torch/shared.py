"""Memory that the processes of a loader share: states of random generators, and the iterations that have ended."""

from __future__ import annotations

import itertools
import mmap
import struct
import threading
from typing import Any

from penstock.block.block import Block
from penstock.block.numbers import Numbers
from penstock.block.same_kind import Decided
from penstock.physical.stretch import Stretch
from penstock.runtime.processes.forks import Order
from penstock.runtime.processes.pool import process_pool
from penstock.runtime.processes.task import ProcessTask
from penstock.torch.drawn import asked_in, block_of


def with_states(header: bytes, number: int, states: bytes) -> bytes:
    """Append the number of a batch and the states of the generators after it."""
    return header + states + _TRAILER.pack(number, len(states))


def states_of(header: bytes) -> tuple[int, bytes]:
    """Return what `with_states` appended.

    >>> states_of(with_states(b"header", 3, b"states"))
    (3, b'states')
    """
    number, size = _TRAILER.unpack(header[-_TRAILER.size :])
    return number, header[len(header) - _TRAILER.size - size : len(header) - _TRAILER.size]


_TRAILER = struct.Struct("<qq")


class SharedPasses:
    """The iterations of a loader that have ended. Forked workers see it, too, and compute no more batches for these."""

    def __init__(self) -> None:
        self._over = mmap.mmap(-1, mmap.PAGESIZE)  # shared with children
        self._numbers = itertools.count()

    def begin(self) -> int:
        """A new one's place."""
        place = next(self._numbers) % len(self._over)
        self._over[place] = False
        return place

    def end(self, place: int) -> None:
        self._over[place] = True

    def is_over(self, place: int) -> bool:
        return bool(self._over[place])


class Slots:
    """The latest states of each forked worker, in memory that a worker shares with the one that replaces it."""

    _HEAD = struct.Struct("<qqq")  # pass, number of the batch, bytes
    _SIZE = 1 << 14

    def __init__(self, workers: int) -> None:
        self._memory = mmap.mmap(-1, workers * 2 * self._SIZE)  # two for each worker: it may die while it writes

    def write(self, worker: int, place: int, number: int, states: bytes) -> None:
        start = (2 * worker + number % 2) * self._SIZE
        self._memory[start : start + self._HEAD.size] = self._HEAD.pack(-1, 0, 0)
        self._memory[start + self._HEAD.size : start + self._HEAD.size + len(states)] = states
        self._memory[start : start + self._HEAD.size] = self._HEAD.pack(place, number, len(states))

    def read(self, worker: int, place: int, number: int) -> bytes | None:
        """Return the states after a batch, or None if they are not the latest ones."""
        start = (2 * worker + number % 2) * self._SIZE
        *found, size = self._HEAD.unpack_from(self._memory, start)
        if found != [place, number] or not size:
            return None
        return self._memory[start + self._HEAD.size : start + self._HEAD.size + size]


class SharedWorkers:
    """The processes that all loaders share. A batch waits for the one before it of its worker, and gets its states."""

    def __init__(self, order: Order, states: list[bytes | None]) -> None:
        self._order, self._states = order, list(states)
        self._changed = threading.Condition()

    def __getattr__(self, name: str) -> Any:
        return getattr(process_pool(), name)

    def run(self, task: ProcessTask, block: Block, numbers: Numbers, kinds: Decided) -> Stretch:
        number, indices = asked_in(block)
        order, worker = self._order, number % self._order.workers
        before = number - order.workers
        with self._changed:
            self._changed.wait_for(lambda: before < order.first or order.done.get(worker, -1) >= before)
        try:
            made = process_pool().run(task, block_of((number, indices, self._states[worker])), numbers, kinds)
            self._states[worker] = _states_in(made) or self._states[worker]
            return made
        finally:
            with self._changed:
                order.done[worker] = number
                self._changed.notify_all()


def _states_in(made: Stretch) -> bytes | None:
    if made.block is None:
        return getattr(made.error, "penstock_states", None)
    return states_of(made.block.elements()[0][0])[1]
