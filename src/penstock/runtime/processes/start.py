"""Starts a worker process: a plain command, with a socket for messages and a pipe that ends it with its parent."""

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

# Each process gets one core: additional threads of libraries would only compete.
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
    """A process, the parent's end of its socket, and the pipe that ends it with its parent.

    It is neither a `fork`, which would copy locks but no threads, nor a new run of the user's script.
    """

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
        """Return a process with these ends of socket and pipe: a `subprocess.Popen`, or an object with its methods."""
        command = [sys.executable, "-c", self._start, str(theirs.fileno()), str(near), *search_path()]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, env=_environment(), pass_fds=[theirs.fileno(), near])

    def _over_input(self, theirs: socket.socket) -> subprocess.Popen[bytes]:
        """Start a process on a system where processes do not inherit descriptors (Windows)."""
        command = [sys.executable, "-c", self._start, "-1", "-1", *search_path()]
        popen = subprocess.Popen(command, stdin=subprocess.PIPE, env=_environment())
        assert popen.stdin is not None
        with popen.stdin as pipe:
            pipe.write(theirs.share(popen.pid))  # type: ignore[attr-defined]
        return popen

    def stopped(self) -> bool:
        """Return True if a signal has stopped the process, so that it cannot answer until it is continued."""
        if not hasattr(os, "waitid"):
            return False
        try:
            flags = os.WSTOPPED | os.WNOHANG | os.WNOWAIT
            return os.waitid(os.P_PID, self.popen.pid, flags) is not None
        except OSError:
            return False

    def end(self, patience: float) -> int | None:
        """Kill the process, unless it ends by itself, and return its exit status."""
        for seconds in (patience, 5.0):  # a process inside a system call may outlive both
            try:
                status: int = self.popen.wait(seconds)
                return status
            except subprocess.TimeoutExpired:
                self.popen.kill()
        return None

    def let_go(self) -> None:
        """Close the parent's end of the socket and the pipe, so that the process ends by itself if it can."""
        self.socket.close()
        lifeline, self._lifeline = self._lifeline, None
        if lifeline is not None:
            os.close(lifeline)

    def leave_to_parent(self) -> None:
        """Release the process in a forked child, because it belongs to the parent."""
        self.let_go()
        if self.popen is not None:  # None: this child is the process that is being made
            self.popen.returncode = 0  # otherwise Popen would report that it still runs


class Owner(Protocol):
    """An object that has started a process."""

    @property
    def process(self) -> Process: ...


class _Births:
    """All workers, and a lock during the start of one: a forked child must know the parent's open files."""

    def __init__(self) -> None:
        self.lock = new_rlock()  # reentrant, because a forked worker is made and registered in one step
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
    """Make forked children release the workers of the parent. Must be called before the first worker is made."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=births.hold, after_in_parent=births.go_on)
        in_child(births.leave_to_parent)


def search_path() -> list[str]:
    """Return the import path in a form for another process."""
    return [entry for entry in sys.path if isinstance(entry, str)]


def _environment() -> dict[str, str]:
    return {**_ONE_THREAD, "TOKENIZERS_PARALLELISM": "false", **os.environ}


@contextmanager
def _without_ctrl_c() -> Iterator[None]:
    """Block Ctrl-C during the start of a process, until the process ignores it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
