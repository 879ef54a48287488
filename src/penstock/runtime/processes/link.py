"""Link: messages between a process and its worker. Headers go through a socket, arrays through shared memory."""

from __future__ import annotations

import array
import math
import os
import pickle
import select
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

SMALL = 1 << 15  # bytes of arrays up to which a message uses only the socket
_ALIGNMENT = 64
_HEADER = struct.Struct("<QQQQq")  # bytes of body, bytes of head, number of buffers, bytes of content, region or -1


class Late(Exception):
    """The other side exceeded the deadline."""


@dataclass(slots=True)
class Pickled:
    """A value as pickle and buffers, with the place of each buffer in memory of `nbytes`."""

    content: bytes
    buffers: list[Any]
    sizes: list[int]
    starts: list[int]
    nbytes: int

    @classmethod
    def of(cls, content: bytes, buffers: Sequence[pickle.PickleBuffer], memory: np.ndarray | None = None) -> Pickled:
        """Pack buffers. Buffers in `memory` keep their places, and the others follow one after the other."""
        raw = [np.frombuffer(buffer.raw(), np.uint8) for buffer in buffers]
        sizes = [view.nbytes for view in raw]
        starts, at = [-1] * len(raw), 0
        if memory is not None:
            starts = [place_in(memory, view) for view in raw]
            at = aligned(
                max([start + size for start, size in zip(starts, sizes, strict=True) if start >= 0], default=0)
            )
        for number, size in enumerate(sizes):
            if starts[number] < 0:
                starts[number] = at
                at += aligned(size)
        return cls(content, raw, sizes, starts, at)

    def write(self, memory: np.ndarray) -> None:
        """Copy the buffers to their places, without the interpreter's lock. Buffers that are in place stay."""
        for view, start in zip(self.buffers, self.starts, strict=True):
            if place_in(memory, view) != start:
                memory[start : start + len(view)] = view

    def placed(self) -> Pickled:
        """Return the value without its buffers, after they were written elsewhere."""
        return Pickled(self.content, [], self.sizes, self.starts, self.nbytes)

    def moved(self, memory: np.ndarray | None = None) -> Pickled:
        """Return the value with its buffers in `memory`, or in new memory, so that the originals can be freed."""
        if memory is None:
            memory = np.zeros(self.nbytes, np.uint8)
        self.write(memory)
        parts = [memory[start : start + size] for start, size in zip(self.starts, self.sizes, strict=True)]
        return Pickled(self.content, parts, self.sizes, self.starts, self.nbytes)


EMPTY = Pickled(b"", [], [], [], 0)


def aligned(nbytes: int) -> int:
    """Return the number of bytes up to the place of the next array."""
    return -(-nbytes // _ALIGNMENT) * _ALIGNMENT


def place_in(memory: np.ndarray, view: np.ndarray) -> int:
    """Return the position of a view of bytes in `memory`, or -1."""
    start = view.ctypes.data - memory.ctypes.data
    return start if start >= 0 and start + view.nbytes <= memory.nbytes and view.nbytes else -1


@dataclass(slots=True)
class Message:
    """A received message: a small value, and possibly a packed one with its buffers in `region`. -1: no region."""

    head: tuple[Any, ...]
    content: memoryview
    sizes: list[int]
    starts: list[int]
    region: int
    body: np.ndarray
    descriptor: int | None

    @property
    def nbytes(self) -> int:
        return aligned(max([start + size for start, size in zip(self.starts, self.sizes, strict=True)], default=0))

    def buffers(self, memory: np.ndarray | None = None) -> list[np.ndarray]:
        """Return the buffers in `memory`, or those from the socket."""
        memory = self.body if memory is None else memory
        return [memory[start : start + size] for start, size in zip(self.starts, self.sizes, strict=True)]


class Link:
    """One end of a connection. One thread may send while another thread receives.

    Methods raise two kinds of errors:

    - EOFError or OSError: the other process has ended.
    - `Late`: the deadline of the call (on the monotonic clock) has passed. Messages no longer match afterwards.
    """

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)  # a timeout of the socket would hold for both directions
        self._socket = end

    def send(
        self,
        head: tuple[Any, ...],
        packed: Pickled = EMPTY,
        region: int = -1,
        descriptor: int | None = None,
        *,
        deadline: float | None = None,
    ) -> None:
        """Send a message. With a region, the buffers must already be in the region."""
        first, places = pickle.dumps(head, 5), array.array("Q", [*packed.sizes, *packed.starts])
        body = np.empty(packed.nbytes if region < 0 else 0, np.uint8)
        if len(body):
            packed.write(body)
        header = _HEADER.pack(len(body), len(first), len(packed.sizes), len(packed.content), region)
        parts = memoryview(b"".join([header, body.data, first, places.tobytes(), packed.content]))
        if descriptor is not None:
            rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor]))
            parts = parts[self._when_possible(_TO_SEND, deadline, self._socket.sendmsg, [parts], [rights]) :]
        while parts:
            parts = parts[self._when_possible(_TO_SEND, deadline, self._socket.send, parts) :]

    def receive(self, *, deadline: float | None = None) -> Message:
        """Return the next message."""
        header, descriptor = self._header(deadline)
        body, head, count, content, region = _HEADER.unpack(header)
        whole = np.empty(body + head + 16 * count + content, np.uint8)  # the arrays first, because they need alignment
        self._fill(whole.data, deadline)
        rest = whole.data[body:]
        behind = head + 16 * count
        places = array.array("Q", rest[head:behind].tobytes()).tolist() if count else []
        sizes, starts = places[:count], places[count:]
        return Message(pickle.loads(rest[:head]), rest[behind:], sizes, starts, region, whole[:body], descriptor)

    def _header(self, deadline: float | None) -> tuple[bytearray, int | None]:
        """Return the beginning of a message, and the open file that came with it."""
        if not hasattr(self._socket, "recvmsg"):
            whole = bytearray(_HEADER.size)
            self._fill(memoryview(whole), deadline)
            return whole, None
        flags = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
        space = socket.CMSG_SPACE(4)
        begun, rights, _, _ = self._when_possible(
            _TO_RECEIVE, deadline, self._socket.recvmsg, _HEADER.size, space, flags
        )
        if not begun:
            raise EOFError
        found = array.array("i")
        for _, _, content in rights:
            found.frombytes(content[:4])
        rest = bytearray(_HEADER.size - len(begun))
        self._fill(memoryview(rest), deadline)
        return bytearray(begun) + rest, found[0] if found else None

    def _fill(self, content: memoryview, deadline: float | None) -> None:
        while content:
            count = self._when_possible(_TO_RECEIVE, deadline, self._socket.recv_into, content)
            if not count:
                raise EOFError
            content = content[count:]

    def _when_possible(self, what: int, deadline: float | None, call: Callable[..., Any], *given: Any) -> Any:
        """Call `call(*given)` when the socket is ready."""
        while True:
            try:
                return call(*given)
            except BlockingIOError:
                if not possible(self._socket.fileno(), what, deadline):
                    raise Late from None

    def fileno(self) -> int:
        """Return the descriptor for `select`, or -1 after `close`."""
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()


_TO_RECEIVE, _TO_SEND = 1, 4  # POLLIN and POLLOUT, which some systems do not define


def possible(descriptor: int, what: int = _TO_RECEIVE, deadline: float | None = None) -> bool:
    """Wait until a socket can receive or send, or has ended. Return False after the deadline."""
    left = None if deadline is None else max(deadline - time.monotonic(), 0.0)
    if not hasattr(select, "poll"):
        reads, writes = ([descriptor], []) if what == _TO_RECEIVE else ([], [descriptor])
        return any(select.select(reads, writes, [], left))
    poll = select.poll()
    poll.register(descriptor, what)
    return bool(poll.poll(None if left is None else math.ceil(left * 1000)))


# The far end of the pipe closes when its process ends. The worker at the near end is then killed at once.

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


def follow(descriptor: int) -> None:
    """End this process when the other end of the pipe is closed.

    On Linux the kernel does this, so neither a function that holds the interpreter's lock nor a stopped process
    survives.
    """
    if hasattr(fcntl, "F_SETSIG") and hasattr(os, "O_ASYNC"):
        fcntl.fcntl(descriptor, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(descriptor, fcntl.F_SETFL, fcntl.fcntl(descriptor, fcntl.F_GETFL) | os.O_ASYNC)
        if select.select([descriptor], [], [], 0)[0]:  # the pipe was closed before
            os._exit(1)
    else:
        threading.Thread(target=_wait, args=(descriptor,), name="penstock-lifeline", daemon=True).start()


def _wait(descriptor: int) -> None:
    os.read(descriptor, 1)
    os._exit(1)
