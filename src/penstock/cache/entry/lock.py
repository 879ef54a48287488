"""Locks on the files of an entry, and a lease behind a URL: who may write it, and who wants it to stay.

The kernel lets go of locks when their holder dies. Behind a URL nothing can be locked: an object says who writes, and
how long ago. Two processes may both take a lease, if they ask in the same moment or their clocks differ by a minute.
Then both write, each its own chunks, and one of their journals stands in the end: an entry is right in any case, and
half of the work was in vain.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import socket
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import Any

from penstock.errors import PenstockError
from penstock.forked import in_child, new_lock
from penstock.hints import redacted
from penstock.io import storage
from penstock.io.saved.durable import write_whole
from penstock.io.saved.manifest import file_in

NAME = "writer.lock"
_USERS = "users.lock"
# A symbolic link in the place of a file of ours would have us write into whatever file it names.
OWN = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
_UNSUPPORTED = {errno.ENOLCK, errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTSUP}


class Unlockable(OSError):
    """Files on this system, or file system, cannot be locked."""


class Lock:
    """Held until `release`. What is in its file says who holds it, for messages alone."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        in_child(self.forget)

    def release(self) -> None:
        """Let others write. Idempotent."""
        import fcntl

        if self._handle >= 0:
            with suppress(OSError):  # closing it does the same, but for a child that has just been forked
                fcntl.flock(self._handle, fcntl.LOCK_UN)
        self.forget()

    def forget(self) -> None:
        """In a forked child: it has a copy of the open file, which would keep the lock when its parent is gone."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)


def take(folder: str) -> Lock | None:
    """The lock of the entry in a folder, or None while somebody else holds it.

    Raises Unlockable where there are no locks, and OSError where its file cannot be made.
    """
    name = Path(folder, NAME)
    while True:
        handle = os.open(name, os.O_RDWR | os.O_CREAT | OWN, 0o666)
        try:
            if not _locked(handle, "LOCK_EX"):
                os.close(handle)
                return None
            if _is(handle, name):
                os.truncate(handle, 0)
                os.pwrite(handle, json.dumps(_myself()).encode(), 0)
                return Lock(handle)
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # the entry was removed, and perhaps made again, while we took it


def _locked(handle: int, kind: str, *, wait: bool = False) -> bool:
    try:
        import fcntl
    except ImportError as error:
        raise Unlockable(errno.ENOSYS, "this system has no flock") from error
    try:
        fcntl.flock(handle, getattr(fcntl, kind) | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in _UNSUPPORTED:
            raise Unlockable(error.errno, os.strerror(error.errno)) from error
        raise
    return True


def use(folder: str) -> Lock:
    """What keeps an entry from being removed unasked (`unused`), and says that it was wanted now. Makes its folder.

    Raises OSError where that cannot be.
    """
    name = Path(folder, _USERS)
    while True:
        name.parent.mkdir(parents=True, exist_ok=True)
        try:
            handle = os.open(name, os.O_RDWR | os.O_CREAT | OWN, 0o666)
        except FileNotFoundError:  # removed between the two
            continue
        try:
            _locked(handle, "LOCK_SH", wait=True)
            if _is(handle, name):
                os.utime(handle)
                return Lock(handle)
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # it was removed while we waited


def hold(folder: str) -> Lock | None:
    """A lock of a folder itself, without a file in it; None while somebody else holds it. Raises OSError."""
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if _locked(handle, "LOCK_EX"):
            return Lock(handle)
    except BaseException:
        os.close(handle)
        raise
    os.close(handle)
    return None


def unused(folder: str) -> Lock | None:
    """A lock that nobody gets who wants to `use` the entry in a folder; None where somebody does, or did not say so."""
    try:
        handle = os.open(Path(folder, _USERS), os.O_RDWR | OWN)
    except OSError:
        return None
    try:
        if _locked(handle, "LOCK_EX"):
            return Lock(handle)
    except OSError:
        pass
    except BaseException:
        os.close(handle)
        raise
    os.close(handle)
    return None


def last_used(folder: str) -> int:
    """When `use` was called last for the entry in a folder, in nanoseconds; 0 for never."""
    try:
        return Path(folder, _USERS).stat().st_mtime_ns
    except OSError:
        return 0


def _is(handle: int, name: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), name.stat())
    except FileNotFoundError:
        return False


def _myself() -> dict[str, Any]:
    since = datetime.now(UTC).isoformat(timespec="seconds")
    return {"host": socket.gethostname(), "pid": os.getpid(), "since": since}


def holder(folder: str) -> dict[str, Any] | None:
    """Tell who writes to the entry in a folder: host, pid and since when, as far as known; None if nobody does."""
    try:
        handle = os.open(Path(folder, NAME), os.O_RDONLY)
    except OSError:
        return None
    try:
        with suppress(OSError):  # where nobody can tell, nobody writes
            if not _locked(handle, "LOCK_SH"):
                return _said(os.pread(handle, 1 << 12, 0))
        return None
    finally:
        os.close(handle)


def _said(content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except ValueError:  # it has taken the lock a moment ago, it is not ours, or damaged
        return {}
    return found if isinstance(found, dict) else {}


# Two processes may both take one, if they ask in the same moment or their clocks differ by a minute. Then both write,
# each its own chunks, and one of their journals stands in the end: an entry is right in any case, and half of the work
# was in vain.

_LOG = logging.getLogger("penstock.cache")
_HOLDS = 60.0  # seconds behind which who does not renew it is taken for dead
_RENEWED = 15.0  # seconds from one time to the next


class Lease:
    """Held until `release`; a thread renews it."""

    def __init__(self, folder: str) -> None:
        self._name = file_in(folder, NAME)
        self._token = token_hex(8)
        self._over = threading.Event()
        self._saying = new_lock()
        self._say()
        threading.Thread(target=self._renew, name="penstock-lease", daemon=True).start()
        in_child(self.forget)

    @property
    def ours(self) -> bool:
        """Whether nobody else has taken it."""
        found = _written(self._name)
        return found is not None and found.get("token") == self._token

    @property
    def lasts(self) -> bool:
        """Whether nobody can have taken it for dead, or else nobody has: a renewal may have come too late."""
        return time.monotonic() - self._said_at < _HOLDS - _RENEWED or self.ours

    def release(self) -> None:
        """Let others write. Idempotent."""
        if self._over.is_set():
            return
        self._over.set()
        try:
            with self._saying:  # else it would be there again behind that
                if self.ours:
                    storage.remove(self._name)
        except (PenstockError, OSError) as error:
            _LOG.info("%s could not be removed, and holds others up for a minute: %s", redacted(self._name), error)

    def forget(self) -> None:
        """In a forked child: it is the parent's."""
        self._over = threading.Event()
        self._over.set()

    def _say(self) -> None:
        since = datetime.now(UTC).isoformat(timespec="seconds")
        self._said_at = time.monotonic()  # before it is sent: others count from then
        told = {"host": socket.gethostname(), "pid": os.getpid(), "since": since, "at": time.time()}
        write_whole(self._name, json.dumps({**told, "token": self._token}).encode())

    def _renew(self) -> None:
        while not self._over.wait(_RENEWED):
            try:
                with self._saying:
                    if not self._over.is_set():
                        self._say()
            except (PenstockError, OSError) as error:  # what is written says more
                _LOG.info("%s could not be renewed: %s", redacted(self._name), error)


def take_lease(folder: str) -> Lease | None:
    """The lease of the entry at a URL; None while somebody else has it. Raises PenstockError and OSError."""
    found = _written(file_in(folder, NAME))
    if found is not None and _alive(found):
        return None
    lease = Lease(folder)
    if lease.ours:
        return lease
    lease.forget()
    return None


def writer_of(folder: str) -> dict[str, Any] | None:
    """Tell who writes to an entry, at a URL too: host, pid and since when, as far as known; None if nobody does."""
    if not storage.is_url(folder):
        return holder(folder)
    found = _written(file_in(folder, NAME))
    return found if found is not None and _alive(found) else None


def _written(name: str) -> dict[str, Any] | None:
    try:
        return _said(storage.read_now(name))
    except FileNotFoundError:
        return None


def _alive(found: dict[str, Any]) -> bool:
    at, host, pid = found.get("at"), found.get("host"), found.get("pid")
    if not isinstance(at, (int, float)) or abs(time.time() - at) > _HOLDS:
        return False
    if host != socket.gethostname() or not isinstance(pid, int):
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True
