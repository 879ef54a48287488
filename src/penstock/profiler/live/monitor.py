"""monitor: a process that answers `penstock top`."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import socket
import socketserver
import threading
import warnings
from pathlib import Path
from typing import Any

from penstock.errors import PenstockError
from penstock.forked import in_child, new_lock
from penstock.profiler.live.observer import no_longer, want
from penstock.profiler.live.snapshot import snapshot
from penstock.profiler.live.sockets import path_of
from penstock.runtime import profiled

_SECONDS = 15.0  # that one who asks may take


class Monitor:
    """What `ps.monitor()` gives: the process answers until `stop()`, or until it ends."""

    def __init__(self) -> None:
        self.path: Path | None = path_of(os.getpid(), make=True)
        self._server: _Server | None = _Server(self.path)
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.5}, name="penstock-monitor", daemon=True
        ).start()
        want()
        atexit.register(self.stop)
        in_child(self._forget)

    def stop(self) -> None:
        """Answer no longer. Idempotent."""
        global _monitor
        server, self._server = self._server, None
        if server is None:
            return
        atexit.unregister(self.stop)
        if self.path is not None:
            self.path.unlink(missing_ok=True)
        server.shutdown()
        server.server_close()
        no_longer()
        with _lock:
            _monitor = None if _monitor is self else _monitor

    def _forget(self) -> None:
        """In a forked child: the socket is the parent's, whose name stays."""
        server, self._server = self._server, None
        if server is not None:
            server.socket.close()

    def __enter__(self) -> Monitor:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<Monitor: penstock top {os.getpid()}>" if self._server is not None else "<Monitor: stopped>"


_monitor: Monitor | None = None
_lock = new_lock()


def monitor() -> Monitor:
    """Let `penstock top` look at the passes of this process that begin from now on.

    The process listens on a local socket in a folder that only this user can enter, and a thread of its own answers;
    nothing is sent to anybody else, and nothing is written. `PENSTOCK_MONITOR=1` in the environment does the same for a
    program that you do not want to change. It ends with the process, with `stop()`, or at the end of a `with` block. A
    second call gives the monitor that is there. A forked child does not answer; it may call `monitor()` itself.

    >>> import penstock as ps
    >>> with ps.monitor():
    ...     elements = list(ps.Dataset.range(3))

    Raises FailedPreconditionError where the folder of the socket is not this user's alone.
    """
    global _monitor
    with _lock:
        if _monitor is None or _monitor._server is None:
            _monitor = Monitor()
        return _monitor


def begin_as_asked() -> None:
    """Answer if the environment asks for it."""
    if not profiled.monitored():
        return
    try:
        monitor()
    except (PenstockError, OSError) as error:
        warnings.warn(f"This process cannot be monitored: {error}", stacklevel=2)


class _Answer(socketserver.BaseRequestHandler):
    """A line comes, the values go, and that is all."""

    def handle(self) -> None:
        connection: socket.socket = self.request
        connection.settimeout(_SECONDS)
        with contextlib.suppress(OSError):
            if connection.recv(4096).startswith(b"snapshot"):
                connection.sendall(self.server.answer())  # type: ignore[attr-defined]


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 16

    def __init__(self, path: Path) -> None:
        self._answering = threading.Lock()
        beside = path.with_suffix(".new")
        beside.unlink(missing_ok=True)
        super().__init__(str(beside), _Answer)
        beside.replace(path)  # what has the name is listened to

    def answer(self) -> bytes:
        with self._answering:
            return json.dumps(snapshot(), default=_plain).encode()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A thread that answers says nothing on the terminal of a training run."""


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else str(value)
