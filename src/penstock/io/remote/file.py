"""RemoteFile: an object as a readable file, which requests the next bytes before they are needed.

FilesAhead opens the next files before their turn.
"""

from __future__ import annotations

import io
import os
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from penstock.forked import in_child, new_lock
from penstock.io.remote.object import LARGEST, RemoteObject, coalesced
from penstock.io.remote.system import POOL, ROOM, in_flight_for

_LEAST = 1 << 16  # bytes of a request out of order
_FIRST = 1 << 18  # bytes of the first request of a file that is read in order


@dataclass(slots=True)
class _Piece:
    start: int
    stop: int
    future: Future[bytes]
    taken: bool = False  # True if it counts in ROOM, the memory for reading ahead

    def drop(self) -> None:
        self.future.cancel()
        self.give()

    def give(self) -> None:
        if self.taken:
            self.taken = False
            ROOM.give(self.stop - self.start)


class RemoteFile(io.RawIOBase):
    """A file to read and seek, for one thread at a time.

    Sequential reads are requested ahead, in as many requests as the connection rewards. Random reads are requested as
    they are; `want` announces them. A forked child can continue to read.
    """

    def __init__(self, url: str) -> None:
        super().__init__()
        self.name = url
        self._object = RemoteObject(url)
        self._rate = in_flight_for(url)
        self._at = 0
        self._held: tuple[int, bytes] = (0, b"")
        self._ahead: deque[_Piece] = deque()
        self._wanted: list[_Piece] = []
        self._followed = 0  # start of a read that follows the last one
        self._behind = 0  # end of the sequential requests
        self._pid = os.getpid()
        self._lock = new_lock()  # pyarrow reads from several threads, one after the other
        self._rate.readers += 1

    def begin(self) -> RemoteFile:
        """Request the first bytes."""
        self._fill(0, first=True)
        return self

    @property
    def size(self) -> int:
        return self._object.size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = max((0, self._at, self._object.size)[whence] + offset, 0)
        return self._at

    def readall(self) -> bytes:
        return self.read(-1)

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        content = self.read(len(view))
        view[: len(content)] = content
        return len(content)

    def read(self, size: int | None = -1) -> bytes:
        """Return up to `size` bytes, fewer only at the end. Raises the errors of `RemoteObject.read`."""
        if self.closed:
            message = f"The file {self.name!r} is closed."
            raise ValueError(message)
        with self._lock:
            return self._read(self._object.size if size is None or size < 0 else size)

    def want(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Request ranges that will be read soon, in any order. Earlier announced ranges are forgotten."""
        with self._lock:
            self._check_process()
            for piece in self._wanted:
                piece.drop()
            self._wanted = []
            for start, stop in coalesced(ranges):
                for at in range(start, min(stop, self._object.size), LARGEST):
                    end = min(at + LARGEST, stop, self._object.size)
                    if not ROOM.take(end - at):
                        return
                    self._wanted.append(self._asked(at, end, taken=True))

    def _read(self, size: int) -> bytes:
        self._check_process()
        stop = min(self._at + size, self._object.size)
        parts = []
        while self._at < stop:
            begin, content = self._held
            if not begin <= self._at < begin + len(content):
                begin, content = self._held = self._found(stop - self._at)
            if begin == self._at and len(content) <= stop - begin:
                part = content
            else:
                part = content[self._at - begin : stop - begin]
            parts.append(part)
            self._at += len(part)
        self._followed = self._at
        if self._at >= self._object.size > 0:
            self._object.finish()
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _found(self, size: int) -> tuple[int, bytes]:
        """Return bytes that begin at or before the position, and their start. They have at least the next byte."""
        at = self._at
        while self._ahead and self._ahead[0].stop <= at:
            self._ahead.popleft().drop()
        if self._ahead and self._ahead[0].start <= at:
            return self._next_ahead()
        for piece in self._wanted:
            if piece.start <= at < piece.stop:
                self._wanted.remove(piece)
                return self._taken(piece)
        if at == self._followed:
            for piece in self._ahead:
                piece.drop()
            self._ahead.clear()
            self._fill(at, first=True)
            return self._next_ahead()
        stop = min(at + max(size, _LEAST), self._object.size)
        if stop - at <= LARGEST:
            return at, self._object.read(at, stop)
        cuts = [*range(at, stop, LARGEST), stop]
        pieces = [self._asked(a, b) for a, b in pairwise(cuts)]
        return at, b"".join(piece.future.result() for piece in pieces)

    def _next_ahead(self) -> tuple[int, bytes]:
        piece = self._ahead.popleft()
        self._fill(self._behind)
        return self._taken(piece)

    def _taken(self, piece: _Piece) -> tuple[int, bytes]:
        try:
            began = time.monotonic()
            content = piece.future.result()
            self._rate.saw(len(content), time.monotonic() - began)
            return piece.start, content
        finally:
            piece.give()

    def _fill(self, at: int, *, first: bool = False) -> None:
        """Request the bytes from `at` on, up to the limit in flight.

        Without room, only the first piece is requested, because a reader waits for it.
        """
        room, piece = self._rate.share, _FIRST if first else self._rate.piece
        have = sum(each.stop - each.start for each in self._ahead)
        while at < self._object.size and have < room:
            stop = min(at + piece, self._object.size)
            taken = ROOM.take(stop - at)
            if not taken and (self._ahead or not first):
                break
            self._ahead.append(self._asked(at, stop, taken=taken))
            have += stop - at
            at = stop
            piece = self._rate.piece
        self._behind = at

    def _asked(self, start: int, stop: int, *, taken: bool = False) -> _Piece:
        whole = self._object
        return _Piece(start, stop, POOL.submit(lambda: whole.read(start, stop)), taken)

    def _check_process(self) -> None:
        """Drop the parent's requests in a forked child, which has no threads for them."""
        if self._pid != os.getpid():
            self._pid = os.getpid()
            self._ahead.clear()
            self._wanted.clear()
            self._rate = in_flight_for(self.name)
            self._rate.readers += 1
            self._followed = self._at

    def close(self) -> None:
        """Drop the requests and close the object. Idempotent."""
        if not self.closed:
            if self._pid == os.getpid():
                for piece in (*self._ahead, *self._wanted):
                    piece.drop()
                self._rate.readers -= 1
            self._ahead.clear()
            self._wanted.clear()
            self._held = (0, b"")
            self._object.close()
        super().close()


_MOST = 32  # files
_UNKNOWN = 1 << 18  # assumed bytes of a file with unknown size


class _OpenedAhead:
    """Files that were requested ahead, by name, until they are opened or dropped."""

    def __init__(self) -> None:
        self._begin_anew()
        in_child(self._begin_anew)

    def _begin_anew(self) -> None:
        self._lock = threading.Lock()
        self._files: dict[str, list[Future[RemoteFile]]] = {}

    def ask(self, name: str) -> Future[RemoteFile]:
        future = POOL.submit(lambda: RemoteFile(name).begin())
        with self._lock:
            self._files.setdefault(name, []).append(future)
        return future

    def take(self, name: str) -> Future[RemoteFile] | None:
        with self._lock:
            waiting = self._files.get(name)
            if not waiting:
                return None
            future = waiting.pop(0)
            if not waiting:
                del self._files[name]
            return future

    def drop(self, name: str, future: Future[RemoteFile]) -> None:
        with self._lock:
            waiting = self._files.get(name, [])
            if future not in waiting:
                return  # a reader has opened it
            waiting.remove(future)
            if not waiting:
                del self._files[name]
        if not future.cancel():
            future.add_done_callback(_closed)


def _closed(future: Future[RemoteFile]) -> None:
    if not future.cancelled() and future.exception() is None:
        future.result().close()


_OPENED = _OpenedAhead()


class FilesAhead:
    """Opens files ahead of time, because each small file costs the server's delay.

    A large file reads ahead by itself.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._next = 0
        self._asked: deque[tuple[int, Future[RemoteFile]]] = deque()

    def reading(self, number: int) -> None:
        """Report that file `number` is being read, and request the next files, up to the limit in flight."""
        while self._asked and self._asked[0][0] <= number:
            self._asked.popleft()
        self._next = max(self._next, number + 1)
        if self._next >= len(self._names):
            return
        room = in_flight_for(self._names[self._next]).window - sum(_size(future) for _, future in self._asked)
        while room > 0 and self._next < len(self._names) and len(self._asked) < _MOST:
            self._asked.append((self._next, _OPENED.ask(self._names[self._next])))
            self._next += 1
            room -= _UNKNOWN

    def close(self) -> None:
        """Drop the files that no reader has opened. Idempotent."""
        for number, future in self._asked:
            _OPENED.drop(self._names[number], future)
        self._asked.clear()


def _size(future: Future[RemoteFile]) -> int:
    if not future.done() or future.cancelled() or future.exception() is not None:
        return _UNKNOWN
    return min(future.result().size, _UNKNOWN * 4)


def open_remote(name: str) -> RemoteFile:
    """Return the file of a URL, which may have been requested before."""
    future = _OPENED.take(name)
    return RemoteFile(name) if future is None else future.result()
