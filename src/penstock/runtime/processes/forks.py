"""Worker processes that are forked: copies of this process as it is, with all that it holds, for one user of them.

They are there at once, share what is imported with this process, and need nothing pickled. What a fork takes care of:

- Other threads are not in the child, and what they held stays taken. penstock's own locks are made anew there
  (`penstock.forked`), Python makes anew those of logging and of its input and output, the C library those of malloc,
  Arrow and OpenBLAS those of their threads. Nobody else imports a module when a fork begins
  (`others_at_rest`), and OpenCV has no threads of its own by then (`penstock.image.backends`). Locks of other
  libraries are as in any program that forks: the thread that uses the workers forks, or waits for us meanwhile.
- Ctrl-C, SIGTERM and an event loop's wake-ups are the parent's matter, and its garbage stays the parent's.
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

_PATIENCE = 10.0  # seconds for which a fork is put off while other threads import or compile


class Forked(Process):
    """A forked copy of this process, which calls `main` and then answers as other workers do."""

    def __init__(self, context: Any, main: Callable[[], None]) -> None:
        self._context, self._main = context, main
        super().__init__()

    @property
    def process(self) -> Process:
        """It is its own owner: the child has to let go of its parent's ends from the first moment."""
        return self

    def _begun(self, theirs: socket.socket, near: int) -> Any:
        births.living.add(self)
        child = self._context.Process(target=_serve, args=(theirs.fileno(), near, self._main), daemon=True)
        with others_at_rest():
            child.start()
        return _Child(child)


class _Child:
    """The part of `subprocess.Popen` that is asked for, of a process of multiprocessing, by several threads."""

    def __init__(self, child: Any) -> None:
        self._child = child
        self._lock = threading.RLock()  # its status is there once, and may be asked for once
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
    """In the child."""
    share_main()
    gc.freeze()  # what was there before is not looked through again: its pages stay shared with the parent
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    main()
    serve(descriptor, lifeline)


@contextmanager
def others_at_rest(patience: float = _PATIENCE) -> Iterator[None]:
    """No other thread is inside an import: a child would wait for it for ever.

    Who takes longer than `patience` seconds is not waited for.
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
    """Entered by the thread that uses workers while it waits for them, and so holds no lock that a child would need."""

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
        """From when somebody is here, who does not leave meanwhile; without anybody after `patience` seconds."""
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
    """Up to `count` forked workers of one user, which end with it. Thread-safe.

    Each child calls `main(number)` first, where its number is below `count`, and that of no other living one. `fork`
    makes them, in the thread of whoever uses them. One that has died is replaced from another thread, while that one is
    `here`, if it comes: it may hold any lock when it is not.
    """

    def __init__(self, context: Any, count: int, main: Callable[[int], None], *, at_once: int = 1) -> None:
        self.here = Here()
        self._context, self._main = context, main
        self._stopped = False
        self._slots: list[Process | bool] = [False] * count  # True while one is being made
        super().__init__(count, most=count, memory=process_pool().memory, at_once=at_once)

    def fork(self) -> None:
        """Have all workers, at once. Raises FailedPreconditionError where the system gives none."""
        for _ in range(self._cpus):
            try:
                worker = started(partial(Worker, self.memory, self._made), lambda: True, wait=False)
            except PenstockError:
                if not self._workers:
                    raise
                return  # those there are have to do
            with self._lock:
                self._workers.add(worker)
                self._rests(worker)

    def stop(self) -> None:
        """What is still at work may end; no worker is replaced any more."""
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


def _is_gone(held: Process | bool) -> bool:  # noqa: FBT001 - what a slot holds
    return isinstance(held, Process) and (held.socket.fileno() < 0 or held.popen.poll() is not None)
