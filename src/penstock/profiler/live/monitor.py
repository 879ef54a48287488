"""monitor: lets a process answer `penstock top`.

The processes of a user are reached through sockets in a folder that only this user can enter.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import socket
import socketserver
import stat
import tempfile
import threading
import warnings
from pathlib import Path
from typing import Any

from penstock.errors import FailedPreconditionError, NotFoundError, PenstockError
from penstock.forked import in_child, new_lock
from penstock.profiler.live.snapshot import no_longer, snapshot, want
from penstock.runtime import profiled

_SECONDS = 15.0  # seconds for an answer: a machine that trains is busy
_MOST = 1 << 25  # bytes of an answer
_HOW = "Call ps.monitor() in the program, or start it with PENSTOCK_MONITOR=1 in its environment."


def folder(*, make: bool = False) -> Path:
    """Return the folder. Raise FailedPreconditionError if other users might enter it."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and Path(runtime).is_dir() and len(runtime) < 70:  # the path of a socket has at most 107 bytes
        found = Path(runtime) / "penstock"
    else:
        found = Path(tempfile.gettempdir()) / f"penstock-{os.getuid()}"
    if make:
        try:
            found.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            message = f"The folder of the monitor's sockets, {found}, cannot be created: {error}."
            raise FailedPreconditionError(message, hint="Set XDG_RUNTIME_DIR to a folder of your own.") from error
    try:
        about = found.lstat()
    except FileNotFoundError:
        return found
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid() or about.st_mode & 0o077:
        message = f"{found} is not a private folder: other users could read the monitor's data, or act as the monitor."
        raise FailedPreconditionError(message, hint="Remove it, or set XDG_RUNTIME_DIR to a folder of your own.")
    return found


def path_of(pid: int, *, make: bool = False) -> Path:
    return folder(make=make) / f"{pid}.sock"


def monitored() -> list[int]:
    """Return the processes that answer. Sockets of killed processes are removed."""
    found = []
    for path in sorted(folder().glob("*.sock")):
        if not path.stem.isdigit():
            continue
        try:
            _connected(path).close()
        except ConnectionRefusedError:  # a socket gets its name when it listens, so this one's process has ended
            with contextlib.suppress(OSError):
                path.unlink()
        except OSError:
            continue
        else:
            found.append(int(path.stem))
    return found


def ask(pid: int) -> dict[str, Any]:
    """Return a snapshot of a process. Raise NotFoundError with advice if there is none."""
    path = path_of(pid)
    try:
        with _connected(path) as connection:
            return json.loads(_read(connection))
    except (OSError, ValueError) as error:
        raise _why_not(pid, error) from error


def _connected(path: Path) -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.settimeout(_SECONDS)
    try:
        made.connect(str(path))
    except BaseException:
        made.close()
        raise
    return made


def _read(connection: socket.socket) -> bytes:
    connection.sendall(b"snapshot\n")
    parts, size = [], 0
    while part := connection.recv(1 << 16):
        parts.append(part)
        size += len(part)
        if size > _MOST:
            raise ValueError("the answer is too long")
    return b"".join(parts)


def _why_not(pid: int, error: Exception) -> NotFoundError | FailedPreconditionError:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return NotFoundError(
            f"There is no process {pid} (any more).", hint="`penstock top` lists the monitored processes."
        )
    except (PermissionError, OverflowError):
        message = f"Process {pid} belongs to another user: only that user can monitor it."
        return FailedPreconditionError(message, hint="Run `penstock top` as that user, or look at one of your own.")
    if isinstance(error, (FileNotFoundError, ConnectionRefusedError)):
        return NotFoundError(f"Process {pid} is not monitored.", hint=_HOW)
    message = f"Process {pid} does not answer ({type(error).__name__}: {error})."
    return NotFoundError(message, hint="It may be stopped, or busy in code that holds the GIL.")


class Monitor:
    """The result of `ps.monitor()`: the process answers until `stop()` or its end."""

    def __init__(self) -> None:
        self.path: Path | None = path_of(os.getpid(), make=True)
        self._server: _MonitorServer | None = _MonitorServer(self.path)
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.5}, name="penstock-monitor", daemon=True
        ).start()
        want()
        atexit.register(self.stop)
        in_child(self._forget)

    def stop(self) -> None:
        """Stop answering. Idempotent."""
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
        """Close the socket in a forked child. The parent keeps the socket and its name."""
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
    """Let `penstock top` show the iterations of this process that start after this call.

    A thread answers requests on a local socket, in a folder that only this user can enter. Nothing is sent to another
    machine, and nothing is written to disk. `PENSTOCK_MONITOR=1` in the environment does the same for a program that
    you do not want to change. A second call returns the same monitor. A forked child process must call `monitor()`
    itself.

    Returns:
        A context manager. The end of its block, its method `stop`, or the end of the process stops the monitor.

    Raises:
        FailedPreconditionError: If other users can enter the folder of the socket.

    Example:
        >>> import penstock as ps
        >>> with ps.monitor():
        ...     elements = list(ps.Dataset.range(3))
    """
    global _monitor
    with _lock:
        if _monitor is None or _monitor._server is None:
            _monitor = Monitor()
        return _monitor


def begin_as_asked() -> None:
    """Start to answer if the environment requests it."""
    if not profiled.monitored():
        return
    try:
        monitor()
    except (PenstockError, OSError) as error:
        warnings.warn(f"This process cannot be monitored: {error}", stacklevel=2)


class _Answer(socketserver.BaseRequestHandler):
    """Sends one snapshot per request line."""

    def handle(self) -> None:
        connection: socket.socket = self.request
        connection.settimeout(_SECONDS)
        with contextlib.suppress(OSError):
            if connection.recv(4096).startswith(b"snapshot"):
                connection.sendall(self.server.answer())  # type: ignore[attr-defined]


class _MonitorServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 16

    def __init__(self, path: Path) -> None:
        self._answering = threading.Lock()
        beside = path.with_suffix(".new")
        beside.unlink(missing_ok=True)
        super().__init__(str(beside), _Answer)
        beside.replace(path)  # a file with the final name always accepts connections

    def answer(self) -> bytes:
        with self._answering:
            return json.dumps(snapshot(), default=_plain).encode()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing: the terminal belongs to the training run."""


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else str(value)
