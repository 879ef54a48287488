"""Locks on the files of an entry, and leases of entries at a URL.

A lock has one of two purposes: it excludes other writers, or it prevents the removal of the entry. The kernel releases
a lock when its process dies.

Files at a URL cannot be locked. An object there names the writer and the time of its last renewal. Two processes may
both take a lease, if they ask at the same moment or their clocks differ by a minute. Then both write their own chunks,
and one of their journals remains. The entry is right in any case, but half of the work is lost.
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
from penstock.store.durable import write_whole
from penstock.store.manifest import file_in

NAME = "writer.lock"
_USERS = "users.lock"
# A symbolic link in the place of a lock file could lead the writer to any other file.
OWN = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
_UNSUPPORTED = {errno.ENOLCK, errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTSUP}


class Unlockable(OSError):
    """This system, or this file system, cannot lock files."""


class Lock:
    """A lock that lasts until `release`. Its file names the holder, for messages only."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        in_child(self.forget)

    def release(self) -> None:
        """Release the lock. Idempotent."""
        import fcntl

        if self._handle >= 0:
            with suppress(OSError):  # close() releases the lock too, unless a child process has just been forked
                fcntl.flock(self._handle, fcntl.LOCK_UN)
        self.forget()

    def forget(self) -> None:
        """Close the copy of the file in a forked child, where it would keep the lock after the death of the parent."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)


def take(folder: str) -> Lock | None:
    """Return the lock for a writer of an entry, or None if another process has the lock.

    Raises:
        Unlockable: If the file system has no locks.
        OSError: If the lock file cannot be opened.
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
        os.close(handle)  # the entry was removed, and perhaps made again, before the lock was taken


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
    """Return a lock that prevents the removal of an entry, and record the time of this use.

    The folder of the entry is made if it is missing.

    Raises:
        OSError: If the folder or the lock cannot be made.
    """
    name = Path(folder, _USERS)
    while True:
        name.parent.mkdir(parents=True, exist_ok=True)
        try:
            handle = os.open(name, os.O_RDWR | os.O_CREAT | OWN, 0o666)
        except FileNotFoundError:  # another process removed the folder after mkdir
            continue
        try:
            _locked(handle, "LOCK_SH", wait=True)
            if _is(handle, name):
                os.utime(handle)
                return Lock(handle)
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # another process removed the file during the wait


def hold(folder: str) -> Lock | None:
    """Return a lock on the folder itself, without a lock file, or None if another process has it. Raises OSError."""
    return _taken(folder, os.O_RDONLY | os.O_CLOEXEC)


def unused(folder: str) -> Lock | None:
    """Return a lock that excludes callers of `use`.

    None if a process uses the entry, or if no process has ever called `use` for it.
    """
    try:
        return _taken(Path(folder, _USERS), os.O_RDWR | OWN)
    except OSError:
        return None


def _taken(path: str | Path, flags: int) -> Lock | None:
    """Return a lock on a file that exists, or None if another process has it."""
    handle = os.open(path, flags)
    try:
        if _locked(handle, "LOCK_EX"):
            return Lock(handle)
    except BaseException:
        os.close(handle)
        raise
    os.close(handle)
    return None


def last_used(folder: str) -> int:
    """Return the time of the last call of `use` for an entry, in nanoseconds. 0: never."""
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
    """Return host, pid and start time of the writer of an entry, as far as known. None if there is no writer."""
    try:
        handle = os.open(Path(folder, NAME), os.O_RDONLY)
    except OSError:
        return None
    try:
        with suppress(OSError):  # a file system without locks has no writers
            if not _locked(handle, "LOCK_SH"):
                return _said(os.pread(handle, 1 << 12, 0))
        return None
    finally:
        os.close(handle)


def _said(content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except ValueError:  # the writer took the lock a moment ago, or the file is damaged or of another program
        return {}
    return found if isinstance(found, dict) else {}


_LOG = logging.getLogger("penstock.store")
_HOLDS = 60.0  # seconds after the last renewal until other processes regard the holder as dead
_RENEWED = 15.0  # seconds between two renewals


class Lease:
    """The lease of an entry at a URL. A thread renews it until `release`."""

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
        """True if no other process has taken the lease."""
        found = _written(self._name)
        return found is not None and found.get("token") == self._token

    @property
    def lasts(self) -> bool:
        """True if the lease is certainly valid. After a late renewal this reads the object."""
        return time.monotonic() - self._said_at < _HOLDS - _RENEWED or self.ours

    def release(self) -> None:
        """Remove the lease. Idempotent."""
        if self._over.is_set():
            return
        self._over.set()
        try:
            with self._saying:  # otherwise a renewal could write the object again after its removal
                if self.ours:
                    storage.remove(self._name)
        except (PenstockError, OSError) as error:
            _LOG.info("%s could not be removed, and holds others up for a minute: %s", redacted(self._name), error)

    def forget(self) -> None:
        """Stop in a forked child: the lease belongs to the parent."""
        self._over = threading.Event()
        self._over.set()

    def _say(self) -> None:
        since = datetime.now(UTC).isoformat(timespec="seconds")
        self._said_at = time.monotonic()  # before the write, because other processes count from this moment
        told = {"host": socket.gethostname(), "pid": os.getpid(), "since": since, "at": time.time()}
        write_whole(self._name, json.dumps({**told, "token": self._token}).encode())

    def _renew(self) -> None:
        while not self._over.wait(_RENEWED):
            try:
                with self._saying:
                    if not self._over.is_set():
                        self._say()
            except (PenstockError, OSError) as error:  # the next write to the entry reports the error
                _LOG.info("%s could not be renewed: %s", redacted(self._name), error)


def take_lease(folder: str) -> Lease | None:
    """Return the lease of the entry at a URL, or None if another process has it. Raises PenstockError and OSError."""
    found = _written(file_in(folder, NAME))
    if found is not None and _alive(found):
        return None
    lease = Lease(folder)
    if lease.ours:
        return lease
    lease.forget()
    return None


def writer_of(folder: str) -> dict[str, Any] | None:
    """Return host, pid and start time of the writer of an entry, also at a URL. None if there is no writer."""
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
