"""Starting a worker process: a plain command, with a socket to talk by and a lifeline."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Protocol

from penstock.forked import in_child, new_rlock
from penstock.runtime.processes.worker import START

# The cores are shared out among the processes: a library's own threads would only get in their way.
_ONE_THREAD = dict.fromkeys(
    (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "BLIS_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
        "NUMEXPR_NUM_THREADS",
        "NUMBA_NUM_THREADS",
        "OPENCV_FOR_THREADS_NUM",
    ),
    "1",
)


class Process:
    """A process, our end of its socket, and what keeps it alive. Not `fork` (threads, locks), nor the user's script."""

    def __init__(self, start: str | None = None) -> None:
        self._start = START if start is None else start
        self.popen: Any = None
        self.socket, theirs = socket.socketpair()
        self._lifeline: int | None = None
        try:
            with theirs:
                self.popen = self._over_inheritance(theirs) if os.name == "posix" else self._over_input(theirs)
        except BaseException:
            self.let_go()
            raise

    def _over_inheritance(self, theirs: socket.socket) -> Any:
        near, self._lifeline = os.pipe()
        try:
            with _without_ctrl_c():
                return self._begun(theirs, near)
        finally:
            os.close(near)

    def _begun(self, theirs: socket.socket, near: int) -> Any:
        """A process that has these ends of socket and lifeline: `subprocess.Popen`, or as much of it as is used."""
        command = [sys.executable, "-c", self._start, str(theirs.fileno()), str(near), *search_path()]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, env=_environment(), pass_fds=[theirs.fileno(), near])

    def _over_input(self, theirs: socket.socket) -> subprocess.Popen[bytes]:
        """Where processes do not inherit descriptors (Windows)."""
        command = [sys.executable, "-c", self._start, "-1", "-1", *search_path()]
        popen = subprocess.Popen(command, stdin=subprocess.PIPE, env=_environment())
        assert popen.stdin is not None
        with popen.stdin as pipe:
            pipe.write(theirs.share(popen.pid))  # type: ignore[attr-defined]
        return popen

    def stopped(self) -> bool:
        """Whether a signal has stopped it: it will say nothing until somebody continues it."""
        if not hasattr(os, "waitid"):
            return False
        try:
            flags = os.WSTOPPED | os.WNOHANG | os.WNOWAIT
            return os.waitid(os.P_PID, self.popen.pid, flags) is not None
        except OSError:
            return False

    def end(self, patience: float) -> int | None:
        """Kill it, if it does not end by itself. The status it ended with."""
        for seconds in (patience, 5.0):  # a process inside the kernel may stay beyond both
            try:
                status: int = self.popen.wait(seconds)
                return status
            except subprocess.TimeoutExpired:
                self.popen.kill()
        return None

    def let_go(self) -> None:
        """Our end of everything is closed; it ends by itself then, if it can."""
        self.socket.close()
        lifeline, self._lifeline = self._lifeline, None
        if lifeline is not None:
            os.close(lifeline)

    def leave_to_parent(self) -> None:
        """In a forked child: the process is not ours."""
        self.let_go()
        if self.popen is not None:  # else it is this very child, which is being made
            self.popen.returncode = 0  # or Popen would complain that it still runs


class Owner(Protocol):
    """Whoever has started a process."""

    @property
    def process(self) -> Process: ...


class _Births:
    """All workers, and a lock for while one is made: a forked child has to know which open files are the parent's."""

    def __init__(self) -> None:
        self.lock = new_rlock()  # a worker that is forked is made and known at once
        self.living: weakref.WeakSet[Owner] = weakref.WeakSet()

    def hold(self) -> None:
        self.lock.acquire()

    def go_on(self) -> None:
        self.lock.release()

    def leave_to_parent(self) -> None:
        living, self.living = list(self.living), weakref.WeakSet()
        for worker in living:
            worker.process.leave_to_parent()


births = _Births()


@cache
def watch_forks() -> None:
    """Have forked children let go of the parent's workers. To be called before one is made."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=births.hold, after_in_parent=births.go_on)
        in_child(births.leave_to_parent)


def search_path() -> list[str]:
    """Where modules are imported from, as another process can be told."""
    return [entry for entry in sys.path if isinstance(entry, str)]


def _environment() -> dict[str, str]:
    return {**_ONE_THREAD, "TOKENIZERS_PARALLELISM": "false", **os.environ}


@contextmanager
def _without_ctrl_c() -> Iterator[None]:
    """Ctrl-C does not reach a process that is being started, until it has said that it ignores it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
