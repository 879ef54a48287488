"""FilesAhead: the files of a URL that come after the one that is read, opened before their turn."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future

from penstock.forked import in_child
from penstock.io.remote.file import RemoteFile
from penstock.io.remote.in_flight import in_flight_for
from penstock.io.remote.pool import POOL

_MOST = 32  # files
_UNKNOWN = 1 << 18  # bytes that a file counts for of which only the name is known


class _Opened:
    """Files that somebody has asked for, by name, until they are opened or given up."""

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
                return  # somebody has opened it
            waiting.remove(future)
            if not waiting:
                del self._files[name]
        if not future.cancel():
            future.add_done_callback(_closed)


def _closed(future: Future[RemoteFile]) -> None:
    if not future.cancelled() and future.exception() is None:
        future.result().close()


_OPENED = _Opened()


class FilesAhead:
    """Small files cost a server's delay each, unless several are on their way; a large one reads ahead by itself."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._next = 0
        self._asked: deque[tuple[int, Future[RemoteFile]]] = deque()

    def reading(self, number: int) -> None:
        """File `number` is read now: ask for those behind it, as much as may be in flight."""
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
        """Give up those that nobody has opened. Idempotent."""
        for number, future in self._asked:
            _OPENED.drop(self._names[number], future)
        self._asked.clear()


def _size(future: Future[RemoteFile]) -> int:
    if not future.done() or future.cancelled() or future.exception() is not None:
        return _UNKNOWN
    return min(future.result().size, _UNKNOWN * 4)


def open_remote(name: str) -> RemoteFile:
    """The file of a URL, which may be on its way already."""
    future = _OPENED.take(name)
    return RemoteFile(name) if future is None else future.result()
