"""What a worker process does: receive transforms once, then Blocks, and send back what became of them."""

from __future__ import annotations

import sys
import traceback
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from penstock.block.transport import pack, portable, unpack
from penstock.errors import Context, FailedPreconditionError
from penstock.physical.stretch import Stretch
from penstock.physical.transform import run_all

START = """
import sys
sys.path[:] = sys.argv[2:]
from penstock.runtime.process_worker import serve
serve(int(sys.argv[1]))
"""


def send(connection: Connection, value: Any) -> None:
    """A message: its pickle with the sizes of the buffers that follow."""
    content, buffers = pack(value)
    raw = [buffer.raw() for buffer in buffers]
    connection.send_bytes(np.array([view.nbytes for view in raw], np.int64).tobytes())
    connection.send_bytes(content)
    for view in raw:
        if view.nbytes:
            connection.send_bytes(view)


def receive(connection: Connection) -> Any:
    """The next message; EOFError when the other side has gone."""
    sizes = np.frombuffer(connection.recv_bytes(), np.int64).tolist()
    content = connection.recv_bytes()
    buffers = []
    for size in sizes:
        buffer = np.empty(size, np.uint8)
        if size:
            connection.recv_bytes_into(buffer)
        buffers.append(buffer)
    return unpack(content, buffers)


def serve(descriptor: int) -> None:
    """Answer until the parent goes.

    Messages: ("transforms", number, value), ("forget", number) and ("run", number, Block, number of its first element).
    """
    connection = Connection(descriptor)
    known: dict[int, Any] = {}
    while True:
        try:
            kind, number, *rest = receive(connection)
        except (EOFError, OSError, KeyboardInterrupt):
            return
        if kind == "transforms":
            known[number] = rest[0]
        elif kind == "forget":
            known.pop(number, None)
        else:
            block, first = rest
            made = run_all(known[number], block, first)
            send(connection, _sendable(made))
            sys.stdout.flush()


def _sendable(made: Stretch) -> Stretch:
    block = None if made.block is None else portable(made.block)
    return Stretch(block, tuple((position, _error(error)) for position, error in made.failures))


def _error(error: Exception) -> Exception:
    """The error with its traceback as a note, or what can be said of one that cannot travel."""
    text = "".join(traceback.format_exception(error)).rstrip()
    try:
        unpack(*pack(error))
    except Exception:
        message = f"{type(error).__name__}: {error}"
        found = FailedPreconditionError(message, hint="The exception itself could not be sent from its process.")
        context = getattr(error, "_penstock_context", Context())
        found.context = context
        error = found
    error.add_note(f"in a worker process:\n{text}")
    return error
