"""ProcessPool: worker processes that stay, for functions that hold the interpreter's lock.

A process is started when a Block first needs one and serves all runs after that. It ends with its parent: a worker
whose parent goes, however it goes, reads the end of its connection.
"""

from __future__ import annotations

import atexit
import itertools
import os
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Sequence
from multiprocessing.connection import Connection

from penstock.block.block import Block
from penstock.block.transport import pack, portable
from penstock.errors import Context, FailedPreconditionError, InvalidArgumentError
from penstock.physical.stretch import Stretch, failure, join
from penstock.physical.transform import Transform
from penstock.runtime.machine import granted_cpus
from penstock.runtime.process_worker import START, receive, send


class _Worker:
    """One process, and the transforms it has been given."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            theirs.set_inheritable(True)
            command = [sys.executable, "-c", START, str(theirs.fileno()), *sys.path]
            self.process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
            self.connection = Connection(ours.detach())
        self.known: set[int] = set()

    def run(self, task: ProcessTask, block: Block, first: int) -> Stretch:
        if task.number not in self.known:
            send(self.connection, ("transforms", task.number, task.transforms))
            self.known.add(task.number)
        send(self.connection, ("run", task.number, block, first))
        made: Stretch = receive(self.connection)
        return made

    def forget(self, number: int) -> None:
        if number in self.known:
            self.known.discard(number)
            send(self.connection, ("forget", number))

    def close(self) -> None:
        self.connection.close()
        try:
            self.process.wait(1)
        except subprocess.TimeoutExpired:  # inside a user's function
            self.process.kill()
            self.process.wait()


class ProcessTask:
    """Transforms that run in worker processes. Called like `run_all`, by any number of threads."""

    def __init__(self, pool: ProcessPool, transforms: Sequence[Transform]) -> None:
        self.transforms = list(transforms)
        self.number = next(pool.numbers)
        self.label = " · ".join(transform.label for transform in transforms)
        self.where = transforms[-1].where
        self._pool = pool
        try:
            pack(self.transforms)
        except Exception as error:
            message = f"{self.label} cannot be sent to a worker process: {error}"
            hint = (
                "Its function holds something that cannot be pickled, such as an open file or a lock: make it inside."
            )
            raise InvalidArgumentError(message, hint=hint, context=Context(self.label, self.where)) from error
        weakref.finalize(self, pool.forget, self.number).atexit = False

    def __call__(self, transforms: Sequence[Transform], block: Block, first: int, allocate: object = None) -> Stretch:
        return self._pool.run(self, portable(block), first)


class ProcessPool:
    """As many worker processes as cores were granted; each serves one thread at a time."""

    def __init__(self, most: int) -> None:
        self.numbers = itertools.count()
        self._most = most
        self._lock = threading.Lock()
        self._free = threading.Condition(self._lock)
        self._idle: list[_Worker] = []
        self._alive = 0
        self._forgotten: set[int] = set()

    def run(self, task: ProcessTask, block: Block, first: int) -> Stretch:
        """What becomes of a Block. One whose process dies is tried again, then in halves: the element is found."""
        codes: list[int | None] = []
        while len(codes) < 2:
            worker = self._take()
            try:
                made = worker.run(task, block, first)
            except (EOFError, OSError):
                worker.close()
                codes.append(worker.process.returncode)
                self._lost()
            except BaseException:  # interrupted between question and answer: they would no longer match
                worker.close()
                self._lost()
                raise
            else:
                self._give_back(worker)
                return made
        if block.size > 1:
            middle = block.size // 2
            parts = [(block.slice(0, middle), first), (block.slice(middle, block.size), first + middle)]
            return join([self.run(task, part, number if first >= 0 else -1) for part, number in parts])
        message = f"Worker processes ended while they ran {task.label} (exit statuses {codes[0]} and {codes[1]})."
        hint = "A negative status is a signal: -9 is what the system sends when memory runs out, -11 a crash in C code."
        file, offset = (None, None) if block.origin is None else block.origin.at(0)
        context = Context(task.label, task.where, first if first >= 0 else None, file, offset)
        error = FailedPreconditionError(message, hint=hint, context=context)
        return failure(error)

    def _take(self) -> _Worker:
        with self._free:
            while not self._idle and self._alive >= self._most:
                self._free.wait()
            if self._idle:
                return self._idle.pop()
            self._alive += 1
        try:
            return _Worker()
        except BaseException:
            self._lost()
            raise

    def _give_back(self, worker: _Worker) -> None:
        for number in tuple(self._forgotten & worker.known):
            worker.forget(number)
        with self._free:
            self._idle.append(worker)
            self._free.notify()

    def _lost(self) -> None:
        with self._free:
            self._alive -= 1
            self._free.notify()

    def forget(self, number: int) -> None:
        """No run uses these transforms any more; the workers hear of it when they have next done something."""
        self._forgotten.add(number)

    def close(self) -> None:
        """End the workers that are idle."""
        with self._lock:
            idle, self._idle = self._idle, []
            self._alive -= len(idle)
        for worker in idle:
            worker.close()


_pool: ProcessPool | None = None
_lock = threading.Lock()


def process_pool() -> ProcessPool:
    """This process's workers."""
    global _pool
    with _lock:
        if _pool is None:
            _pool = ProcessPool(granted_cpus())
            atexit.register(_pool.close)
            os.register_at_fork(after_in_child=_forget_pool)
        return _pool


def _forget_pool() -> None:
    """In a forked child: the workers are the parent's."""
    global _pool
    _pool = None
