"""Worker processes that are forked: copies of this process with all its data, for one user.

They start at once, share the imported modules with this process, and need no pickling. A fork needs care:

- Other threads do not exist in the child, and their locks stay locked. penstock makes its own locks again in the child
  (`penstock.forked`). Python does so for the locks of logging, input and output, the C library for those of malloc, and
  Arrow and OpenBLAS for those of their threads.
- No other thread may import a module when a fork begins (`others_at_rest`), and OpenCV must have no threads
  (`penstock.image.backends`). Other libraries' locks are as in any program that forks: the thread that uses the workers
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
from functools import partial
from typing import Any

from penstock.block.transport import share_main
from penstock.errors import PenstockError
from penstock.runtime.processes.handle import Worker, started
from penstock.runtime.processes.pool import ProcessPool, process_pool
from penstock.runtime.processes.start import Process, births
from penstock.runtime.processes.worker import serve

_PATIENCE = 10.0  # longest delay of a fork in seconds, while other threads import or compile


class Forked(Process):
    """A forked copy of this process, which calls `main` and then works like other workers."""

    def __init__(self, context: Any, main: Callable[[], None]) -> None:
        self._context, self._main = context, main
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


class ForkedPool(ProcessPool):
    """Up to `count` forked workers of one user. They end with the user. Thread-safe.

    Each child first calls `main(number)`. Its number is below `count`, and no other living child has the same number.
    `fork` makes the children in the thread of their user. A dead child is replaced from another thread while the user
    thread is `here`, if it comes in time. Otherwise the user thread may hold any lock.
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
            found = Forked(self._context, partial(self._main, number))
            return found
        finally:
            self._slots[number] = found

    def _give_back(self, worker: Worker) -> None:
        super()._give_back(worker)
        if self._closed:
            self.close()


def _is_gone(held: Process | bool) -> bool:  # noqa: FBT001 - the value of a slot
    return isinstance(held, Process) and (held.socket.fileno() < 0 or held.popen.poll() is not None)
