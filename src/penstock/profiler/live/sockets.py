"""sockets: where monitored processes of this user are reached: a folder that nobody else enters, a socket for each."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import stat
import tempfile
from pathlib import Path
from typing import Any

from penstock.errors import FailedPreconditionError, NotFoundError

_SECONDS = 15.0  # that an answer may take: a machine that trains is busy
_MOST = 1 << 25  # bytes of an answer
_HOW = "Call ps.monitor() in the program, or start it with PENSTOCK_MONITOR=1 in its environment."


def folder(*, make: bool = False) -> Path:
    """The folder; raises FailedPreconditionError where somebody else might enter it."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and Path(runtime).is_dir() and len(runtime) < 70:  # a socket's path has 107 bytes at most
        found = Path(runtime) / "penstock"
    else:
        found = Path(tempfile.gettempdir()) / f"penstock-{os.getuid()}"
    if make:
        try:
            found.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            message = f"The folder of the monitor's sockets, {found}, cannot be made: {error}."
            raise FailedPreconditionError(message, hint="Set XDG_RUNTIME_DIR to a folder that is yours.") from error
    try:
        about = found.lstat()
    except FileNotFoundError:
        return found
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid() or about.st_mode & 0o077:
        message = f"{found} is not a folder that you alone may enter: others could read or stand in for the monitor."
        raise FailedPreconditionError(message, hint="Remove it, or set XDG_RUNTIME_DIR to a folder that is yours.")
    return found


def path_of(pid: int, *, make: bool = False) -> Path:
    return folder(make=make) / f"{pid}.sock"


def monitored() -> list[int]:
    """The processes that answer; sockets that killed ones have left are removed."""
    found = []
    for path in sorted(folder().glob("*.sock")):
        if not path.stem.isdigit():
            continue
        try:
            _connected(path).close()
        except ConnectionRefusedError:  # a socket takes its name when it is listened to: this one's process has ended
            with contextlib.suppress(OSError):
                path.unlink()
        except OSError:
            continue
        else:
            found.append(int(path.stem))
    return found


def ask(pid: int) -> dict[str, Any]:
    """A snapshot of a process. Raises NotFoundError where there is none to be had, with how to come by one."""
    path = path_of(pid)
    try:
        with _connected(path) as connection:
            answer: dict[str, Any] = json.loads(_read(connection))
            return answer
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
            message = "an answer without end"
            raise ValueError(message)
    return b"".join(parts)


def _why_not(pid: int, error: Exception) -> NotFoundError | FailedPreconditionError:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return NotFoundError(f"There is no process {pid} (any more).", hint="`penstock top` lists those there are.")
    except (PermissionError, OverflowError):
        message = f"Process {pid} is another user's: only that user can look at it."
        return FailedPreconditionError(message, hint="Run `penstock top` as that user, or look at one of your own.")
    if isinstance(error, (FileNotFoundError, ConnectionRefusedError)):
        return NotFoundError(f"Process {pid} is not monitored.", hint=_HOW)
    message = f"Process {pid} does not answer ({type(error).__name__}: {error})."
    return NotFoundError(message, hint="It may be stopped, or busy in code that does not let go of Python's lock.")
