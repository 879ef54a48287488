"""The fsspec file system of a URL, and the limits of reading from it.

The file system is requested from fsspec each time, because fsspec recreates it in a forked process. The environment
sets the limits, which workers of this machine share. InFlight finds by trials how many bytes to request ahead.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from penstock.errors import InvalidArgumentError, MissingDependencyError, PenstockError
from penstock.forked import in_child, new_lock
from penstock.hints import redacted

if TYPE_CHECKING:
    from concurrent.futures import Future

_EXTRAS = {
    "s3": "s3",
    "s3a": "s3",
    "gs": "gcs",
    "gcs": "gcs",
    "hdfs": "hdfs",
    "viewfs": "hdfs",
    "http": "http",
    "https": "http",
}
# if one of these is set, the library that fsspec's own implementation needs is installed
_JAVA = ("ARROW_LIBHDFS_DIR", "HADOOP_HOME")
_NATIVE = ("hdfs", "viewfs")  # read through hdfs-native, because fsspec's own implementation needs Java


def scheme_of(url: str) -> str:
    """Return the scheme of a URL, without the prefixes of fsspec.

    >>> scheme_of("gs://bucket/key"), scheme_of("simplecache::s3://bucket/key")
    ('gs', 's3')
    """
    return url.split("://", 1)[0].split("::")[-1].lower()


def file_system(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the URL's path in it.

    The library of each service finds credentials in its usual places. This code never handles them.
    """
    import fsspec

    scheme = scheme_of(url)
    try:
        if scheme in _NATIVE:
            _use_native(scheme)
        system, inner = fsspec.core.url_to_fs(url)
    except ImportError as error:
        extra = _EXTRAS.get(scheme)
        hint = f"Install penstock[{extra}]: pip install 'penstock[{extra}]'" if extra else str(error)
        message = f"Reading {scheme}:// needs a package that is not installed."
        raise MissingDependencyError(message, hint=hint) from error
    except PenstockError:
        raise
    except ValueError as error:
        if scheme in fsspec.available_protocols():  # another part of the URL is wrong
            message = f"{redacted(url)!r} cannot be opened: {redacted(str(error))}"
        else:
            message = f"{redacted(url)!r} names a protocol that fsspec does not know: {redacted(str(error))}"
        raise InvalidArgumentError(message) from None
    return system, inner


def _use_native(scheme: str) -> None:
    import fsspec

    if fsspec.registry.get(scheme) is not None:  # registered by the user, or by an earlier call
        return
    try:
        from hdfs_native.fsspec import HdfsFileSystem, ViewfsFileSystem
    except ImportError:
        if any(os.environ.get(name) for name in _JAVA):
            return
        raise
    fsspec.register_implementation(scheme, HdfsFileSystem if scheme == "hdfs" else ViewfsFileSystem, clobber=True)


def full_name(system: Any, path: str, url: str, inner: str) -> str:
    """Return the URL of a path in the file system of `url`, whose own path there is `inner`.

    Some file systems, such as WebHDFS, omit the host. `inner` is then the part after the host, without a bucket or
    container.
    """
    found = str(system.unstrip_protocol(path))
    scheme, _, rest = url.partition("://")
    place, _, behind = rest.partition("/")
    told = found.startswith((f"{scheme}://{place}/", f"{scheme}://{place.rpartition('@')[2]}/"))
    if told or "::" in scheme or not place or inner.strip("/") != behind.strip("/"):
        return found
    return f"{scheme}://{place}/{found.partition('://')[2].lstrip('/')}"


_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_NAMES = {
    "tries": "PENSTOCK_REMOTE_TRIES",
    "timeout": "PENSTOCK_REMOTE_TIMEOUT",
    "patience": "PENSTOCK_REMOTE_PATIENCE",
    "buffer": "PENSTOCK_REMOTE_BUFFER",
    "cache": "PENSTOCK_REMOTE_CACHE",
    "cache_bytes": "PENSTOCK_REMOTE_CACHE_BYTES",
}


@dataclass(frozen=True)
class RemoteSettings:
    """Limits of requests and reading ahead, and the folder of cached blocks."""

    tries: int = 8  # of one request
    timeout: float = 60.0  # seconds for one try
    patience: float = 300.0  # seconds for all tries of one request
    buffer: int = 1 << 28  # bytes that all files of a process together read ahead
    cache: str | None = None  # a local folder
    cache_bytes: int = 10 << 30


def settings() -> RemoteSettings:
    """Return the settings in the current environment. Raises InvalidArgumentError for an invalid value."""
    return _parsed(tuple(os.environ.get(name) for name in _NAMES.values()))


@cache
def _parsed(values: tuple[str | None, ...]) -> RemoteSettings:
    given = {field: text for field, text in zip(_NAMES, values, strict=True) if text}
    found: dict[str, int | float | str] = {}
    for field, text in given.items():
        found[field] = text if field == "cache" else _number(field, text)
    return RemoteSettings(**found)  # type: ignore[arg-type]


def _number(field: str, text: str) -> int | float:
    seconds = field in ("timeout", "patience")
    unit = text[-1:].upper()
    scale = 1 if seconds or unit not in _UNITS else _UNITS[unit]
    try:
        number = float(text) if seconds else int(text[:-1] if unit in _UNITS else text) * scale
    except ValueError:
        number = 0
    if not 0 < number < float("inf"):
        what = "a number of seconds" if seconds else "a positive number, with the suffix K, M, G or T for a larger one"
        message = f"{_NAMES[field]} is {what}, got {text!r:.40}."
        raise InvalidArgumentError(message, hint="Correct the environment variable, or leave it out.")
    return number


# `DaemonPool` has the threads that wait for servers.

LEAST = 1 << 20  # bytes in flight before any measurement
_LEAST_PIECE, _MOST_PIECE = 1 << 18, 1 << 22
_PIECES = 8  # requests that the window is split into; more if it exceeds eight of the largest
_WAITED = 0.05  # share of the time; a reader that waits less has enough bytes in flight
_BETTER = 1.1  # speed-up that doubling the window must bring
# rounds: without gain before it shrinks, without waiting before it shrinks, of rest before it grows again
_FAILED, _QUIET, _RESTED = 2, 8, 16


class InFlight:
    """The window of bytes in flight for one server. `saw` is called for every piece that a reader takes.

    A round ends when the bytes of a window were taken. If the reader waited, the window doubles, as long as each
    doubling brings a tenth more speed. Otherwise it halves and rests. If no reader waits, it shrinks, to release
    memory.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self.window = LEAST
        self.readers = 0
        self._began = 0.0
        self._bytes = 0
        self._waited = 0.0
        self._rate = 0.0  # bytes per second of the best round
        self._failed = self._quiet = self._rest = 0

    @property
    def share(self) -> int:
        """The bytes that one open file may have in flight. The limit of the settings may have become lower."""
        return max(min(self.window, settings().buffer) // max(self.readers, 1), _LEAST_PIECE)

    @property
    def piece(self) -> int:
        """Bytes of one request."""
        return min(max(self.share // _PIECES, _LEAST_PIECE), _MOST_PIECE)

    def saw(self, nbytes: int, waited: float) -> None:
        """Record that a reader took `nbytes` bytes and waited `waited` seconds for them."""
        with self._lock:
            now = self._clock()
            if not self._began:
                self._began = now - waited
            self._bytes += nbytes
            self._waited += waited
            if self._bytes >= self.window:
                self._round(max(now - self._began, 1e-9))
                self._began, self._bytes, self._waited = now, 0, 0.0

    def _round(self, seconds: float) -> None:
        rate = self._bytes / seconds
        if self._waited < _WAITED * seconds * max(self.readers, 1):
            self._quiet += 1
            self._failed = 0
            if self._quiet >= _QUIET:
                self._quiet, self._rate = 0, 0.0
                self.window = max(self.window * 3 // 4, LEAST)
            return
        self._quiet = 0
        if self._rest:
            self._rest -= 1
            if not self._rest:
                self._rate = 0.0
            return
        if rate > self._rate * _BETTER:
            self._rate, self._failed = rate, 0
            self.window = min(self.window * 2, settings().buffer)
            return
        self._failed += 1
        if self._failed >= _FAILED:
            self._failed, self._rest = 0, _RESTED
            self.window = max(self.window // 2, LEAST)


class ReadAheadRoom:
    """The bytes that all files of this process together have requested ahead."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self.taken = 0
        in_child(self._begin_anew)

    def _begin_anew(self) -> None:
        self.taken = 0

    def take(self, nbytes: int) -> bool:
        """Reserve `nbytes` bytes. Return False if there is no room."""
        with self._lock:
            if self.taken + nbytes > settings().buffer:
                return False
            self.taken += nbytes
            return True

    def give(self, nbytes: int) -> None:
        """Release reserved bytes."""
        with self._lock:
            self.taken -= nbytes


ROOM = ReadAheadRoom()
_SERVERS: dict[str, InFlight] = {}
_LOCK = new_lock()


@in_child
def _begin_anew() -> None:
    _SERVERS.clear()


def in_flight_for(url: str) -> InFlight:
    """Return the window of the URL's server or bucket."""
    scheme, _, rest = url.partition("://")
    with _LOCK:
        return _SERVERS.setdefault(f"{scheme}://{rest.partition('/')[0]}", InFlight())


MOST = 64  # requests of a process at a time
_IDLE = 1.0  # seconds without work after which a thread ends


class DaemonPool:
    """Up to `most` daemon threads. A forked child starts with an empty pool."""

    def __init__(self, most: int = MOST, name: str = "penstock-remote") -> None:
        self._most = most
        self._name = name
        self._begin_anew()
        in_child(self._begin_anew)

    def _begin_anew(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._work: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._threads = 0
        self._idle = 0

    def submit(self, call: Callable[[], Any]) -> Future[Any]:
        """Call `call` in a thread. It must not wait for other work of this pool."""
        from concurrent.futures import Future  # importing it takes half as long as importing penstock

        future: Future[Any] = Future()
        with self._changed:
            self._work.append((future, call))
            if self._idle >= len(self._work) or self._threads >= self._most:
                self._changed.notify()
                return future
            self._threads += 1
            try:
                threading.Thread(target=self._run, args=(self._changed,), name=self._name, daemon=True).start()
            except BaseException:  # no thread can start now, but one may later
                self._threads -= 1
                self._work.remove((future, call))
                raise
        return future

    def _run(self, changed: threading.Condition) -> None:
        while True:
            with changed:
                if not self._work:
                    self._idle += 1
                    changed.wait(_IDLE)
                    self._idle -= 1
                if not self._work:
                    self._threads -= 1
                    return
                future, call = self._work.popleft()
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(call())
                except BaseException as error:
                    future.set_exception(error)
            del future, call


POOL = DaemonPool()
