"""Unix sockets that check a token before they unpickle anything.

The sockets are in a folder that only its owner may enter. As in `multiprocessing.connection`, both sides prove that
they know the token without sending it.
"""

from __future__ import annotations

import os
import secrets
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from pathlib import Path

from penstock.errors import FailedPreconditionError, InvalidArgumentError, UnimplementedError
from penstock.runtime.processes.link import Link

_LONGEST = 100  # bytes of a socket's path; the limit of systems is a little higher
_PATIENCE = 10  # seconds for the other side to prove that it knows the token
_TOKEN = "token"


def private_folder(folder: str) -> str:
    """Create a folder that only its owner may enter, with a token in it. An existing folder is checked."""
    if not hasattr(socket, "AF_UNIX"):
        message = "A service needs sockets that are files, which this system does not have."
        raise UnimplementedError(message, hint="service='local' does without: distribute() starts its own workers.")
    if len(os.fsencode(folder)) > _LONGEST - 20:
        message = f"The folder of a service has to have a short path, as it holds sockets; this one is {folder!r}."
        raise InvalidArgumentError(message, hint="For example a folder in /tmp.")
    Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    _check_private(folder)
    with suppress(FileExistsError):
        number = os.open(Path(folder, _TOKEN), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(number, "wb") as file:
            file.write(secrets.token_hex(32).encode())
    return folder


def token_of(folder: str) -> bytes:
    """Return the token of a folder.

    Raises FailedPreconditionError if other users own or may enter the folder. Data from its sockets is unpickled, so no
    other user may listen there. Raises OSError if there is no token.
    """
    _check_private(folder)
    return Path(folder, _TOKEN).read_bytes()


def _check_private(folder: str) -> None:
    found = Path(folder).stat()
    if found.st_uid != os.getuid() or found.st_mode & 0o077:
        message = f"Others may enter the folder {folder!r}, and a service is for its owner alone."
        raise FailedPreconditionError(message, hint="Give another folder, or none to have one made; or chmod 700 it.")


def listening(path: str) -> socket.socket:
    """Return a socket at `path` that accepts connections."""
    with suppress(FileNotFoundError):
        Path(path).unlink()
    found = socket.socket(socket.AF_UNIX)
    found.bind(path)
    Path(path).chmod(0o600)
    found.listen(64)
    return found


def accepted(end: socket.socket, token: bytes) -> Link:
    """Return the link to a program that has connected.

    Raises AuthenticationError or OSError if it does not know the token.
    """
    _bounded(end, _PATIENCE)
    with Connection(os.dup(end.fileno())) as talk:
        deliver_challenge(talk, token)
        answer_challenge(talk, token)
    _bounded(end, 0)
    return Link(end)


def serve_each(door: socket.socket, token: bytes, serve: Callable[[Link], object]) -> None:
    """Accept connections in threads. Call `serve` with the link of each program that knows the token."""

    def take_in(end: socket.socket) -> None:
        try:
            link = accepted(end, token)
        except (AuthenticationError, EOFError, OSError):
            end.close()
            return
        serve(link)

    def wait() -> None:
        while True:
            try:
                end, _ = door.accept()
            except OSError:  # the socket was closed
                return
            threading.Thread(target=take_in, args=(end,), name="penstock-greets", daemon=True).start()

    threading.Thread(target=wait, name="penstock-door", daemon=True).start()


def connected(path: str, token: bytes) -> Link:
    """Connect to a listening socket, and return the link. Raises OSError if no program listens."""
    end = socket.socket(socket.AF_UNIX)
    try:
        _bounded(end, _PATIENCE)
        end.connect(path)
        with Connection(os.dup(end.fileno())) as talk:
            answer_challenge(talk, token)
            deliver_challenge(talk, token)
        _bounded(end, 0)
    except (AuthenticationError, EOFError) as error:
        end.close()
        raise ConnectionRefusedError(str(error)) from error
    except BaseException:
        end.close()
        raise
    return Link(end)


def _bounded(end: socket.socket, seconds: int) -> None:
    """Limit the time of each call; 0 means no limit. The option of the socket also applies to duplicates of it."""
    for which in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        end.setsockopt(socket.SOL_SOCKET, which, struct.pack("ll", seconds, 0))
