"""Worker processes that are forked: copies of this process with all its data, for one user.

They start at once, share the imported modules with this process, and need no pickling. A fork needs care:

- Other threads do not exist in the child, and their locks stay locked. penstock makes its own locks again in the child
  (`penstock.forked`). Python does so for the locks of logging, input and output, the C library for those of malloc, and
  Arrow and OpenBLAS for those of their threads.
- No other thread may import a module when a fork begins (`others_at_rest`), and OpenCV must have no threads
  (`penstock.opencv`). Other libraries' locks are as in any program that forks: the thread that uses the workers
  either forks, or waits during the fork.
- The parent handles Ctrl-C, SIGTERM and the wake-ups of an event loop, and collects its own garbage.
"""

from __future__ import annotations

import gc
import importlib
import multiprocessing.connection
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from penstock.block.block import Block
from penstock.block.numbers import Numbers
from penstock.block.same_kind import Decided
from penstock.block.transport import share_main
from penstock.errors import PenstockError
from penstock.physical.stretch import Stretch
from penstock.runtime.processes.handle import Worker, started
from penstock.runtime.processes.pool import ProcessPool, process_pool
from penstock.runtime.processes.start import Process, births
from penstock.runtime.processes.task import ProcessTask
from penstock.runtime.processes.worker import serve

_PATIENCE = 10.0  # longest delay of a fork in seconds, while other threads import or compile


class ForkedProcess(Process):
    """A forked copy of this process, which calls `main(number)` and then works like other workers."""

    def __init__(self, context: Any, main: Callable[[int], None], number: int) -> None:
        self._context, self._main, self.number = context, partial(main, number), number
        super().__init__()

    @property
    def process(self) -> Process:
        """The handle is its own owner, because the child must close the parent's ends at once."""
        return self

    def _begun(self, theirs: socket.socket, near: int) -> Any:
        births.living.add(self)
        child = self._context.Process(target=_serve, args=(theirs.fileno(), near, self._main), daemon=True)
        with others_at_rest():
            child.start()
        return _Child(child)


class _Child:
    """The methods of `subprocess.Popen` that are needed, for a multiprocessing process and several threads."""

    def __init__(self, child: Any) -> None:
        self._child = child
        self._lock = threading.RLock()  # the exit status can be read only once
        self.pid: int = child.pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        with self._lock:
            found: int | None = self._child.exitcode
        return found

    def wait(self, seconds: float) -> int:
        if multiprocessing.connection.wait([self._child.sentinel], seconds):
            with self._lock:
                self._child.join()
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired(self._child.name, seconds)
        return code

    def kill(self) -> None:
        self._child.kill()


def _serve(descriptor: int, lifeline: int, main: Callable[[], None]) -> None:
    """Run a worker in the child."""
    share_main()
    gc.freeze()  # later collections skip the old objects, so their pages stay shared with the parent
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    main()
    serve(descriptor, lifeline)


@contextmanager
def others_at_rest(patience: float = _PATIENCE) -> Iterator[None]:
    """Wait until no other thread imports a module, because a child would wait for such a thread for ever.

    The wait ends after `patience` seconds.
    """
    deadline = time.monotonic() + patience
    while _others_import() and time.monotonic() < deadline:
        time.sleep(0.001)
    yield


def _others_import() -> bool:
    locks = getattr(importlib._bootstrap, "_module_locks", {})
    known = [reference() for reference in list(locks.values())]
    return any(getattr(lock, "owner", None) not in (None, threading.get_ident()) for lock in known)


class Here:
    """Entered by the user thread during its wait for workers. The thread then holds no lock that a child needs."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._users = self._forks = 0

    def __enter__(self) -> None:
        with self._changed:
            self._users += 1
            self._changed.notify_all()

    def __exit__(self, *error: object) -> None:
        with self._changed:
            self._users -= 1
            while self._forks:
                self._changed.wait()

    @contextmanager
    def forking(self, patience: float = 1.0) -> Iterator[None]:
        """Fork while the user thread is here, and keep it here. After `patience` seconds, fork without it."""
        with self._changed:
            self._changed.wait_for(lambda: self._users, patience)
            self._forks += 1
        try:
            yield
        finally:
            with self._changed:
                self._forks -= 1
                self._changed.notify_all()


class BlockPlace:
    """The place of a Block in the order of one worker, for which the pool holds its lock.

    A worker may have a Block and the one before it at the same time. If a worker dies, its Blocks are sent again, each
    one after the one before it has come back.
    """

    def __init__(self, order: Order, number: int) -> None:
        self._order, self._number = order, number
        self.worker = number % order.workers

    def comes(self, worker: Worker) -> bool:
        """Return True if `worker` may get the Block now, and note that it does."""
        order, before = self._order, self._number - self._order.workers
        done = before < order.first or order.done.get(self.worker, -1) >= before
        late = any(number % order.workers == self.worker for number in order.late)
        if not done and (late or order.sent.get(self.worker) != (before, worker)):
            return False
        order.sent[self.worker] = self._number, worker
        return True

    def is_late(self) -> None:
        """Note that the Block is sent again."""
        self._order.late.add(self._number)

    def ends(self) -> None:
        """Note that the Block, or an error in its place, has come back."""
        self._order.late.discard(self._number)
        self._order.done[self.worker] = self._number


@dataclass
class Order:
    """The Blocks of a run: number n is for worker n modulo the number of workers."""

    workers: int
    first: int  # number of the first Block
    done: dict[int, int] = field(default_factory=dict)  # of each worker: the last Block that has come back
    sent: dict[int, tuple[int, Worker]] = field(default_factory=dict)  # and the last one that was sent, and where to
    late: set[int] = field(default_factory=set)  # Blocks that are sent again


class ForkedPool(ProcessPool):
    """Up to `count` forked workers of one user. They end with the user. Thread-safe.

    Each child first calls `main(number)`. Its number is below `count`, and no other living child has the same number.
    `fork` makes the children in the thread of their user. A dead child is replaced from another thread while the user
    thread is `here`, if it comes in time. Otherwise the user thread may hold any lock.

    Blocks that have a place (`place_of`) go to the worker of their number, in order.
    """

    def __init__(self, context: Any, count: int, main: Callable[[int], None], *, at_once: int = 1) -> None:
        self.here = Here()
        self._context, self._main = context, main
        self._stopped = False
        self._slots: list[Process | bool] = [False] * count  # True during a fork
        super().__init__(count, most=count, memory=process_pool().memory, at_once=at_once)

    def fork(self) -> None:
        """Fork all workers at once. Raises FailedPreconditionError if the system allows no process."""
        for _ in range(self._cpus):
            try:
                worker = started(partial(Worker, self.memory, self._made), lambda: True, wait=False)
            except PenstockError:
                if not self._workers:
                    raise
                return  # continue with fewer workers
            with self._lock:
                self._workers.add(worker)
                self._rests(worker)

    def place_of(self, task: ProcessTask, block: Block) -> BlockPlace | None:
        """Return the place of a Block, if the order in a worker matters."""
        return None

    def run(self, task: ProcessTask, block: Block, numbers: Numbers, kinds: Decided, *, alone: bool = False) -> Stretch:
        place = self.place_of(task, block)
        try:
            return super().run(task, block, numbers, kinds, alone=alone)
        finally:
            if place is not None:
                with self._lock:
                    place.ends()
                    self._free.notify_all()

    def _take(self, task: ProcessTask, block: Block, *, again: bool) -> Worker:
        place = self.place_of(task, block)
        if place is None:
            return super()._take(task, block, again=again)
        with self._lock:
            if again:
                place.is_late()
            self._waiting += 1
            try:
                while True:
                    worker = self._of_number(place.worker)
                    if worker is not None and worker.users < self.at_once and place.comes(worker):
                        if worker in self._idle:
                            self._idle.remove(worker)
                        worker.users += 1
                        return worker
                    self._free.wait()
            finally:
                self._waiting -= 1

    def _of_number(self, number: int) -> Worker | None:
        """Return the worker of this number; another one, if it cannot be started; None, if it starts."""
        fit = [worker for worker in self._workers if worker.fit()]
        for worker in [worker for worker in self._idle if worker not in fit]:
            self._idle.remove(worker)
            self._workers.discard(worker)
            worker.end()
        own = [worker for worker in fit if isinstance(at := worker.process, ForkedProcess) and at.number == number]
        if own:
            return own[0]
        if self._failed is None:
            self._begin_more(self._cpus - len(fit) - self._starting)
            return None
        if fit:
            return min(fit, key=lambda worker: worker.users)
        if self._starting:
            return None
        error, self._failed = self._failed, None
        self._free.notify_all()
        raise error

    def stop(self) -> None:
        """Replace no worker any more. Running tasks may end."""
        self._stopped = True

    def _begin_worker(self, wanted: Callable[[], bool]) -> Worker:
        return started(self._replaced, lambda: wanted() and not self._stopped)

    def _replaced(self) -> Worker:
        with self.here.forking():
            if self._stopped:
                message = "it is no longer needed"
                raise ChildProcessError(message)
            return Worker(self.memory, self._made)

    def _made(self) -> Process:
        with self._lock:
            number = next(n for n, held in enumerate(self._slots) if held is False or _is_gone(held))
            self._slots[number] = True
        found: Process | bool = False
        try:
            found = ForkedProcess(self._context, self._main, number)
            return found
        finally:
            self._slots[number] = found

    def _give_back(self, worker: Worker) -> None:
        super()._give_back(worker)
        if self._closed:
            self.close()


def _is_gone(held: Process | bool) -> bool:  # noqa: FBT001 - the value of a slot
    return isinstance(held, Process) and (held.socket.fileno() < 0 or held.popen.poll() is not None)
